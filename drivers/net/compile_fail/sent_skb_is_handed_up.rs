// SPDX-License-Identifier: GPL-2.0

//! What is to be sent may be TCP's, and is not handed up as it is.
//~ error[E0308]: mismatched types

include!("nic.rs");

/// What a poll does.
pub fn receive(
    #[cfg(not(fixed))] skb: TxSkb,
    #[cfg(fixed)] skb: net::skb::RxSkb,
    napi: &Receive<'_, Nic>,
) {
    napi.receive(skb, &net::skb::RxMetadata::new(0));
}
