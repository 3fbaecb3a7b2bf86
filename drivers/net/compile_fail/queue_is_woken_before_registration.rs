// SPDX-License-Identifier: GPL-2.0

//! A TX queue has no queueing discipline before its device is registered.
//~ error[E0599]: no method named `wake_tx` found

include!("nic.rs");

/// What probe does.
pub fn probe(
    #[cfg(not(fixed))] dev: net::device::DeviceRef<Nic>,
    #[cfg(fixed)] dev: Locked<'_, Nic>,
) {
    dev.wake_tx(0);
}
