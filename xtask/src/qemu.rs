// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds a QEMU with the igb model: `$QEMU`, else the system's where it is new
//! enough, else Debian's newest, unpacked in the cache and run through its own
//! loader so that none of the system's libraries matter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use vm::QemuCommand;

use crate::apt::Apt;
use crate::cache;
use crate::cmd::{Cmd, on_path};
use crate::program;
use crate::project::Project;
use crate::ui::{self, Step};
use crate::version::Version;

/// The first with what the harness relies on.
const MIN_QEMU: Version = Version::new(10, 1, 0);
/// The system's program and Debian's package.
const PROGRAM: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
/// The packages, 40 MB, and what they unpack to.
const SPACE: u64 = 400_000_000;
/// What an unpacked QEMU doesn't need to run.
const NOT_NEEDED: &[&str] = &[
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/lintian",
    "usr/share/perl5",
    "var",
];

/// The program itself, not the loader that it may be run through.
pub(crate) fn program(qemu: &QemuCommand) -> PathBuf {
    let own = |arg: &&String| arg.contains('/') && arg.ends_with(PROGRAM);
    let program = qemu.argv.iter().find(own).or(qemu.argv.first());
    program.map(PathBuf::from).unwrap_or_default()
}

/// Finds QEMU, getting one where there is none.
///
/// # Errors
///
/// When `$QEMU` doesn't suit, or none can be had.
pub(crate) fn prepare(project: &Project) -> Result<QemuCommand> {
    match find(project)? {
        Some(qemu) => Ok(qemu),
        None => check(unpacked(&fetch(project)?)),
    }
}

/// Finds a QEMU that is there already.
///
/// # Errors
///
/// When `$QEMU` doesn't suit, or the one in the cache doesn't run.
pub(crate) fn find(project: &Project) -> Result<Option<QemuCommand>> {
    if let Some(given) = std::env::var_os("QEMU") {
        let given = given.to_string_lossy().into_owned();
        let qemu = check(plain(&given)).with_context(|| {
            format!("QEMU={given} doesn't suit; unset it to have nobounce find or get one")
        })?;
        return Ok(Some(qemu));
    }
    if on_path(PROGRAM) {
        match check(plain(PROGRAM)) {
            Ok(qemu) => return Ok(Some(qemu)),
            Err(error) if project.cache.list("qemu").is_empty() => {
                ui::note(&format!("the system's QEMU isn't used: {error:#}"));
            }
            Err(_) => {}
        }
    }
    let Some(root) = project.cache.list("qemu").pop() else {
        return Ok(None);
    };
    let qemu = check(unpacked(&root)).with_context(|| {
        format!(
            "the QEMU in {} doesn't run; `{} clean --cache` removes it",
            root.display(),
            program::name()
        )
    })?;
    Ok(Some(qemu))
}

fn fetch(project: &Project) -> Result<PathBuf> {
    project.cache.require_space(SPACE, "QEMU")?;
    let step = Step::begin("qemu", "getting Debian's newest QEMU");
    let apt = Apt::new(project);
    let offers = apt.offers(&step, PACKAGE)?;
    let version = offers
        .first()
        .with_context(|| format!("Debian offers no package {PACKAGE}"))?;
    // A colon would separate library paths; the epoch says nothing here.
    let name = version.split_once(':').map_or(version.as_str(), |(_, v)| v);
    let root = project.cache.once(&format!("qemu/{name}"), |work| {
        apt.unpack_whole(&step, &project.cache, &[PACKAGE], work)?;
        for part in NOT_NEEDED {
            cache::remove_dir(&work.join(part))?;
        }
        check(unpacked(work)).map(drop)
    })?;
    step.done(&format!("QEMU {name} in {}", root.display()));
    Ok(root)
}

fn plain(program: &str) -> QemuCommand {
    QemuCommand {
        argv: vec![program.to_owned()],
        env: BTreeMap::new(),
        version: String::new(),
    }
}

