// SPDX-License-Identifier: GPL-2.0

//! Where memory may be allocated from a pool is not for a driver to say.
//~ error[E0277]: the trait bound `Anywhere: net::page_pool::sealed::Sealed` is not satisfied

include!("nic.rs");

extern crate net_bindings;

/// A context of the driver's own.
pub struct Anywhere;

#[cfg(not(fixed))]
impl net::page_pool::Context for Anywhere {
    fn polls(&self) -> *const net_bindings::napi_struct {
        core::ptr::null()
    }
}

/// What a poll does.
pub fn refill(
    pool: &mut net::page_pool::PagePool<Nic>,
    #[cfg(not(fixed))] context: &Anywhere,
    #[cfg(fixed)] context: &Receive<'_, Nic>,
) -> Option<net::page_pool::Netmem> {
    pool.allocator(context)?.alloc()
}
