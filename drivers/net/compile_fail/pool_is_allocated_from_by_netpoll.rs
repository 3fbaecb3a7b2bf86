// SPDX-License-Identifier: GPL-2.0

//! netpoll may have interrupted the poll that allocates from the pool.
//~ error[E0277]: the trait bound `net::napi::Completion<'_, Nic>: net::page_pool::Context` is not satisfied

include!("nic.rs");

/// What a poll does that completes transmits.
pub fn complete(
    pool: &mut net::page_pool::PagePool<Nic>,
    #[cfg(not(fixed))] napi: &Completion<'_, Nic>,
    #[cfg(fixed)] napi: &Receive<'_, Nic>,
) {
    let _ = pool.allocator(napi);
}
