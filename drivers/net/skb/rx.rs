// SPDX-License-Identifier: GPL-2.0

//! Frames that were received.

use core::{
    mem::ManuallyDrop,
    ops::Deref, //
};

use net_bindings as bindings;

use super::{
    SkbRef,
    TxSkb,
    HEADROOM,
    TAILROOM, //
};
use crate::{
    device::Driver,
    fragment::Fragment,
    napi::Receive,
    page_pool::Netmem, //
};

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

/// What the device says of a received frame's checksums (`CHECKSUM_*`).
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing.
    None,
    /// It has verified them (`CHECKSUM_UNNECESSARY`).
    Unnecessary,
    /// This is the ones' complement sum of all bytes behind the Ethernet header
    /// (`CHECKSUM_COMPLETE`).
    Complete(u32),
    /// It is still to be filled in, as the frame comes from another guest or software
    /// (`CHECKSUM_PARTIAL`): over all from byte `start` of the frame on, `offset` bytes behind that.
    Partial {
        /// The transport header, in bytes from the start of the frame.
        start: u16,
        /// The checksum field, in bytes from the transport header.
        offset: u16,
    },
}

/// Segments of one flow that the device has merged into a frame (HW-GRO), or that were not cut.
#[derive(Copy, Clone)]
pub struct Merged {
    /// Payload bytes of each segment but the last.
    pub mss: u16,
    /// The number of segments.
    pub segments: u16,
    /// IPv6, not IPv4.
    pub ipv6: bool,
    /// Datagrams of UDP, not segments of TCP.
    pub udp: bool,
}

/// What the device says of a frame that it has received.
#[derive(Copy, Clone)]
pub struct RxMetadata {
    queue: u16,
    checksum: Checksum,
    hash: Hash,
    merged: Option<Merged>,
}

impl RxMetadata {
    /// A frame of RX queue `queue`, of which the device says nothing.
    #[inline]
    pub fn new(queue: u16) -> Self {
        Self {
            queue,
            checksum: Checksum::None,
            hash: Hash::None,
            merged: None,
        }
    }

    /// A frame of RX queue `queue` of software, which knows what its sender does
    /// ([`RxSkb::copy_sent`]): a checksum that is still to be filled in.
    pub fn of_sent(queue: u16, sent: &TxSkb) -> Self {
        let metadata = Self::new(queue);

        if !sent.needs_checksum() {
            return metadata;
        }
        metadata.with_checksum(Checksum::Partial {
            // CAST: Headers are short.
            start: sent.transport_offset() as u16,
            offset: sent.checksum_offset(),
        })
    }

    /// Says what is known of its checksums.
    #[inline]
    pub fn with_checksum(self, checksum: Checksum) -> Self {
        Self { checksum, ..self }
    }

    /// Adds its hash.
    #[inline]
    pub fn with_hash(self, hash: Hash) -> Self {
        Self { hash, ..self }
    }

    /// Says what segments it was merged from.
    #[inline]
    pub fn with_merged(self, merged: Merged) -> Self {
        Self {
            merged: Some(merged),
            ..self
        }
    }
}

