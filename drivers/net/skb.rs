// SPDX-License-Identifier: GPL-2.0

//! Socket buffers.
//!
//! C header: `include/linux/skbuff.h`

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};

use kernel::prelude::*;
use net_bindings as bindings;

use crate::{
    fragment::Fragment,
    hwtstamp::AwaitingStamp,
    page_pool::Netmem, //
};

/// What a buffer that becomes the linear part of an skb needs before the packet, in bytes.
pub const HEADROOM: u32 = bindings::NET_SHIM_SKB_PAD;

/// What such a buffer needs after the packet, in bytes (`struct skb_shared_info`).
pub const TAILROOM: u32 = bindings::NET_SHIM_SHARED_INFO;

/// Length of an Ethernet header in bytes.
pub const ETH_HLEN: u32 = 14;
/// Ethertype of IPv4.
pub const ETH_P_IP: u16 = 0x0800;
/// Ethertype of IPv6.
pub const ETH_P_IPV6: u16 = 0x86dd;

/// What segmentation offload needs to know of a frame.
pub struct Segmentation {
    /// Payload bytes of each segment but the last.
    pub mss: u16,
    /// Segments.
    pub segments: u16,
}

/// A hash that the device has computed over a received frame.
#[derive(Copy, Clone)]
pub enum Hash {
    /// There is none.
    None,
    /// Over addresses.
    L3(u32),
    /// Over addresses and ports.
    L4(u32),
}

/// What the device says of a frame that it has received.
#[derive(Copy, Clone)]
pub struct Received {
    /// The RX queue.
    pub queue: u16,
    /// The device has found all checksums right.
    pub checksum_verified: bool,
    /// The hash.
    pub hash: Hash,
}

/// What a device must do to a frame that it sends.
#[derive(Copy, Clone)]
pub struct Wants(u32);

impl Wants {
    /// Nothing.
    #[inline]
    pub fn nothing(self) -> bool {
        self.0 == 0
    }

    /// Fill in a TCP or UDP checksum; segment, perhaps.
    #[inline]
    pub fn checksum(self) -> bool {
        self.0 & bindings::NET_SHIM_SKB_CHECKSUM != 0
    }

    /// Stamp it when it goes out.
    #[inline]
    pub fn stamp(self) -> bool {
        self.0 & bindings::NET_SHIM_SKB_STAMP != 0
    }

    /// Insert a VLAN tag.
    #[inline]
    pub fn vlan_tag(self) -> bool {
        self.0 & bindings::NET_SHIM_SKB_VLAN != 0
    }
}

/// A view of an skb that somebody else owns.
pub struct SkBuffRef<'a>(NonNull<bindings::sk_buff>, PhantomData<&'a ()>);

impl SkBuffRef<'_> {
    /// # Safety
    ///
    /// `skb` must be valid as long as the result is used.
    pub(crate) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Option<Self> {
        NonNull::new(skb).map(|skb| Self(skb, PhantomData))
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::sk_buff {
        self.0.as_ptr()
    }

    /// All bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { (*self.as_raw()).len }
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in the linear part.
    #[inline]
    pub fn head_len(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { (*self.as_raw()).len - (*self.as_raw()).data_len }
    }

    /// Fragments beside the linear part.
    #[inline]
    pub fn fragments(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_nr_frags(self.as_raw()) }
    }

    /// The queue that the core chose.
    #[inline]
    pub fn queue(&self) -> u16 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_queue_mapping(self.as_raw()) }
    }

    /// Returns whether the device must fill in a TCP or UDP checksum.
    #[inline]
    pub fn needs_checksum(&self) -> bool {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_csum_partial(self.as_raw()) }
    }

    /// What the device must do to the frame.
    #[inline]
    pub fn wants(&self) -> Wants {
        // SAFETY: The skb is valid.
        Wants(unsafe { bindings::net_shim_skb_wants(self.as_raw()) })
    }

    /// The VLAN tag to insert, priority and DEI included, if [`Wants::vlan_tag`].
    #[inline]
    pub fn vlan_tag(&self) -> u16 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_vlan_tag(self.as_raw()) }
    }

    /// Where the checksum is, in bytes from the transport header.
    #[inline]
    pub fn checksum_offset(&self) -> u16 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_csum_offset(self.as_raw()) }
    }

    /// Segmentation that the device must do.
    #[inline]
    pub fn segmentation(&self) -> Option<Segmentation> {
        // SAFETY: The skb is valid.
        unsafe {
            bindings::net_shim_skb_is_gso(self.as_raw()).then(|| Segmentation {
                mss: bindings::net_shim_skb_gso_size(self.as_raw()),
                segments: bindings::net_shim_skb_gso_segs(self.as_raw()),
            })
        }
    }

    /// The network header, in bytes from the start of the frame.
    #[inline]
    pub fn network_offset(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_network_offset(self.as_raw()) }
    }

    /// The transport header, in bytes from the start of the frame; for frames that need a
    /// checksum.
    #[inline]
    pub fn transport_offset(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_transport_offset(self.as_raw()) }
    }

    /// Length of the TCP header in bytes, for TCP frames; 0 if it is not in the linear part.
    #[inline]
    pub fn tcp_header_len(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_tcp_hdrlen(self.as_raw()) }
    }

    /// The ethertype in the frame, behind VLAN tags if there are any.
    #[inline]
    pub fn protocol(&self) -> u16 {
        // SAFETY: The skb is valid.
        unsafe { bindings::net_shim_skb_protocol(self.as_raw()) }
    }
}

