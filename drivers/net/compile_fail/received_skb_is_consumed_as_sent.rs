// SPDX-License-Identifier: GPL-2.0

//! Frames that were received were not sent.
//~ error[E0308]: mismatched types

include!("nic.rs");

/// What a poll does.
pub fn receive(
    #[cfg(not(fixed))] skb: net::skb::RxSkb,
    #[cfg(fixed)] skb: TxSkb,
    napi: &Receive<'_, Nic>,
) {
    napi.consume(skb);
}
