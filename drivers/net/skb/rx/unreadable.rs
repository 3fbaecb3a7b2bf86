// SPDX-License-Identifier: GPL-2.0

//! Frames of queues whose fragments the CPU can't read.
//!
//! An skb must not mix readable and unreadable fragments: TCP refuses such an skb, and GRO does not
//! check. So [`Receive::receive`] does. A device that reports payload as headers causes such a mix
//! among unreadable frames, too, and these functions keep that payload where it is.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use net_bindings as bindings;

use super::{
    RxSkb,
    SkbRef,
    ETH_HLEN, //
};
use crate::{
    device::Driver,
    fragment::Fragment,
    napi::Receive, //
};

impl RxSkb {
    /// As [`Self::copy_headers`], in an skb of its own, which has room for any length.
    ///
    /// Its head stays its own: neither GRO nor TCP makes a fragment of it (`skb_gro_receive()`,
    /// `skb_head_is_locked()`), and puts that among unreadable ones.
    #[cold]
    pub fn copy_headers_apart<T: Driver>(
        buffer: &Fragment,
        headroom: u32,
        len: u32,
        napi: &Receive<'_, T>,
    ) -> Option<Self> {
        let from = buffer.room(headroom, len)?;

        if len < ETH_HLEN {
            return None;
        }
        let (page, offset) = (buffer.netmem(), buffer.offset() + headroom);

        page.sync_received(offset, len, napi);
        // SAFETY: The buffer has that many bytes, which are initialised; in a poll with a budget, as the
        // skb cache wants.
        let skb =
            NonNull::new(unsafe { bindings::net_shim_napi_skb_of(from.as_ptr().cast(), len) });
        page.sync_to_post(offset, len, napi);
        // INVARIANT: It is new, ours, and has an Ethernet header.
        skb.map(|skb| Self {
            skb: SkbRef(skb, PhantomData),
            reusable: false,
        })
    }

    /// Whether the CPU can't read its fragments, or those of its flow.
    #[inline]
    pub(crate) fn is_unreadable(&self) -> bool {
        // SAFETY: The skb is ours.
        unsafe { (*self.fields()).unreadable() != 0 }
    }

    /// Marks a frame without fragments as one of a flow whose fragments are unreadable: should it have
    /// payload, GRO adds them to it.
    #[inline]
    pub fn set_unreadable(&mut self) {
        // SAFETY: The skb is ours.
        unsafe { (*self.fields_mut()).set_unreadable(1) };
    }
}
