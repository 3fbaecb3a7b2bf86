// SPDX-License-Identifier: GPL-2.0

//! netpoll polls without a budget: nothing may be handed up there.
//~ error[E0599]: no method named `receive` found

include!("nic.rs");

/// What a poll does that completes transmits.
pub fn complete(
    skb: net::skb::RxSkb,
    #[cfg(not(fixed))] napi: &Completion<'_, Nic>,
    #[cfg(fixed)] napi: &Receive<'_, Nic>,
) {
    napi.receive(skb, &net::skb::RxMetadata::new(0));
}
