// SPDX-License-Identifier: MIT OR Apache-2.0

//! `archive`: the cases with all that they boot, in a file that runs elsewhere.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use fs_err as fs;
use vm::Images;

use crate::cache;
use crate::cmd::Cmd;
use crate::guest;
use crate::kernel;
use crate::project::Project;
use crate::test::{nic, store};
use crate::tools;
use crate::ui::{self, Step};

/// Stands for the folder that the archive is unpacked into.
const HERE: &str = "@HERE@";
/// The folder in the archive.
const NAME: &str = "nobounce";

const RUN: &str = "\
#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs the cases, with options of cargo-nextest: ./run --partition hash:1/4
set -e
here=$(cd \"$(dirname \"$0\")\" && pwd)
mkdir -p \"$here/logs\"
sed \"s|@HERE@|$here|g\" \"$here/guest.json.in\" >\"$here/guest.json.$$\"
mv \"$here/guest.json.$$\" \"$here/guest.json\"
profile=ci
if [ -f \"$here/nic.toml\" ]; then
    profile=nic
    export NOBOUNCE_NIC_FILE=\"$here/nic.toml\"
fi
# Cases that want what the NIC or the kernel lacks. Several runs may be at work.
if [ -d \"$here/skipped\" ]; then
    export NOBOUNCE_SKIPPED=\"$here/skipped/$$\"
    rm -f \"$NOBOUNCE_SKIPPED\"
    echo \"skipped cases, which count as passed, are named in $NOBOUNCE_SKIPPED\" >&2
fi
cd \"$here/workspace\"
NOBOUNCE_GUEST=$here/guest.json exec \"$here/cargo-nextest\" nextest run --profile $profile \\
    --archive-file \"$here/tests.tar.zst\" --workspace-remap \"$here/workspace\" \"$@\"
";

/// What is packed, and where to.
#[derive(Args)]
pub(crate) struct Options {
    /// Pack the cases on the NIC that a file describes, as `test --nic` runs them
    #[arg(long, value_name = "NIC")]
    nic: Option<PathBuf>,
    /// The archive, a .tar.gz
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Builds the guest and the cases, and packs them. Returns the archive.
///
/// # Errors
///
/// Those of the steps, and when a file can't be read or written.
pub(crate) fn run(project: &Project, options: &Options) -> Result<PathBuf> {
    let mut images = guest::prepare_for_cases(project)?;
    let nic = options.nic.as_deref();
    let nic = nic.map(|file| nic::prepare(project, file, nic::ALL));
    let nic = nic.transpose()?;
    if let Some(nic) = &nic {
        images = Images::load(&nic.manifest)?;
    }
    let nextest = tools::nextest(project)?;
    let step = Step::begin("archive", "building the cases");
    let folder = project.out("archive");
    cache::remove_dir(&folder)?;
    let top = folder.join(NAME);
    fs::create_dir_all(top.join("guest"))?;
    project
        .built_here(Cmd::new(&nextest))
        .args(["nextest", "archive", "-p", "cases", "--archive-file"])
        .arg(top.join("tests.tar.zst"))
        .step(&step, &project.log("archive"))?;

    step.detail("packing");
    copy(&found(&nextest)?, &top.join("cargo-nextest"))?;
    let images = take(project, images, &top)?;
    fs::write(
        top.join("guest.json.in"),
        serde_json::to_string_pretty(&images)?,
    )?;
    // Where nextest and the cases find what they would have in the checkout.
    let workspace = top.join("workspace");
    for part in [".config", "harness/cases"] {
        fs::create_dir_all(workspace.join(part))?;
    }
    let manifest = "Cargo.toml";
    copy(&project.root.join(manifest), &workspace.join(manifest))?;
    let reports = Path::new("target/nextest");
    let configuration = match &nic {
        Some(nic) => {
            copy(&nic.file, &top.join("nic.toml"))?;
            nic.configuration(project, reports)?
        }
        None => store::configuration(project, reports, None)?,
    };
    fs::write(workspace.join(".config/nextest.toml"), configuration)?;
    // Ours have all that a case wants: there none may be skipped.
    if nic.is_some() || kernel::is_built(project)? {
        fs::create_dir(top.join("skipped"))?;
    }
    let run = top.join("run");
    fs::write(&run, RUN)?;
    Cmd::new("chmod").arg("+x").arg(&run).output()?;

    let file = std::path::absolute(&options.file)?;
    Cmd::new("tar")
        // The cases, most of it, are compressed already.
        .args(["--create", "--use-compress-program=gzip -1", "--file"])
        .arg(&file)
        .arg("--directory")
        .arg(&folder)
        .arg(NAME)
        .step(&step, &project.log("archive"))?;
    cache::remove_dir(&folder)?;
    step.done(&file.display().to_string());
    Ok(file)
}

/// Copies what a guest boots from, and names it by its places in the archive.
fn take(project: &Project, images: Images, top: &Path) -> Result<Images> {
    let guest = |from: &Path| -> Result<PathBuf> {
        let name = from.file_name().context("a file has no name")?;
        copy(from, &top.join("guest").join(name))?;
        Ok(Path::new(HERE).join("guest").join(name))
    };
    let optional = |file: &Option<PathBuf>| file.as_deref().map(guest).transpose();
    let mut qemu = images.qemu.clone();
    let ours = project.cache.path("qemu");
    let tree = qemu.argv.first().and_then(|program| {
        let version = Path::new(program).strip_prefix(&ours).ok()?.iter().next()?;
        Some(ours.join(version))
    });
    if tree.is_none() {
        let program = qemu.argv.first().map_or("", String::as_str);
        ui::note(&format!(
            "{program} is not in the archive: the machine that runs it must have it"
        ));
    }
    if let Some(tree) = tree {
        Cmd::new("cp")
            .arg("--archive")
            .arg(&tree)
            .arg(top.join("qemu"))
            .output()?;
        let (old, new) = (tree.to_string_lossy(), format!("{HERE}/qemu"));
        for word in qemu.argv.iter_mut().chain(qemu.env.values_mut()) {
            *word = word.replace(&*old, &new);
        }
    }
    Ok(Images {
        kernel: guest(&images.kernel)?,
        initramfs: guest(&images.initramfs)?,
        modules: images
            .modules
            .iter()
            .map(|module| guest(module))
            .collect::<Result<_>>()?,
        config: optional(&images.config)?,
        counter: optional(&images.counter)?,
        devices: optional(&images.devices)?,
        symbols: optional(&images.symbols)?,
        snapshots: Some(Path::new(HERE).join("snapshots")),
        logs: Path::new(HERE).join("logs"),
        qemu,
        ..images
    })
}

/// Where a program is that is on PATH, or the path itself.
fn found(program: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join(program));
    let mut files = folders.filter(|file| file.is_file());
    match files.next() {
        Some(file) => Ok(file),
        None => bail!("there is no {}", program.display()),
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)?;
    Ok(())
}