/// How to run what was unpacked from Debian's packages into `root`.
fn unpacked(root: &Path) -> QemuCommand {
    let at = |path: &str| format!("{}/{path}", root.display());
    let library = at("usr/lib/x86_64-linux-gnu");
    let argv = [
        at("usr/lib64/ld-linux-x86-64.so.2"),
        "--library-path".to_owned(),
        library.clone(),
        "--argv0".to_owned(),
        PROGRAM.to_owned(),
        at("usr/bin/qemu-system-x86_64"),
        "-L".to_owned(),
        at("usr/share/qemu"),
        "-L".to_owned(),
        at("usr/share/seabios"),
    ];
    QemuCommand {
        argv: argv.to_vec(),
        env: BTreeMap::from([("QEMU_MODULE_DIR".to_owned(), format!("{library}/qemu"))]),
        version: String::new(),
    }
}

/// Runs it twice: for its version, and for the igb model.
fn check(mut qemu: QemuCommand) -> Result<QemuCommand> {
    let run = |args: &[&str]| {
        let mut cmd = Cmd::new(&qemu.argv[0]).args(&qemu.argv[1..]).args(args);
        for (name, value) in &qemu.env {
            cmd = cmd.env(name, value);
        }
        cmd.output()
    };
    let text = run(&["--version"])?;
    let version = Version::find(&text)
        .with_context(|| format!("it names no version but `{}`", text.trim()))?;
    if version < MIN_QEMU {
        bail!("it is version {version}, and {MIN_QEMU} or newer is needed");
    }
    let devices = run(&["-machine", "none", "-device", "help"])?;
    if !has_device(&devices, "igb") {
        bail!("it has no `igb` device (the Intel 82576)");
    }
    qemu.version = version.to_string();
    Ok(qemu)
}

/// Whether `-device help` lists a device: `name "igb", bus PCI, …`.
fn has_device(help: &str, device: &str) -> bool {
    let quoted = format!("name \"{device}\"");
    help.lines().any(|line| line.starts_with(&quoted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_found_by_its_whole_name() {
        let help = "Network devices:\nname \"e1000e\", bus PCI\nname \"igbvf\", bus PCI\n";
        assert!(!has_device(help, "igb"));
        assert!(has_device(&format!("{help}name \"igb\", bus PCI\n"), "igb"));
    }

    #[test]
    fn an_unpacked_qemu_runs_through_its_own_loader_and_modules() {
        let qemu = unpacked(Path::new("/c/qemu/11.1"));
        assert_eq!(qemu.argv[0], "/c/qemu/11.1/usr/lib64/ld-linux-x86-64.so.2");
        assert!(
            qemu.argv
                .iter()
                .any(|a| a == "/c/qemu/11.1/usr/share/seabios")
        );
        assert_eq!(
            qemu.env["QEMU_MODULE_DIR"],
            "/c/qemu/11.1/usr/lib/x86_64-linux-gnu/qemu"
        );
    }

    /// What `check` says of a program that prints `version` and `devices`.
    fn check_script(version: &str, devices: &str) -> Result<QemuCommand> {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("qemu.sh");
        let text =
            format!("case $1 in --version) echo '{version}' ;; *) echo '{devices}' ;; esac\n");
        std::fs::write(&script, text).unwrap();
        let mut qemu = plain("sh");
        qemu.argv.push(script.display().to_string());
        check(qemu)
    }

    #[test]
    fn a_program_is_refused_that_is_no_qemu_or_too_old_or_has_no_igb() {
        let igb = "name \"igb\", bus PCI";
        for (version, devices, expected) in [
            ("hello", igb, "names no version"),
            (
                "QEMU emulator version 10.0.2 (Debian)",
                igb,
                "version 10.0.2",
            ),
            (
                "QEMU emulator version 10.1.0",
                "name \"e1000e\"",
                "no `igb`",
            ),
        ] {
            let error = format!("{:#}", check_script(version, devices).unwrap_err());
            assert!(error.contains(expected), "expected `{expected}`: {error}");
        }
        let good = check_script("QEMU emulator version 10.1.0", igb).unwrap();
        assert_eq!(good.version, "10.1.0");
    }
}
