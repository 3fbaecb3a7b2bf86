// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds a QEMU with the igb model: `$QEMU`, else the system's where it is new
//! enough, else Debian's newest, unpacked in the cache and run through its own
//! loader so that none of the system's libraries matter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use vm::QemuCommand;

use crate::apt::Apt;
use crate::cmd::{Cmd, on_path};
use crate::project::Project;
use crate::ui;
use crate::unpacked::{LIBRARY, LOADER, Packages};
use crate::version::Version;

/// The first with what the harness relies on.
const MIN_QEMU: Version = Version::new(10, 1, 0);
/// The system's program.
const PROGRAM: &str = "qemu-system-x86_64";
/// Debian's packages: 40 MB, and what they unpack to.
const PACKAGES: Packages = Packages {
    what: "QEMU",
    folder: "qemu",
    suites: Apt::new,
    names: &["qemu-system-x86"],
    alone: None,
    version: "",
    space: 400_000_000,
    not_needed: &[
        "usr/share/doc",
        "usr/share/locale",
        "usr/share/man",
        "usr/share/lintian",
        "usr/share/perl5",
        "var",
    ],
};

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
        None => {
            let root = PACKAGES.get(project, "", |work| check(unpacked(work)).map(drop))?;
            check(unpacked(&root))
        }
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
            Err(error) if PACKAGES.find(&project.cache, "").is_none() => {
                ui::note(&format!("the system's QEMU isn't used: {error:#}"));
            }
            Err(_) => {}
        }
    }
    let Some(root) = PACKAGES.find(&project.cache, "") else {
        return Ok(None);
    };
    check(unpacked(&root))
        .with_context(|| PACKAGES.broken(&root))
        .map(Some)
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
    let library = at(LIBRARY);
    let argv = [
        at(LOADER),
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
