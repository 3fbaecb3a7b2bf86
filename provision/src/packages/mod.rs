// SPDX-License-Identifier: MIT OR Apache-2.0

//! Packages of the machine itself: finds out what is missing without asking a package manager, and
//! installs Debian's where the user may do that.

mod needed;

use anyhow::{Result, bail};

use crate::bindgen;
use crate::cmd::{Cmd, on_path};
use crate::distribution::{Distribution, Manager};
use crate::project::Project;
use crate::ui::{self, Step};

use needed::{NEEDED, NEEDED_BY_TESTS, Need};

/// What the machine lacks.
pub struct Missing(Vec<&'static Need>);

impl Missing {
    /// Looks; changes nothing.
    pub fn find() -> Self {
        Self::among(NEEDED)
    }

    /// As [`Self::find`], of what the recipes and their tests need beside that.
    pub fn find_of_recipes() -> Self {
        Self::among(NEEDED_BY_TESTS)
    }

    /// Those of `needs` that the machine lacks.
    fn among(needs: &'static [Need]) -> Self {
        Self(needs.iter().filter(|need| !need.is_there()).collect())
    }

    /// Whether it lacks nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their packages' names.
    fn packages(&self, manager: Manager) -> Vec<&'static str> {
        let names = self.0.iter().map(|need| need.names[manager as usize]);
        let mut names: Vec<_> = names.flat_map(str::split_whitespace).collect();
        names.dedup();
        names
    }

    /// What the user can do about it, beside taking the container.
    pub fn way_out(&self, distribution: &Distribution) -> String {
        let text = self.what_to_install(distribution);
        match self.0.iter().any(|need| need.is_bindgen()) {
            true => format!("{text}\n\nIt takes {}.", bindgen::wanted()),
            false => text,
        }
    }

    /// The command that installs them.
    pub fn command(&self, distribution: &Distribution) -> Option<String> {
        let manager = distribution.manager?;
        Some(manager.install(&self.packages(manager).join(" ")))
    }

    fn what_to_install(&self, distribution: &Distribution) -> String {
        match (&distribution.debian, self.command(distribution)) {
            (Some(_), _) => for_root_to_install(&self.packages(Manager::Apt)),
            (None, Some(command)) => {
                format!("these packages are missing:\n\n  {command}\n\n{AGAIN}")
            }
            (None, None) => format!(
                "missing, and this machine has no package manager that nobounce knows (the names \
                 are Debian's): {}",
                self.packages(Manager::Apt).join(" ")
            ),
        }
    }
}

/// Whether nobounce itself can install what is missing: on Debian, and as root.
pub fn may_install(distribution: &Distribution) -> bool {
    distribution.debian.is_some()
        && (rustix::process::geteuid().is_root() || sudo_without_password())
}

/// Installs what is missing. A machine that has everything runs no apt.
///
/// # Errors
///
/// When something is missing and can't be installed; lists all of it.
pub fn install_missing(project: &Project) -> Result<()> {
    install(project, &to_install()?)
}

/// As [`install_missing`], what the lab's tests need beside that.
///
/// # Errors
///
/// As [`install_missing`].
pub fn install_missing_of_tests(project: &Project) -> Result<()> {
    install(project, &installable(Missing::find_of_recipes())?)
}

/// What is missing, for [`install`].
///
/// # Errors
///
/// When something is missing and can't be installed; lists all of it.
pub fn to_install() -> Result<Missing> {
    installable(Missing::find())
}

fn installable(lacks: Missing) -> Result<Missing> {
    if lacks.is_empty() {
        return Ok(lacks);
    }
    let distribution = Distribution::here();
    if !may_install(&distribution) {
        bail!(
            "{}",
            distribution.with_container(lacks.way_out(&distribution))
        );
    }
    Ok(lacks)
}

/// Installs what is missing.
///
/// # Errors
///
/// When apt can't.
pub fn install(project: &Project, lacks: &Missing) -> Result<()> {
    if lacks.is_empty() {
        return Ok(());
    }
    // apt would not wait for another run.
    let _lock = project.cache.making("packages")?;
    let step = Step::begin("packages", "looking for what is missing");
    let root = rustix::process::geteuid().is_root();
    let missing = lacks.packages(Manager::Apt);
    let list = missing.join(" ");
    let unknown = missing.iter().any(|package| !known_to_apt(package));
    if unknown {
        apt_update(project, &step, root)?;
    }
    let mut result = apt_install(project, &step, root, &missing);
    if result.is_err() && !unknown {
        // The lists may name versions that the mirror has replaced.
        ui::note("apt-get install failed; reading the package lists anew");
        apt_update(project, &step, root)?;
        result = apt_install(project, &step, root, &missing);
    }
    result?;
    step.done(&format!("installed {list}"));
    Ok(())
}

const AGAIN: &str = "Install them and run this again.";

/// The message for a user who may not install.
fn for_root_to_install(missing: &[&str]) -> String {
    format!(
        "these Debian packages are missing, and installing them takes root (there is no sudo \
         without a password here):\n\n  sudo apt-get update\n  sudo apt-get install \
         --no-install-recommends {}\n\n{AGAIN}",
        missing.join(" ")
    )
}

fn apt_install(project: &Project, step: &Step, root: bool, packages: &[&str]) -> Result<()> {
    step.detail(&format!("installing {}", packages.join(" ")));
    apt_get(root)
        .args(["install", "-y", "--no-install-recommends"])
        .args(packages)
        .step(step, &project.log("packages"))
}

fn apt_update(project: &Project, step: &Step, root: bool) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_install_is_given_the_command() {
        let text = for_root_to_install(&["flex", "bison"]);
        let command = "\n  sudo apt-get install --no-install-recommends flex bison\n";
        assert!(text.contains(command), "{text}");
        assert!(text.contains("run this again"), "{text}");
    }

    /// A machine that lacks everything.
    fn nothing() -> Missing {
        Missing(NEEDED.iter().chain(NEEDED_BY_TESTS).collect())
    }

    #[test]
    fn a_package_is_named_once_and_as_each_distribution_does() {
        let missing = nothing();
        let [debian, fedora, arch, suse] = Manager::ALL.map(|manager| missing.packages(manager));
        assert_eq!(
            debian.iter().filter(|name| **name == "libc6-dev").count(),
            1
        );
        assert!(fedora.contains(&"glibc-static"), "{fedora:?}");
        assert!(arch.contains(&"clang"), "{arch:?}");
        assert!(suse.contains(&"libopenssl-devel"), "{suse:?}");
    }

    /// A distribution that isn't Debian.
    fn other(manager: Option<Manager>) -> Distribution {
        Distribution {
            name: "Other".to_owned(),
            manager,
            debian: None,
        }
    }

    #[test]
    fn other_distributions_are_given_their_managers_line() {
        for (manager, line) in [
            (Some(Manager::Dnf), "sudo dnf install gcc glibc-devel"),
            (Some(Manager::Pacman), "sudo pacman -S --needed gcc glibc"),
            (Some(Manager::Zypper), "sudo zypper install gcc glibc-devel"),
            (None, "no package manager that nobounce knows"),
        ] {
            let text = nothing().way_out(&other(manager));
            for part in [line, "bison"] {
                assert!(text.contains(part), "no `{part}` in: {text}");
            }
        }
    }

    #[test]
    fn the_container_has_what_is_needed() {
        let file = include_str!("../../../Containerfile");
        for package in nothing().packages(Manager::Apt) {
            let named = file
                .split(|c: char| c.is_whitespace() || c == ';')
                .any(|word| word == package);
            assert!(named, "{package} is not in the Containerfile");
        }
    }
}
