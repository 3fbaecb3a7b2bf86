// SPDX-License-Identifier: MIT OR Apache-2.0

//! What packages are called.

use crate::distribution::{Distribution, Manager};

/// A package's name for each of [`Manager::ALL`], or several.
pub type Names = [&'static str; Manager::ALL.len()];

/// QEMU's packages, where nobounce can't unpack Debian's.
pub const QEMU: Names = [
    "qemu-system-x86",
    "qemu-system-x86-core",
    "qemu-system-x86",
    "qemu-x86",
];
/// Those of the core library's source, for the distribution's own Rust.
pub const RUST_SRC: Names = ["rust-src"; 4];

/// The command that installs what nobounce unpacks in the cache, but on Debian alone.
pub fn command(names: &[Names], distribution: &Distribution) -> Option<String> {
    let manager = distribution.manager?;
    let names: Vec<_> = names.iter().map(|names| names[manager as usize]).collect();
    Some(manager.install(&names.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_debians_packages_elsewhere_is_a_package_of_the_distribution() {
        let command = |manager| {
            command(
                &[QEMU, RUST_SRC],
                &Distribution {
                    name: "Other".to_owned(),
                    manager,
                    debian: None,
                },
            )
        };
        for (manager, line) in [
            (
                Manager::Dnf,
                "sudo dnf install qemu-system-x86-core rust-src",
            ),
            (
                Manager::Pacman,
                "sudo pacman -S --needed qemu-system-x86 rust-src",
            ),
            (Manager::Zypper, "sudo zypper install qemu-x86 rust-src"),
        ] {
            assert_eq!(command(Some(manager)).as_deref(), Some(line));
        }
        assert_eq!(command(None), None);
    }
}
