// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernels that are built of one source, and how they differ.

/// One of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// What the cases run on and figures are measured with.
    Plain,
    /// With whatever finds a driver's bugs, built by clang.
    Debug,
    /// With what programs use: the kernel's own driver selftests, and users'.
    Lab,
    /// The plain one built by clang, with C helpers inlined into Rust: for the benchmark.
    Clang,
}

impl Flavour {
    /// Its configuration, from the root of the checkout. What comes later wins.
    pub(super) fn fragments(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["qemu/kernel/base.config"],
            Self::Debug => &["qemu/kernel/base.config", "qemu/kernel/debug.config"],
            Self::Lab => &["qemu/kernel/base.config", "qemu/kernel/lab.config"],
            Self::Clang => &["qemu/kernel/base.config", "qemu/kernel/clang.config"],
        }
    }

    /// Bytes that a build folder takes. Types for BPF come from debug information, which is large.
    pub(super) fn space(self) -> u64 {
        match self {
            Self::Plain | Self::Clang => 600_000_000,
            Self::Debug => 1_500_000_000,
            Self::Lab => 2_800_000_000,
        }
    }

    /// The file that remembers how many objects were made.
    pub(super) fn counter(self) -> &'static str {
        match self {
            Self::Plain => "objects",
            Self::Debug => "objects-debug",
            Self::Lab => "objects-lab",
            Self::Clang => "objects-clang",
        }
    }

    /// The folder, in `target/nobounce`, of what is made for it.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Debug => "debug",
            Self::Lab => "lab",
            Self::Clang => "clang",
        }
    }

    /// The option that asks for it.
    pub fn option(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Debug => Some("--debug"),
            Self::Lab => Some("--lab"),
            Self::Clang => Some("--clang"),
        }
    }
}
