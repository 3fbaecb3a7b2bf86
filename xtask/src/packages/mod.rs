// SPDX-License-Identifier: MIT OR Apache-2.0

//! Packages of the machine itself: finds out what is missing without asking a package manager, and
//! installs Debian's where the user may do that.

mod needed;

use anyhow::{Context, Result, bail};

use crate::cmd::{Cmd, on_path};
use crate::distribution::{Distribution, Manager};
use crate::project::Project;
use crate::tools::{self, MIN_LIBCLANG};
use crate::ui::{self, Step};

use needed::{LIBCLANG, NEEDED, NEEDED_BY_TESTS, Need};

/// What the machine lacks.
pub(crate) struct Missing {
    needs: Vec<&'static Need>,
    libclang: bool,
}

impl Missing {
    /// Looks; runs nothing.
    pub(crate) fn find() -> Self {
        Self {
            libclang: tools::libclang().is_none(),
            ..Self::among(NEEDED)
        }
    }

    /// Those of `needs` that the machine lacks.
    fn among(needs: &'static [Need]) -> Self {
        Self {
            needs: needs.iter().filter(|need| !need.is_there()).collect(),
            libclang: false,
        }
    }

    /// Whether it lacks nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.needs.is_empty() && !self.libclang
    }

    /// Their packages' names, without apt's libclang.
    fn packages(&self, manager: Manager) -> Vec<String> {
        let column = manager as usize;
        let mut names: Vec<_> = self.needs.iter().map(|need| need.names[column]).collect();
        if self.libclang && !LIBCLANG[column].is_empty() {
            names.push(LIBCLANG[column]);
        }
        names.dedup();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The same with it.
    ///
    /// # Errors
    ///
    /// When apt doesn't run.
    fn packages_of_apt(&self) -> Result<Vec<String>> {
        let mut list = self.packages(Manager::Apt);
        if self.libclang {
            list.push(newest_libclang(&search_libclang()?).unwrap_or_else(|| {
                // The lists may never have been read here.
                format!(
                    "$(apt-cache pkgnames libclang1- | sort -V | tail -1) # {MIN_LIBCLANG} or newer"
                )
            }));
        }
        Ok(list)
    }

    /// What the user can do about it, beside taking the container.
    ///
    /// # Errors
    ///
    /// When apt doesn't run.
    pub(crate) fn way_out(&self, distribution: &Distribution) -> Result<String> {
        Ok(match (&distribution.debian, distribution.manager) {
            (Some(_), _) => for_root_to_install(&self.packages_of_apt()?),
            (None, Some(manager)) => {
                let list = match manager {
                    Manager::Apt => self.packages_of_apt()?,
                    _ => self.packages(manager),
                };
                format!(
                    "these packages are missing:\n\n  sudo {} {}\n\n{AGAIN}",
                    manager.install(),
                    list.join(" ")
                )
            }
            (None, None) => {
                let mut list = self.packages(Manager::Apt);
                if self.libclang {
                    list.push(format!("libclang {MIN_LIBCLANG} or newer"));
                }
                format!(
                    "missing, and this machine has no package manager that nobounce knows (the \
                     names are Debian's): {}",
                    list.join(" ")
                )
            }
        })
    }
}

/// Whether nobounce itself can install what is missing: on Debian, and as root.
pub(crate) fn may_install(distribution: &Distribution) -> bool {
    distribution.debian.is_some()
        && (rustix::process::geteuid().is_root() || sudo_without_password())
}

/// Installs what is missing. A machine that has everything runs no apt.
///
/// # Errors
///
/// When something is missing and can't be installed; lists all of it.
pub(crate) fn install_missing(project: &Project) -> Result<()> {
    get(project, &Missing::find())
}

/// As [`install_missing`], what the lab's tests need beside that.
///
/// # Errors
///
/// As [`install_missing`].
pub(crate) fn install_missing_of_tests(project: &Project) -> Result<()> {
    get(project, &Missing::among(NEEDED_BY_TESTS))
}

fn get(project: &Project, lacks: &Missing) -> Result<()> {
    if lacks.is_empty() {
        return Ok(());
    }
    let distribution = Distribution::here();
    if !may_install(&distribution) {
        let text = lacks.way_out(&distribution)?;
        bail!("{}", distribution.with_container(text));
    }
    // apt would not wait for another run.
    let _lock = project.cache.making("packages")?;
    let step = Step::begin("packages", "looking for what is missing");
    let root = rustix::process::geteuid().is_root();
    let mut missing = lacks.packages(Manager::Apt);
    let mut updated = false;
    if lacks.libclang {
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

const AGAIN: &str = "Install them and run this again.";

/// The message for a user who may not install.
fn for_root_to_install(missing: &[String]) -> String {
    format!(
        "these Debian packages are missing, and installing them takes root (there is no sudo \
         without a password here):\n\n  sudo apt-get update\n  sudo apt-get install \
         --no-install-recommends {}\n\n{AGAIN}",
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

    /// A machine that lacks everything.
    fn nothing() -> Missing {
        Missing {
            needs: NEEDED.iter().chain(NEEDED_BY_TESTS).collect(),
            libclang: true,
        }
    }

    #[test]
    fn a_package_is_named_once_and_as_each_distribution_does() {
        let missing = nothing();
        let [debian, fedora, arch, suse] = Manager::ALL.map(|manager| missing.packages(manager));
        assert_eq!(debian.iter().filter(|name| *name == "libc6-dev").count(), 1);
        assert!(fedora.contains(&"glibc-static".to_owned()), "{fedora:?}");
        assert!(arch.contains(&"clang".to_owned()), "{arch:?}");
        assert!(suse.contains(&"libopenssl-devel".to_owned()), "{suse:?}");
    }

    #[test]
    fn other_distributions_are_given_their_managers_line() {
        for (manager, line) in [
            (Some(Manager::Dnf), "sudo dnf install gcc glibc-devel"),
            (Some(Manager::Pacman), "sudo pacman -S --needed gcc glibc"),
            (Some(Manager::Zypper), "sudo zypper install gcc glibc-devel"),
            (None, "no package manager that nobounce knows"),
        ] {
            let distribution = Distribution {
                name: "Other".to_owned(),
                manager,
                debian: None,
            };
            let text = nothing().way_out(&distribution).unwrap();
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
