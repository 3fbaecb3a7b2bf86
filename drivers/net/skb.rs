// SPDX-License-Identifier: GPL-2.0

//! Socket buffers.
//!
//! What is received and what is to be sent are different types: an [`RxSkb`] is the driver's own,
//! which builds it in a poll and hands it up; a [`TxSkb`] may share its data with a clone that TCP
//! keeps, so that a driver can look at it and free it, but not add to it.
//!
//! Either is freed on drop, from any context.
//!
//! C header: `include/linux/skbuff.h`

mod metadata;
mod rx;
mod tx;

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::prelude::c_int;
use net_bindings as bindings;

pub use self::{
    metadata::{
        Checksum,
        Hash,
        Merged,
        RxMetadata, //
    },
    rx::RxSkb,
    tx::{
        Segmentation,
        TxOffloads,
        TxSkb, //
    },
};

/// What a buffer that becomes the linear part of an skb needs before the packet, in bytes.
pub const HEADROOM: u32 = bindings::NET_SHIM_SKB_PAD;

/// What such a buffer needs after the packet, in bytes (`struct skb_shared_info`).
pub const TAILROOM: u32 = bindings::NET_SHIM_SHARED_INFO;

/// Fragments that an skb can have.
pub const MAX_FRAGMENTS: u32 = bindings::NET_SHIM_MAX_SKB_FRAGS;

/// Length of an Ethernet header in bytes.
pub const ETH_HLEN: u32 = 14;
/// Ethertype of IPv4.
pub const ETH_P_IP: u16 = 0x0800;
/// Ethertype of a VLAN tag.
pub(crate) const ETH_P_8021Q: u16 = 0x8100;
/// Ethertype of IPv6.
pub const ETH_P_IPV6: u16 = 0x86dd;

/// The fields of an skb that are copied with it.
type Fields = bindings::sk_buff__bindgen_ty_4__bindgen_ty_1;

/// A view of an skb that is somebody else's.
pub struct SkbRef<'a>(NonNull<bindings::sk_buff>, PhantomData<&'a ()>);

