// SPDX-License-Identifier: GPL-2.0

//! A page pool has one consumer: the polls of the NAPI that it is attached to, or the control path.
//~ error[E0599]: no method named `alloc` found

include!("nic.rs");

/// What a poll does.
pub fn refill(
    pool: &mut net::page_pool::PagePool<Nic>,
    napi: &Receive<'_, Nic>,
) -> Option<net::page_pool::Netmem> {
    #[cfg(not(fixed))]
    let mut pool = pool;
    #[cfg(fixed)]
    let mut pool = pool.allocator(napi)?;
    let _ = napi.index();

    pool.alloc()
}
