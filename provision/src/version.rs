// SPDX-License-Identifier: MIT OR Apache-2.0

//! Version numbers in what programs print about themselves.

use std::fmt;

/// Major, minor and patch; a missing patch is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// A version from its numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// The first `a.b` or `a.b.c` in `text`.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.')
            .find_map(|word| {
                let mut numbers = word.split('.');
                let major = numbers.next()?.parse().ok()?;
                let minor = numbers.next()?.parse().ok()?;
                let patch = numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0);
                Some(Self::new(major, minor, patch))
            })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        let find = |s| Version::find(s).map(|v| v.to_string());
        for (text, version) in [
            ("bindgen 0.72.1", "0.72.1"),
            (
                "QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)",
                "11.1.3",
            ),
            ("rustc 1.95.0 (59807616e 2026-04-14)", "1.95.0"),
            ("1.95.0+dfsg1-2~bpo13+1", "1.95.0"),
            ("7.3.4-1~bpo13+1", "7.3.4"),
            ("QEMU emulator version 10.1", "10.1.0"),
        ] {
            assert_eq!(find(text).as_deref(), Some(version), "in {text}");
        }
        assert_eq!(find("no numbers, 12 only"), None);
    }

    #[test]
    fn order_is_numeric_not_alphabetic() {
        assert!(Version::new(10, 1, 0) > Version::new(9, 9, 9));
        assert!(Version::new(0, 71, 1) <= Version::new(0, 71, 1));
    }
}
