// SPDX-License-Identifier: MIT OR Apache-2.0

//! Debian packages of the machine itself: finds out what is missing without
//! asking apt, and installs it where the user may do that.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cmd::{Cmd, on_path};
use crate::project::Project;
use crate::tools::{self, MIN_LIBCLANG};
use crate::ui::{self, Step};

/// How to see that a package isn't needed.
enum Probe {
    /// A program on PATH.
    Program(&'static str),
    /// A header file.
    Header(&'static str),
}

/// What a kernel build with Rust, a static guest binary and the recipes need, and
/// the package that has it.
const NEEDED: &[(Probe, &str)] = &[
    (Probe::Program("gcc"), "gcc"),
    (Probe::Header("/usr/include/stdio.h"), "libc6-dev"),
    (Probe::Program("make"), "make"),
    (Probe::Program("flex"), "flex"),
    (Probe::Program("bison"), "bison"),
    (Probe::Program("bc"), "bc"),
    (Probe::Program("xz"), "xz-utils"),
    (Probe::Program("python3"), "python3"),
    (Probe::Header("/usr/include/libelf.h"), "libelf-dev"),
    (
        Probe::Header("/usr/include/openssl/opensslv.h"),
        "libssl-dev",
    ),
];

impl Probe {
    fn found(&self) -> bool {
        match self {
            Self::Program(name) => on_path(name),
            Self::Header(path) => Path::new(path).is_file(),
        }
    }
}

/// Installs what is missing. A machine that has everything runs no apt.
///
/// # Errors
///
/// When something is missing and can't be installed; lists all of it.
pub(crate) fn install_missing(project: &Project) -> Result<()> {
    let mut missing: Vec<String> = NEEDED
        .iter()
        .filter(|(probe, _)| !probe.found())
        .map(|(_, package)| (*package).to_owned())
        .collect();
    let libclang_missing = tools::libclang().is_none();
    if missing.is_empty() && !libclang_missing {
        return Ok(());
    }
    if !on_path("apt-get") {
        if libclang_missing {
            missing.push(format!("libclang {MIN_LIBCLANG} or newer"));
        }
        bail!(
            "missing, and this machine has no apt to install it with (the names are Debian's): {}",
            missing.join(" ")
        );
    }
    let step = Step::begin("packages", "looking for what is missing");
    let root = rustix::process::geteuid().is_root();
    if !root && !sudo_without_password() {
        if libclang_missing {
            missing.push(newest_libclang(&search_libclang()?).unwrap_or_else(|| {
                // The lists may never have been read here.
                format!(
                    "$(apt-cache pkgnames libclang1- | sort -V | tail -1) # {MIN_LIBCLANG} or newer"
                )
            }));
        }
        bail!("{}", for_root_to_install(&missing));
    }
    let mut updated = false;
    if libclang_missing {
        if newest_libclang(&search_libclang()?).is_none() {
            update(project, &step, root)?;
            updated = true;
        }
        missing.push(newest_libclang(&search_libclang()?).with_context(|| {
            format!(
                "bindgen needs libclang {MIN_LIBCLANG} or newer, and apt offers none (Debian 12 \
                 has it in the suite bookworm-security): add a suite that has it, or set \
                 LIBCLANG_PATH to the folder of one"
            )
        })?);
    }
    let list = missing.join(" ");
    if !updated && missing.iter().any(|package| !known_to_apt(package)) {
        update(project, &step, root)?;
        updated = true;
    }
    let mut result = install(project, &step, root, &missing);
    if result.is_err() && !updated {
        // The lists may name versions that the mirror has replaced.
        ui::note("apt-get install failed; reading the package lists anew");
        update(project, &step, root)?;
        result = install(project, &step, root, &missing);
    }
    result?;
    step.done(&format!("installed {list}"));
    Ok(())
}

/// The message for a user who may not install.
fn for_root_to_install(missing: &[String]) -> String {
    format!(
        "these Debian packages are missing, and installing them takes root (there is no sudo \
         without a password here):\n\n  sudo apt-get update\n  sudo apt-get install \
         --no-install-recommends {}\n\nInstall them and run this again.",
        missing.join(" ")
    )
}

fn install(project: &Project, step: &Step, root: bool, packages: &[String]) -> Result<()> {
    step.detail(&format!("installing {}", packages.join(" ")));
    apt_get(root)
        .args(["install", "-y", "--no-install-recommends"])
        .args(packages)
        .step(step, &project.log("packages"))
}

fn update(project: &Project, step: &Step, root: bool) -> Result<()> {
    step.detail("apt-get update");
    apt_get(root)
        .arg("update")
        .step(step, &project.log("packages-update"))
}

fn apt_get(root: bool) -> Cmd {
    let cmd = if root {
        Cmd::new("env")
    } else {
        Cmd::new("sudo").args(["-n", "env"])
    };
    // A lock that another apt holds for a while is waited for.
    cmd.args(["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get"])
        .args(["-o", "DPkg::Lock::Timeout=300"])
}

fn sudo_without_password() -> bool {
    on_path("sudo") && Cmd::new("sudo").args(["-n", "true"]).output().is_ok()
}

fn known_to_apt(package: &str) -> bool {
    Cmd::new("apt-cache")
        .args(["show", "--no-all-versions", package])
        .output()
        .is_ok_and(|text| !text.trim().is_empty())
}

fn search_libclang() -> Result<String> {
    Cmd::new("apt-cache")
        .args(["search", "--names-only", "^libclang1-[0-9]+(t64)?$"])
        .output()
}

/// The newest `libclang1-N` in what `apt-cache search` printed.
fn newest_libclang(search: &str) -> Option<String> {
    search
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter_map(|name| {
            let number = name.strip_prefix("libclang1-")?.trim_end_matches("t64");
            Some((number.parse::<u32>().ok()?, name))
        })
        .filter(|(major, _)| *major >= MIN_LIBCLANG)
        .max()
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_install_is_given_the_command() {
        let text = for_root_to_install(&["flex".to_owned(), "bison".to_owned()]);
        let command = "\n  sudo apt-get install --no-install-recommends flex bison\n";
        assert!(text.contains(command), "{text}");
        assert!(text.contains("run this again"), "{text}");
    }

    #[test]
    fn what_a_machine_lacks_is_found_without_asking_apt() {
        assert!(Probe::Program("sh").found());
        assert!(!Probe::Program("no-such-program-here").found());
        assert!(!Probe::Header("/usr/include/no/such.h").found());
    }

    #[test]
    fn the_newest_libclang_that_the_kernel_takes_is_chosen() {
        let search = "libclang1-13 - C interface to the Clang library\n\
                      libclang1-22 - C interface to the Clang library\n\
                      libclang1-17t64 - C interface to the Clang library\n\
                      libclang1-19 - C interface to the Clang library\n";
        assert_eq!(newest_libclang(search).as_deref(), Some("libclang1-22"));
        let old = "libclang1-13 - x\nlibclang1-16 - x\nlibclang1-17t64 - x\n";
        assert_eq!(newest_libclang(old).as_deref(), Some("libclang1-17t64"));
        assert_eq!(
            newest_libclang("libclang1-14 - x\nlibclang1-16 - x\n"),
            None
        );
        assert_eq!(newest_libclang(""), None);
    }
}
