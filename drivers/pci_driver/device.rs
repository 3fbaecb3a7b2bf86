// SPDX-License-Identifier: GPL-2.0

//! Functions on devices for use in the callbacks.

use kernel::{
    bindings,
    device::Core,
    error::to_result,
    pci,
    prelude::*, //
};

fn as_raw(dev: &pci::Device<Core<'_>>) -> *mut bindings::pci_dev {
    // CAST: `pci::Device` is a transparent wrapper of `struct pci_dev`.
    core::ptr::from_ref(dev).cast_mut().cast()
}

/// Keeps the device from doing DMA and from raising message-signalled interrupts
/// (`pci_clear_master()`), until [`pci::Device::set_master`] is called.
pub fn clear_master(dev: &pci::Device<Core<'_>>) {
    // SAFETY: By its type invariant `dev` is valid.
    unsafe { bindings::pci_clear_master(as_raw(dev)) };
}

/// Restores what a reset of the slot has cleared in the configuration space, and enables the
/// device as it was (`pci_restore_state()`, `pci_reenable_device()`).
///
/// # Errors
///
/// Errors of `pci_reenable_device()`.
pub fn restore_state(dev: &pci::Device<Core<'_>>) -> Result {
    // SAFETY: By its type invariant `dev` is valid, and its device lock is held.
    unsafe { bindings::pci_restore_state(as_raw(dev)) };
    // SAFETY: As above.
    to_result(unsafe { bindings::pci_reenable_device(as_raw(dev)) })
}
