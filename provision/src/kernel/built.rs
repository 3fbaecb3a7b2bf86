// SPDX-License-Identifier: MIT OR Apache-2.0

//! A kernel, as the other steps see it.

use std::path::PathBuf;

use super::config::Config;
use super::toolchain::Toolchain;

/// A kernel that modules can be built against.
pub struct Kernel {
    /// The build folder: `make -C` for modules.
    pub build: PathBuf,
    /// The source tree, with `.rustfmt.toml`.
    pub source: PathBuf,
    /// `uname -r` of it.
    pub release: String,
    /// Its `.config`.
    pub config: Config,
    /// What it was built with, and modules for it are.
    pub(super) toolchain: Toolchain,
}
