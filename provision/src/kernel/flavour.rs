// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernels that are built of one source, and how they differ.

/// One of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// What all runs on: the cases, the kernel's own driver selftests, users' programs.
    Plain,
    /// Without what only programs use: what a byte costs is counted with it.
    Lean,
    /// With whatever finds a driver's bugs, built by clang.
    Debug,
    /// The lean one built by clang, with C helpers inlined into Rust: for the benchmark.
    Clang,
}

impl Flavour {
    /// Its configuration, from the root of the checkout. What comes later wins.
    pub(super) fn fragments(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["qemu/kernel/base.config", "qemu/kernel/lab.config"],
            Self::Lean => &["qemu/kernel/base.config"],
            Self::Debug => &["qemu/kernel/base.config", "qemu/kernel/debug.config"],
            Self::Clang => &["qemu/kernel/base.config", "qemu/kernel/clang.config"],
        }
    }

    /// Bytes that a build folder takes. Types for BPF come from debug information, which is large.
    pub(super) fn space(self) -> u64 {
        match self {
            Self::Plain => 2_800_000_000,
            Self::Lean | Self::Clang => 600_000_000,
            Self::Debug => 1_500_000_000,
        }
    }

    /// Whether the objects of a finished build stay: the benchmark takes from them which part of the kernel a
    /// function is of.
    pub(super) fn keeps_objects(self) -> bool {
        matches!(self, Self::Lean | Self::Clang)
    }

    /// The file that remembers how many objects were made.
    pub(super) fn counter(self) -> &'static str {
        match self {
            Self::Plain => "objects",
            Self::Lean => "objects-lean",
            Self::Debug => "objects-debug",
            Self::Clang => "objects-clang",
        }
    }

    /// The folder, in `target/nobounce`, of what is made for it.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Lean => "lean",
            Self::Debug => "debug",
            Self::Clang => "clang",
        }
    }

    /// The option that asks for it.
    pub fn option(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Lean => Some("--lean"),
            Self::Debug => Some("--debug"),
            Self::Clang => Some("--clang"),
        }
    }
}
