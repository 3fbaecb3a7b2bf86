// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a kernel is wanted for.

/// What a kernel is wanted for; a kernel to boot must have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Building `rigb.ko`.
    Module,
    /// Booting it under QEMU as well.
    Guest,
}
