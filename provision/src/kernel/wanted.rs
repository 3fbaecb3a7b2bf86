// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a kernel is wanted for.

/// What a kernel is wanted for; each must have what those before it must, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Building `rigb.ko`.
    Module,
    /// Booting it under QEMU as well.
    Guest,
    /// Running programs of this machine's in the guest, too.
    Programs,
}
