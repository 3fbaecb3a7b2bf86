// SPDX-License-Identifier: GPL-2.0

//! Until a pool is attached, the control path allocates from it: its NAPI must not be polled.
//~ error[E0308]: mismatched types

include!("nic.rs");

/// What the control path does.
pub fn open(dev: Locked<'_, Nic>, pool: &mut net::page_pool::PagePool<Nic>) -> Result {
    #[cfg(not(fixed))]
    let napi = dev.napi(0)?.enabled()?;
    #[cfg(fixed)]
    let napi = dev.napi(0)?.disabled()?;

    pool.attach(&napi)
}
