// SPDX-License-Identifier: GPL-2.0

//! A NAPI is found through the lock of its own device, and takes no other.
//~ error[E0061]: this method takes 0 arguments but 1 argument was supplied

include!("nic.rs");

/// What the control path does.
pub fn open(dev: Locked<'_, Nic>, other: Locked<'_, Nic>) -> Result {
    let napi = dev.napi(0)?.disabled()?;

    #[cfg(not(fixed))]
    napi.enable(other);
    #[cfg(fixed)]
    napi.enable();
    let _ = other;
    Ok(())
}
