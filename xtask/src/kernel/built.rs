// SPDX-License-Identifier: MIT OR Apache-2.0

//! A kernel, as the other steps see it.

use std::path::PathBuf;

use super::config::Config;
use super::toolchain::Toolchain;

/// A kernel that modules can be built against.
pub(crate) struct Kernel {
    /// The build folder: `make -C` for modules.
    pub(crate) build: PathBuf,
    /// The source tree, with `.rustfmt.toml`.
    pub(crate) source: PathBuf,
    /// `uname -r` of it.
    pub(crate) release: String,
    /// Its `.config`.
    pub(crate) config: Config,
    /// What it was built with, and modules for it are.
    pub(super) toolchain: Toolchain,
}