impl SkbRef<'_> {
    /// # Safety
    ///
    /// `skb` must be null, or valid as long as the result is used.
    #[inline]
    pub(crate) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Option<Self> {
        NonNull::new(skb).map(|skb| Self(skb, PhantomData))
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::sk_buff {
        self.0.as_ptr()
    }

    /// The number of bytes.
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

    /// The number of bytes in the linear part.
    #[inline]
    pub fn head_len(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { (*self.as_raw()).len - (*self.as_raw()).data_len }
    }

    /// The first `N` bytes of the linear part, if there are so many.
    #[inline]
    pub fn head<const N: usize>(&self) -> Option<[u8; N]> {
        if (self.head_len() as usize) < N {
            return None;
        }

        // SAFETY: The skb is valid, and has so many bytes there. They are copied, as a device that
        // misbehaves may write to them.
        Some(unsafe { (*self.as_raw()).data.cast::<[u8; N]>().read() })
    }

    /// The fields behind the buffer (`skb_shinfo()`, on 64-bit).
    #[inline]
    fn shared_info(&self) -> *const bindings::skb_shared_info {
        // SAFETY: The skb is valid, and has them behind its buffer.
        unsafe { (*self.as_raw()).head.add((*self.as_raw()).end as usize) }.cast()
    }

    /// The number of fragments beside the linear part.
    #[inline]
    pub fn fragments(&self) -> u32 {
        // SAFETY: The skb is valid.
        unsafe { (*self.shared_info()).nr_frags }.into()
    }

    /// Those fragments.
    #[inline]
    pub(crate) fn fragment_list(&self) -> &[bindings::skb_frag] {
        // SAFETY: The skb is valid, and so many are initialised.
        unsafe {
            core::slice::from_raw_parts(
                (&raw const (*self.shared_info()).frags).cast(),
                self.fragments() as usize,
            )
        }
    }

    /// The queue that the core chose.
    #[inline]
    pub fn queue(&self) -> u16 {
        // SAFETY: The skb is valid.
        unsafe { (*self.as_raw()).queue_mapping }
    }

    /// Returns whether the device must fill in a TCP or UDP checksum.
    #[inline]
    pub fn needs_checksum(&self) -> bool {
        self.offloads().checksum()
    }

    /// What the device must do to the frame.
    #[inline]
    pub fn offloads(&self) -> TxOffloads {
        TxOffloads::of(self)
    }

    /// The VLAN tag to insert, priority and DEI included, if [`TxOffloads::vlan_tag`].
    #[inline]
    pub fn vlan_tag(&self) -> u16 {
        // SAFETY: The skb is valid; both parts of the union are plain data.
        unsafe { (*self.fields()).__bindgen_anon_2.__bindgen_anon_1.vlan_tci }
    }

    /// The fields that are copied with an skb, which bindgen has in a union.
    #[inline]
    fn fields(&self) -> *const Fields {
        // SAFETY: The skb is valid; only computes a place in it.
        unsafe { (&raw const (*self.as_raw()).__bindgen_anon_4).cast() }
    }

    /// The same, to be changed.
    #[inline]
    fn fields_mut(&self) -> *mut Fields {
        self.fields().cast_mut()
    }

    /// Bytes before the frame in its buffer.
    #[inline]
    fn headroom(&self) -> u32 {
        // SAFETY: The skb is valid. CAST: Buffers are small.
        unsafe { (*self.as_raw()).data.offset_from((*self.as_raw()).head) as u32 }
    }

    /// Where the checksum is, in bytes from the transport header.
    #[inline]
    pub fn checksum_offset(&self) -> u16 {
        // SAFETY: The skb is valid; both parts of the union are plain data.
        unsafe {
            (*self.fields())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .csum_offset
        }
    }

    /// Segmentation that the device must do.
    #[inline]
    pub fn segmentation(&self) -> Option<Segmentation> {
        // SAFETY: The skb is valid.
        let (mss, segments) = unsafe {
            (
                (*self.shared_info()).gso_size,
                (*self.shared_info()).gso_segs,
            )
        };

        (mss != 0).then_some(Segmentation { mss, segments })
    }

    /// The segments that it has not been cut into.
    pub(crate) fn merged(&self) -> Option<Merged> {
        let Segmentation { mss, segments } = self.segmentation()?;
        // SAFETY: The skb is valid.
        let kind = unsafe { (*self.shared_info()).gso_type };

        Some(Merged {
            mss,
            segments,
            ipv6: kind & bindings::NET_SHIM_GSO_TCPV6 != 0,
            udp: kind & bindings::NET_SHIM_GSO_UDP_L4 != 0,
        })
    }

    /// The ones' complement sum of all bytes behind the Ethernet header.
    pub(crate) fn sum(&self) -> u32 {
        let len = self.len().saturating_sub(ETH_HLEN);

        // SAFETY: The skb is valid and has that many bytes. CAST: Frames are shorter than 2 GiB.
        unsafe { bindings::skb_checksum(self.as_raw(), ETH_HLEN as c_int, len as c_int, 0) }
    }

    /// The network header, in bytes from the start of the frame.
    #[inline]
    pub fn network_offset(&self) -> u32 {
        // SAFETY: The skb is valid.
        u32::from(unsafe { (*self.fields()).network_header }).wrapping_sub(self.headroom())
    }

    /// The transport header, in bytes from the start of the frame; for frames that need a
    /// checksum.
    #[inline]
    pub fn transport_offset(&self) -> u32 {
        // SAFETY: The skb is valid; both parts of the union are plain data.
        let start = unsafe {
            (*self.fields())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .csum_start
        };

        u32::from(start).wrapping_sub(self.headroom())
    }

    /// Length of the TCP header in bytes, for TCP frames that need a checksum; 0 if it is not in the
    /// linear part.
    #[inline]
    pub fn tcp_header_len(&self) -> u32 {
        /// Where the length is, in words in the upper half, and bytes without options.
        const DOFF: u32 = 12;
        const LEN: u32 = 20;
        let start = self.transport_offset();

        if start.saturating_add(LEN) > self.head_len() {
            return 0;
        }
        // SAFETY: The skb is valid, and so many bytes are in its linear part.
        let doff = unsafe { *(*self.as_raw()).data.add((start + DOFF) as usize) };

        u32::from(doff >> 4) * 4
    }

    /// The ethertype in the frame, behind VLAN tags if there are any.
    #[inline]
    pub fn protocol(&self) -> u16 {
        // SAFETY: The skb is valid.
        match u16::from_be(unsafe { (*self.fields()).protocol }) {
            protocol @ (ETH_P_IP | ETH_P_IPV6) => protocol,
            // SAFETY: The skb is valid.
            _ => unsafe { bindings::net_shim_skb_protocol(self.as_raw()) },
        }
    }

    /// Copies the first `len` bytes of the frame to `to`, or as many as either has. Returns how
    /// many; 0 if the CPU cannot read them.
    pub(crate) fn copy_to(&self, to: NonNull<u8>, len: u32) -> u32 {
        let len = len.min(self.len());

        // SAFETY: The skb is valid and has that many bytes, and the caller has room for them.
        // CAST: Frames are shorter than 2 GiB.
        match unsafe { bindings::skb_copy_bits(self.as_raw(), 0, to.as_ptr().cast(), len as c_int) }
        {
            0 => len,
            _ => 0,
        }
    }
}
