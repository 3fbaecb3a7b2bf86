// SPDX-License-Identifier: GPL-2.0

//! While a NAPI is enabled its state is the poll's.
//~ error[E0599]: no method named `state` found

include!("nic.rs");

/// What the control path does.
pub fn change(dev: Locked<'_, Nic>) -> Result {
    #[cfg(not(fixed))]
    let mut napi = dev.napi(0)?.enabled()?;
    #[cfg(fixed)]
    let mut napi = dev.napi(0)?.enabled()?.disable();

    let _: &mut Queue = napi.state();
    Ok(())
}
