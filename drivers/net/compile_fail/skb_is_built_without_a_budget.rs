// SPDX-License-Identifier: GPL-2.0

//! netpoll polls without a budget, perhaps with interrupts off: no skb may be built there.
//~ error[E0308]: mismatched types

include!("nic.rs");

/// What a poll does that completes transmits.
pub fn complete(
    buffer: &mut Option<net::fragment::Fragment>,
    #[cfg(not(fixed))] napi: &Completion<'_, Nic>,
    #[cfg(fixed)] napi: &Receive<'_, Nic>,
) {
    let _ = net::skb::RxSkb::build(buffer, net::skb::HEADROOM, 60, napi);
}
