// SPDX-License-Identifier: GPL-2.0

//! Frames that are to be sent.

use core::{
    mem::ManuallyDrop,
    ops::Deref, //
};

use kernel::prelude::*;
use net_bindings as bindings;

use super::SkbRef;
use crate::{
    hwtstamp::AwaitingTimestamp,
    once::read_once, //
};

/// What segmentation offload needs to know of a frame.
pub struct Segmentation {
    /// Payload bytes of each segment but the last.
    pub mss: u16,
    /// The number of segments.
    pub segments: u16,
}

/// What a device must do to a frame that it sends.
#[derive(Copy, Clone)]
pub struct TxOffloads {
    checksum: bool,
    vlan_tag: bool,
    timestamp: bool,
}

impl TxOffloads {
    #[inline]
    pub(super) fn of(skb: &SkbRef<'_>) -> Self {
        // SAFETY: The skb is valid; both parts of the union are plain data.
        unsafe {
            Self {
                checksum: (*skb.fields()).ip_summed() == bindings::CHECKSUM_PARTIAL as u8,
                vlan_tag: (*skb.fields()).__bindgen_anon_2.vlan_all != 0,
                timestamp: (*skb.shared_info()).tx_flags & bindings::NET_SHIM_TX_TIMESTAMP != 0,
            }
        }
    }

    /// Nothing.
    #[inline]
    pub fn is_empty(self) -> bool {
        !(self.checksum || self.vlan_tag || self.timestamp)
    }

    /// Fill in a TCP or UDP checksum; segment, perhaps.
    #[inline]
    pub fn checksum(self) -> bool {
        self.checksum
    }

    /// Take a timestamp when it goes out.
    #[inline]
    pub fn timestamp(self) -> bool {
        self.timestamp
    }

    /// Insert a VLAN tag.
    #[inline]
    pub fn vlan_tag(self) -> bool {
        self.vlan_tag
    }
}

/// A frame that the core wants sent.
///
/// # Invariants
///
/// Owns a reference to the skb.
pub struct TxSkb(SkbRef<'static>);

// SAFETY: An skb may be used by any one thread at a time.
unsafe impl Send for TxSkb {}

impl Deref for TxSkb {
    type Target = SkbRef<'static>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl TxSkb {
    /// `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// The caller must own `skb` and gives it away.
    #[inline]
    pub(crate) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Option<Self> {
        // SAFETY: As this function requires. INVARIANT: As this function requires.
        unsafe { SkbRef::from_raw(skb) }.map(Self)
    }

    #[inline]
    pub(crate) fn into_raw(self) -> *mut bindings::sk_buff {
        ManuallyDrop::new(self).as_raw()
    }

    /// Promises its sender the time at which the device sends it, in place of
    /// [`Self::timestamp`]'s. From here on it is shared, so that it cannot be padded or prepared for
    /// segmentation.
    #[inline]
    pub fn await_timestamp(&mut self) -> AwaitingTimestamp {
        let skb = self.as_raw();

        // SAFETY: The skb is ours; a reference is taken for the result (`skb_get()`). CAST: The
        // kernel crate has a name of its own for the counter's type, and a flag is a byte's.
        unsafe {
            (*self.shared_info().cast_mut()).tx_flags |= bindings::SKBTX_IN_PROGRESS as u8;
            bindings::refcount_inc((&raw mut (*skb).users).cast());
            AwaitingTimestamp::new(skb)
        }
    }

    /// Appends zeroes up to `len` bytes, for a device that sends no shorter frames; `None`, and the skb
    /// is gone, if there is no memory, if it is shared, or if they are more than 65535.
    #[inline]
    pub fn pad_to(self, len: u32) -> Option<Self> {
        let missing = len.saturating_sub(self.len());

        if missing == 0 {
            return Some(self);
        }
        if self.is_shared() || missing > u16::MAX.into() {
            return None;
        }
        let raw = self.into_raw();
        // SAFETY: We own the skb, and nobody shares it; the first function frees it on failure, and
        // leaves room for the second one. CAST: Checked above.
        unsafe {
            if bindings::__skb_pad(raw, missing as c_int, true) != 0 {
                return None;
            }
            bindings::skb_put(raw, missing);
            Self::from_raw(raw)
        }
    }

    /// Writes the headers as segmentation offload wants them: no lengths, no IP checksum, and a
    /// pseudo-header checksum without a length.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the headers are shared and cannot be copied, `EBUSY` if all of it is, `EINVAL` if
    /// it is not to be segmented as TCP or UDP, or the headers are not in the linear part.
    #[inline]
    pub fn prepare_segmentation(&mut self) -> Result {
        // SAFETY: The skb is ours. Its headers are not shared when they are written.
        kernel::error::to_result(unsafe { bindings::net_shim_skb_tso_prepare(self.as_raw()) })
    }

    /// Takes a software timestamp if one was asked for: just before the doorbell.
    #[inline]
    pub fn timestamp(&self) {
        #[cfg(CONFIG_NETWORK_PHY_TIMESTAMPING)]
        // SAFETY: The skb is ours.
        unsafe {
            bindings::skb_clone_tx_timestamp(self.as_raw());
        }
        // SAFETY: The skb is ours.
        let flags = u32::from(unsafe { (*self.shared_info()).tx_flags });

        if flags & (bindings::SKBTX_SW_TSTAMP | bindings::SKBTX_BPF) != 0 {
            // SAFETY: As above; no timestamp is the system's.
            unsafe { bindings::skb_tstamp_tx(self.as_raw(), core::ptr::null_mut()) };
        }
    }

    /// Returns whether somebody else has a reference, too (`skb_shared()`).
    fn is_shared(&self) -> bool {
        // SAFETY: The skb is ours.
        unsafe { read_once(&raw const (*self.as_raw()).users.refs.counter) != 1 }
    }
}

impl Drop for TxSkb {
    fn drop(&mut self) {
        // SAFETY: We own the skb (`dev_kfree_skb_any()`).
        unsafe {
            bindings::dev_kfree_skb_any_reason(
                self.as_raw(),
                bindings::skb_drop_reason_SKB_DROP_REASON_NOT_SPECIFIED,
            );
        }
    }
}