/// A frame that was received.
///
/// # Invariants
///
/// Owns the skb, which is not shared.
pub struct RxSkb(SkbRef<'static>);

// SAFETY: An skb may be used by any one thread at a time.
unsafe impl Send for RxSkb {}

impl Deref for RxSkb {
    type Target = SkbRef<'static>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl RxSkb {
    /// `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// The caller must own `skb`, which is not shared, and gives it away.
    #[inline]
    pub(crate) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Option<Self> {
        // SAFETY: As this function requires. INVARIANT: As this function requires.
        unsafe { SkbRef::from_raw(skb) }.map(Self)
    }

    #[inline]
    pub(crate) fn into_raw(self) -> *mut bindings::sk_buff {
        ManuallyDrop::new(self).as_raw()
    }

    /// Makes an skb around a buffer that holds `len` bytes of a frame from `headroom` on,
    /// at least [`HEADROOM`], which the device has written.
    ///
    /// Nothing is copied; the buffer is recycled with the skb. Returns the buffer if there is no
    /// memory or it is too small.
    #[inline]
    pub fn build<T: Driver>(
        buffer: Fragment,
        headroom: u32,
        len: u32,
        _napi: &Receive<'_, T>,
    ) -> core::result::Result<Self, Fragment> {
        if u64::from(headroom) + u64::from(len) + u64::from(TAILROOM) > u64::from(buffer.size()) {
            return Err(buffer);
        }
        // SAFETY: The buffer is valid for its size, which has room for all three and is from a
        // pool; in a poll with a budget, as the skb cache wants.
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
        // SAFETY: Just made, and owned by nobody else.
        let Some(skb) = (unsafe { Self::from_raw(raw) }) else {
            return Err(buffer);
        };

        // The skb's head holds the reference from here on.
        let _ = buffer.into_raw();
        Ok(skb)
    }

    /// Makes an skb around a buffer that `len` bytes from the start of `from` are copied to, behind
    /// [`HEADROOM`]; else as [`Self::build`].
    pub fn copy<T: Driver>(
        buffer: Fragment,
        from: &Fragment,
        len: u32,
        napi: &Receive<'_, T>,
    ) -> core::result::Result<Self, Fragment> {
        if len > from.size() {
            return Err(buffer);
        }
        let skb = Self::build(buffer, HEADROOM, len, napi)?;

        // Only now: where the device wrote to another place (swiotlb), building it has overwritten
        // the buffer with what is there.
        // SAFETY: Both have that many bytes, which do not overlap, as they are two fragments.
        unsafe {
            core::ptr::copy_nonoverlapping(from.as_ptr(), (*skb.as_raw()).data, len as usize);
        }
        Ok(skb)
    }

    /// Makes an skb around a buffer that a whole frame is copied to, which was given to a device to
    /// be sent: how software receives. Returns the buffer if it is too small, if there is no memory,
    /// or if the CPU cannot read the frame.
    pub fn copy_sent<T: Driver>(
        buffer: Fragment,
        sent: &TxSkb,
        napi: &Receive<'_, T>,
    ) -> core::result::Result<Self, Fragment> {
        let len = sent.len();
        let Some(to) = buffer.room(HEADROOM, len + TAILROOM) else {
            return Err(buffer);
        };

        if sent.copy_to(to, len) != len {
            return Err(buffer);
        }
        Self::build(buffer, HEADROOM, len, napi)
    }

    /// Hands the frame to generic receive offload, with what the device says of it.
    ///
    /// # Safety
    ///
    /// `napi` must be being polled with a budget, and the frame have an Ethernet header in its
    /// linear part.
    // See `Receive::receive`.
    #[inline(always)]
    pub(crate) unsafe fn hand_up(self, napi: *mut bindings::napi_struct, metadata: &RxMetadata) {
        let verified = match metadata.checksum {
            Checksum::None => false,
            Checksum::Unnecessary => true,
            Checksum::Complete(sum) => {
                // SAFETY: The skb is ours.
                unsafe { bindings::net_shim_skb_set_csum(self.as_raw(), sum) };
                false
            }
            Checksum::Partial { start, offset } => {
                // SAFETY: The skb is ours.
                if !unsafe { bindings::skb_partial_csum_set(self.as_raw(), start, offset) } {
                    return;
                }
                false
            }
        };
        if let Some(merged) = metadata.merged {
            let kind = match (merged.udp, merged.ipv6) {
                (true, _) => bindings::NET_SHIM_GSO_UDP_L4,
                (false, true) => bindings::NET_SHIM_GSO_TCPV6,
                (false, false) => bindings::NET_SHIM_GSO_TCPV4,
            };
            let info = self.shared_info().cast_mut();

            // SAFETY: The skb is ours.
            unsafe {
                (*info).gso_type = kind;
                (*info).gso_size = merged.mss;
                (*info).gso_segs = merged.segments;
            }
        }
        let (hash, hash_type) = match metadata.hash {
            Hash::None => (0, bindings::pkt_hash_types_PKT_HASH_TYPE_NONE),
            Hash::L3(hash) => (hash, bindings::pkt_hash_types_PKT_HASH_TYPE_L3),
            Hash::L4(hash) => (hash, bindings::pkt_hash_types_PKT_HASH_TYPE_L4),
        };

        // SAFETY: As this function requires; we own the skb.
        unsafe {
            bindings::net_shim_skb_receive(
                napi,
                self.into_raw(),
                metadata.queue,
                verified,
                hash,
                hash_type,
            );
        }
    }

    /// Adds `len` bytes, which the device has written at `offset` of `netmem`, which takes
    /// `truesize` bytes of memory.
    ///
    /// Returns the memory if the skb has no room for another fragment, or the bytes do not lie in
    /// it.
    #[inline]
    pub fn add_fragment<T: Driver>(
        &mut self,
        netmem: Netmem,
        offset: u32,
        len: u32,
        truesize: u32,
        _napi: &Receive<'_, T>,
    ) -> core::result::Result<(), Netmem> {
        // SAFETY: The skb is ours, and the memory is a pool's; the skb takes the reference if it
        // has room and the bytes are in the memory. In a poll, as syncing the memory wants.
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

    /// Takes note of the VLAN tag, priority and DEI included, that the device has stripped.
    #[inline]
    pub fn set_vlan_tag(&mut self, tag: u16) {
        // SAFETY: The skb is ours.
        unsafe { bindings::net_shim_skb_set_vlan_tag(self.as_raw(), tag) };
    }

    /// Takes note of when the device has received the frame, in nanoseconds of its clock.
    #[inline]
    pub fn set_timestamp(&mut self, time: u64) {
        // SAFETY: The skb is ours.
        unsafe { bindings::net_shim_skb_set_rx_timestamp(self.as_raw(), time) };
    }
}

impl Drop for RxSkb {
    fn drop(&mut self) {
        // SAFETY: We own the skb.
        unsafe { bindings::net_shim_skb_free_any(self.as_raw()) };
    }
}