/// An skb; freed on drop.
///
/// # Invariants
///
/// Owns the skb.
pub struct SkBuff(SkBuffRef<'static>);

// SAFETY: An skb may be used by any one thread at a time.
unsafe impl Send for SkBuff {}

impl Deref for SkBuff {
    type Target = SkBuffRef<'static>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl SkBuff {
    /// # Safety
    ///
    /// The caller must own `skb` and gives it away.
    pub(crate) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Option<Self> {
        // SAFETY: As this function requires.
        unsafe { SkBuffRef::from_raw(skb) }.map(Self)
    }

    pub(crate) fn into_raw(self) -> *mut bindings::sk_buff {
        ManuallyDrop::new(self).as_raw()
    }

    /// Makes an skb around a buffer that holds `len` bytes of a frame from `headroom` on,
    /// at least [`HEADROOM`], which the device has written.
    ///
    /// Nothing is copied; the buffer goes back to its pool with the skb. For NAPI context.
    /// Returns the buffer if there is no memory or it is too small.
    #[inline]
    pub fn build(
        buffer: Fragment,
        headroom: u32,
        len: u32,
        _napi: &crate::napi::Context<'_>,
    ) -> core::result::Result<Self, Fragment> {
        if u64::from(headroom) + u64::from(len) + u64::from(TAILROOM) > u64::from(buffer.size()) {
            return Err(buffer);
        }
        // SAFETY: The buffer is valid for its size, which has room for all three and is from a
        // pool; NAPI context, as the skb cache wants.
        let raw = unsafe {
            bindings::net_shim_skb_build(
                buffer.netmem().as_raw(),
                buffer.as_ptr().cast(),
                buffer.offset(),
                buffer.size(),
                headroom,
                len,
            )
        };
        // SAFETY: Just made and owned by nobody else.
        let Some(skb) = (unsafe { Self::from_raw(raw) }) else {
            return Err(buffer);
        };

        // The skb's head holds the reference from here on.
        let _ = buffer.into_raw();
        Ok(skb)
    }

    /// Makes an skb around a buffer that `bytes` are copied to, behind [`HEADROOM`]; else as
    /// [`Self::build`].
    pub fn copy(
        buffer: Fragment,
        bytes: &[u8],
        napi: &crate::napi::Context<'_>,
    ) -> core::result::Result<Self, Fragment> {
        // CAST: What is longer is refused, as it has no room.
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let skb = Self::build(buffer, HEADROOM, len, napi)?;

        // Only now: where the device wrote to another place (swiotlb), building it has overwritten
        // the buffer with what is there.
        // SAFETY: The linear part has that many bytes, and was handed to nobody.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), (*skb.as_raw()).data, bytes.len());
        }
        Ok(skb)
    }

    /// Adds `len` bytes, which the device has written at `offset` of `netmem`, which takes
    /// `truesize` bytes of memory.
    ///
    /// Returns the memory if the skb has no room for another fragment, or the bytes do not lie in
    /// it.
    #[inline]
    pub fn add_fragment(
        &mut self,
        netmem: Netmem,
        offset: u32,
        len: u32,
        truesize: u32,
    ) -> core::result::Result<(), Netmem> {
        // SAFETY: The skb is ours, and the memory is a pool's; the skb takes the reference if it
        // has room and the bytes are in the memory.
        let added = unsafe {
            bindings::net_shim_skb_add_rx_frag(
                self.as_raw(),
                netmem.as_raw(),
                offset,
                len,
                truesize,
            )
        };
        if !added {
            return Err(netmem);
        }

        let _ = netmem.into_raw();
        Ok(())
    }

    /// Notes the VLAN tag, priority and DEI included, that the device has stripped.
    #[inline]
    pub fn set_vlan_tag(&mut self, tag: u16) {
        // SAFETY: The skb is ours.
        unsafe { bindings::net_shim_skb_set_vlan_tag(self.as_raw(), tag) };
    }

    /// Notes when the device has received the frame, in nanoseconds of its clock.
    #[inline]
    pub fn set_stamp(&mut self, time: u64) {
        // SAFETY: The skb is ours.
        unsafe { bindings::net_shim_skb_set_rx_stamp(self.as_raw(), time) };
    }

    /// Promises its sender the time at which the device sends it, in place of
    /// [`Self::timestamp`]'s. From here on it is shared, so that it cannot be padded or prepared for
    /// segmentation.
    #[inline]
    pub fn await_stamp(&mut self) -> AwaitingStamp {
        // SAFETY: The skb is ours, and the function takes a share.
        unsafe { AwaitingStamp::new(bindings::net_shim_skb_await_stamp(self.as_raw())) }
    }

    /// Appends zeroes up to `len` bytes; `None`, and the skb is gone, if there is no memory, or if it
    /// is shared.
    #[inline]
    pub fn pad_to(self, len: u32) -> Option<Self> {
        if self.len() >= len {
            return Some(self);
        }
        let raw = self.into_raw();
        // SAFETY: We own the skb; the function frees it on failure.
        if unsafe { bindings::net_shim_skb_pad_min(raw, len) } != 0 {
            return None;
        }
        // SAFETY: Still ours.
        unsafe { Self::from_raw(raw) }
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
        // SAFETY: The skb is ours.
        kernel::error::to_result(unsafe { bindings::net_shim_skb_cow_head(self.as_raw()) })?;
        // SAFETY: The skb is ours, and its headers are not shared any more.
        kernel::error::to_result(unsafe { bindings::net_shim_skb_tso_prepare(self.as_raw()) })
    }

    /// Takes a software timestamp if one was asked for: just before the doorbell.
    #[inline]
    pub fn timestamp(&self) {
        // SAFETY: The skb is ours.
        unsafe { bindings::net_shim_skb_tx_timestamp(self.as_raw()) };
    }

    /// Frees a frame that was sent, from NAPI with this budget.
    #[inline]
    pub fn consume(self, budget: u32) {
        // SAFETY: We own the skb. CAST: Budgets are small.
        unsafe { bindings::net_shim_skb_consume(self.into_raw(), budget as i32) };
    }
}

/// Fragments that an skb can have.
pub const MAX_FRAGMENTS: u32 = bindings::NET_SHIM_MAX_SKB_FRAGS;

impl Drop for SkBuff {
    fn drop(&mut self) {
        // SAFETY: We own the skb.
        unsafe { bindings::net_shim_skb_free_any(self.as_raw()) };
    }
}

/// How many bytes of the frame in `data` are headers (`eth_get_headlen()`).
#[inline]
pub fn header_len<T: crate::device::Driver>(dev: &crate::device::DeviceRef<T>, data: &[u8]) -> u32 {
    // SAFETY: The device and the slice are valid. CAST: Frames are shorter than 64 KiB.
    unsafe { bindings::eth_get_headlen(dev.as_raw(), data.as_ptr().cast(), data.len() as u32) }
}
