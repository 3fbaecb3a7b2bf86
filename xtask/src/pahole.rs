// SPDX-License-Identifier: MIT OR Apache-2.0

//! pahole, which makes the kernel's types for BPF of its debug information:
//! Debian's package, unpacked in the cache and run through its own loader.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::apt::Apt;
use crate::cache;
use crate::cmd::Cmd;
use crate::program;
use crate::project::Project;
use crate::ui::Step;

/// Debian's package with it.
const PACKAGE: &str = "dwarves";
/// The packages, 5 MB, and what they unpack to.
const SPACE: u64 = 50_000_000;
/// What it doesn't need to run.
const NOT_NEEDED: &[&str] = &["etc", "usr/libexec", "usr/share", "var"];

/// A pahole in the cache.
pub(crate) struct Pahole {
    /// The script that runs it.
    pub(crate) program: PathBuf,
    /// What it says of itself, `v1.30`.
    pub(crate) version: String,
}

/// The pahole in the cache, unpacked on first use.
///
/// # Errors
///
/// No apt, no network, no space: see [`Apt`]; a pahole that doesn't run.
pub(crate) fn prepare(project: &Project) -> Result<Pahole> {
    let root = match project.cache.list("pahole").pop() {
        Some(root) => root,
        None => fetch(project)?,
    };
    let program = root.join("bin/pahole");
    let version = Cmd::new(&program)
        .arg("--version")
        .output()
        .with_context(|| {
            format!(
                "the pahole in {} doesn't run; `{} clean --cache` removes it",
                root.display(),
                program::name()
            )
        })?;
    Ok(Pahole {
        program,
        version: version.trim().to_owned(),
    })
}

fn fetch(project: &Project) -> Result<PathBuf> {
    project.cache.require_space(SPACE, "pahole")?;
    let step = Step::begin("pahole", "getting Debian's newest pahole");
    let apt = Apt::new(project);
    let offers = apt.offers(&step, PACKAGE)?;
    let version = offers
        .first()
        .with_context(|| format!("Debian offers no package {PACKAGE}"))?;
    let root = project.cache.once(&format!("pahole/{version}"), |work| {
        apt.unpack_whole(&step, &project.cache, &[PACKAGE], work)?;
        for part in NOT_NEEDED {
            cache::remove_dir(&work.join(part))?;
        }
        write_script(&work.join("bin"))
    })?;
    step.done(&format!("pahole {version} in {}", root.display()));
    Ok(root)
}

/// The kernel's build wants a program. It finds its packages from where it is: the folder is moved
/// into place when it is whole.
fn write_script(bin: &Path) -> Result<()> {
    // Of a merged /usr packages have but a link.
    if fs::symlink_metadata(bin).is_ok_and(|data| data.is_symlink()) {
        fs::remove_file(bin)?;
    }
    fs::create_dir_all(bin).with_context(|| format!("can't create {}", bin.display()))?;
    let script = bin.join("pahole");
    let text = "#!/bin/sh\nroot=${0%/*}/..\nexec \"$root/usr/lib64/ld-linux-x86-64.so.2\" \\\n\t\
                --library-path \"$root/usr/lib/x86_64-linux-gnu\" \\\n\t\"$root/usr/bin/pahole\" \
                \"$@\"\n";
    fs::write(&script, text).with_context(|| format!("can't write {}", script.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
