// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which distribution this is: what installs packages there, and whether the mirror of its apt has
//! Debian's newer suites, which the kernel source and QEMU come from.

use fs_err as fs;

use crate::cmd::on_path;

/// What there is where Debian's packages can't be had.
pub const CONTAINER: &str = "The container has all that is needed. In the checkout:

  podman build -t nobounce .
  podman run --rm -it --userns=keep-id:uid=1000,gid=1000 --security-opt label=disable \\
    -v \"$PWD:/home/user/nobounce\" -v nobounce-cache:/home/user/.cache nobounce make run";

/// The oldest Debian whose apt and libraries do.
const MIN_DEBIAN: u32 = 12;

/// A package manager; also a column of the table of packages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manager {
    /// Debian's.
    Apt,
    /// Fedora's.
    Dnf,
    /// Arch's.
    Pacman,
    /// openSUSE's.
    Zypper,
}

impl Manager {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 4] = [Self::Apt, Self::Dnf, Self::Pacman, Self::Zypper];

    /// Its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Dnf => "dnf",
            Self::Pacman => "pacman",
            Self::Zypper => "zypper",
        }
    }

    /// What a user types to install these packages.
    pub fn install(self, packages: &str) -> String {
        let install = match self {
            Self::Apt => "apt-get install --no-install-recommends",
            Self::Dnf => "dnf install",
            Self::Pacman => "pacman -S --needed",
            Self::Zypper => "zypper install",
        };
        format!("sudo {install} {packages}")
    }

    /// That of a distribution, by a word of its `ID` or `ID_LIKE`.
    fn of_family(word: &str) -> Option<Self> {
        match word {
            "debian" | "ubuntu" => Some(Self::Apt),
            "fedora" | "rhel" | "centos" => Some(Self::Dnf),
            "arch" => Some(Self::Pacman),
            "suse" | "opensuse" => Some(Self::Zypper),
            _ => None,
        }
    }
}

/// The distribution of a machine.
#[derive(Debug)]
pub struct Distribution {
    /// What it calls itself.
    pub name: String,
    /// What installs its packages, if nobounce knows it.
    pub manager: Option<Manager>,
    /// The codename, where it is a Debian that is new enough and has apt.
    pub debian: Option<String>,
}

impl Distribution {
    /// This machine's.
    pub fn here() -> Self {
        Self::of(
            &fs::read_to_string("/etc/os-release").unwrap_or_default(),
            on_path,
        )
    }

    /// That of an os-release file, on a machine that has these programs.
    fn of(os_release: &str, has: impl Fn(&str) -> bool) -> Self {
        let field = |name| os_field(os_release, name).unwrap_or_default();
        let there = |manager: &Manager| has(manager.program());
        // A distribution's own before any other that happens to be installed.
        let family = format!("{} {}", field("ID"), field("ID_LIKE"));
        let manager = family
            .split_whitespace()
            .filter_map(Manager::of_family)
            .find(there)
            .or_else(|| Manager::ALL.into_iter().find(there));
        // Suites before a release have no number.
        let new_enough = field("VERSION_ID")
            .parse::<u32>()
            .map_or(true, |version| version >= MIN_DEBIAN);
        let is_debian = field("ID") == "debian" && new_enough && manager == Some(Manager::Apt);
        let or = |text: &str, default: &str| match text {
            "" => default.to_owned(),
            text => text.to_owned(),
        };
        Self {
            name: or(field("PRETTY_NAME"), "unknown"),
            manager,
            debian: is_debian.then(|| or(field("VERSION_CODENAME"), "stable")),
        }
    }

    /// What was said, and the container where this isn't Debian.
    pub fn with_container(&self, text: String) -> String {
        match self.debian {
            Some(_) => text,
            None => format!("{text}\n\n{CONTAINER}"),
        }
    }
}

/// A field of an os-release file.
fn os_field<'a>(os_release: &'a str, name: &str) -> Option<&'a str> {
    os_release
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_fields_are_read_with_and_without_quotes() {
        let text = "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME='bookworm'\n";
        assert_eq!(os_field(text, "VERSION_CODENAME"), Some("bookworm"));
        assert_eq!(os_field(text, "VERSION_ID"), Some("12"));
        assert_eq!(os_field(text, "ID"), Some("debian"));
        assert_eq!(os_field(text, "ID_LIKE"), None);
    }

    #[test]
    fn the_manager_is_the_distributions_own() {
        for (os_release, manager) in [
            ("ID=fedora\nVERSION_ID=44\n", Manager::Dnf),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
                Manager::Dnf,
            ),
            ("ID=arch\n", Manager::Pacman),
            ("ID=manjaro\nID_LIKE=arch\n", Manager::Pacman),
            (
                "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n",
                Manager::Zypper,
            ),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Manager::Apt),
        ] {
            let found = Distribution::of(os_release, |_| true);
            assert_eq!(found.manager, Some(manager), "{os_release}");
            assert_eq!(found.debian, None, "{os_release}");
        }
    }

    #[test]
    fn what_is_on_path_decides_where_the_distribution_is_unknown() {
        let found = Distribution::of("ID=own\n", |program| program == "zypper");
        assert_eq!(found.manager, Some(Manager::Zypper));
        assert_eq!(Distribution::of("ID=debian\n", |_| false).manager, None);
    }

    #[test]
    fn debian_is_one_that_is_new_enough_and_has_apt() {
        let debian =
            |os_release| Distribution::of(os_release, |program| program == "apt-get").debian;
        let bookworm = "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n";
        assert_eq!(debian(bookworm).as_deref(), Some("bookworm"));
        let testing = "ID=debian\nVERSION_CODENAME=forky\n";
        assert_eq!(debian(testing).as_deref(), Some("forky"));
        assert_eq!(debian("ID=debian\nVERSION_ID=\"11\"\n"), None);
        let ubuntu = "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"26.04\"\n";
        assert_eq!(debian(ubuntu), None);
        assert_eq!(Distribution::of(bookworm, |_| false).debian, None);
    }

    #[test]
    fn the_container_is_named_only_where_this_is_not_debian() {
        let said = |os_release| {
            Distribution::of(os_release, |_| true).with_container("flex is missing".to_owned())
        };
        assert_eq!(said("ID=debian\n"), "flex is missing");
        let ubuntu = said("ID=ubuntu\nID_LIKE=debian\n");
        assert!(ubuntu.starts_with("flex is missing\n\n"), "{ubuntu}");
        assert!(ubuntu.contains("podman build"), "{ubuntu}");
    }
}
