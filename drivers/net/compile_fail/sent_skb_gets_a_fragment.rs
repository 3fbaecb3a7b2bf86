// SPDX-License-Identifier: GPL-2.0

//! TCP may keep a clone of an skb that it sends: what they share must not be written.
//~ error[E0599]: no method named `add_fragment` found

include!("nic.rs");

/// What a transmit path does.
pub fn transmit(
    netmem: &mut Option<net::page_pool::Netmem>,
    #[cfg(not(fixed))] skb: &mut TxSkb,
    #[cfg(fixed)] skb: &mut net::skb::RxSkb,
    napi: &Receive<'_, Nic>,
) {
    let _ = skb.add_fragment(netmem, 0, 64, 4096, napi);
}
