// SPDX-License-Identifier: MIT OR Apache-2.0

//! Builds the counter (qemu/plugin) for the QEMU that is used.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;
use vm::QemuCommand;

use crate::cmd::Cmd;
use crate::project::Project;
use crate::stamp::{self, Stamp};
use crate::ui::Step;
use crate::version::Version;

const FOLDER: &str = "qemu/plugin";
const SOURCES: &[&str] = &["counter.c", "blocks.c", "marks.c", "ranges.c"];
const FLAGS: &[&str] = &[
    "-std=c11",
    "-D_POSIX_C_SOURCE=200809L",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
];

/// Compiles it, which takes a moment.
///
/// # Errors
///
/// When gcc fails.
pub(crate) fn build(project: &Project, qemu: &QemuCommand) -> Result<PathBuf> {
    let api = api(qemu);
    let dir = project.out("plugin");
    fs::create_dir_all(&dir)?;
    let plugin = dir.join(format!("counter-api{api}.so"));
    let inputs = stamp::files(&project.root, FOLDER)?;
    let inputs: Vec<_> = inputs.iter().map(|path| project.root.join(path)).collect();
    let stamp = Stamp::new(dir.join("stamp"), FLAGS, &inputs)?;
    let outputs = [plugin];
    if !stamp.is_of(&outputs) {
        compile(project, api, &outputs[0])?;
        stamp.keep(&outputs)?;
    }
    let [plugin] = outputs;
    Ok(plugin)
}

fn compile(project: &Project, api: u32, plugin: &Path) -> Result<()> {
    let step = Step::begin("plugin", "building the counter");
    // A running QEMU keeps the file that it has mapped.
    let new = plugin.with_extension("new");
    Cmd::new("gcc")
        .args(FLAGS)
        .arg(format!("-DQEMU_PLUGIN_VERSION={api}"))
        .arg("-o")
        .arg(&new)
        .args(SOURCES)
        .dir(&project.root.join(FOLDER))
        .step(&step, &project.log("plugin"))?;
    fs::rename(&new, plugin)?;
    step.done(&plugin.display().to_string());
    Ok(())
}

/// The version of the plugin interface that a QEMU wants. Each refuses all others, in words.
fn api(qemu: &QemuCommand) -> u32 {
    let version = Version::find(&qemu.version).unwrap_or(Version::new(11, 1, 0));
    if version >= Version::new(11, 1, 0) {
        7
    } else if version >= Version::new(11, 0, 0) {
        6
    } else {
        5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_interface_follows_qemus_version() {
        let api_of = |version: &str| {
            api(&QemuCommand {
                argv: Vec::new(),
                env: Default::default(),
                version: version.to_owned(),
            })
        };
        let found = ["10.1.0", "10.2.3", "11.0.1", "11.1.3", "12.0.0"].map(api_of);
        assert_eq!(found, [5, 5, 6, 7, 7]);
    }
}
