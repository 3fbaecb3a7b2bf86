// SPDX-License-Identifier: GPL-2.0

//! Frames that were received.

mod unreadable;

use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};

use net_bindings as bindings;

use super::{
    metadata::{
        Checksum,
        Hash,
        RxMetadata, //
    },
    SkbRef,
    TxSkb,
    ETH_HLEN,
    ETH_P_8021Q,
    HEADROOM,
    MAX_FRAGMENTS,
    TAILROOM, //
};
use crate::{
    device::Driver,
    fragment::Fragment,
    hwtstamp,
    napi::Receive,
    once::read_once,
    page_pool::Netmem, //
};

/// Headers of Ethernet, IPv6 and TCP with timestamps are not longer, in bytes.
const USUAL_HEADERS: u32 = 96;

/// As much as the compiler copies without a call, in the kernel.
type Few = [u64; 6];

const _: () = assert!(size_of::<[Few; 2]>() == USUAL_HEADERS as usize);

/// A frame that was received.
///
/// # Invariants
///
/// Owns the skb, which is not shared. Its linear part has an Ethernet header. A `reusable` one is
/// from `napi_get_frags()`.
pub struct RxSkb {
    skb: SkbRef<'static>,
    reusable: bool,
}

// SAFETY: An skb may be used by any one thread at a time.
unsafe impl Send for RxSkb {}

impl Deref for RxSkb {
    type Target = SkbRef<'static>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.skb
    }
}

impl RxSkb {
    /// `None` for a null pointer, and for a frame without an Ethernet header, which is dropped.
    ///
    /// # Safety
    ///
    /// The caller must own `skb`, which is not shared, and gives it away.
    #[inline]
    pub(crate) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Option<Self> {
        // SAFETY: As this function requires. INVARIANT: As this function requires; the header is
        // looked for before it is used.
        let skb = unsafe { SkbRef::from_raw(skb) }.map(|skb| Self {
            skb,
            reusable: false,
        })?;

        (skb.head_len() >= ETH_HLEN).then_some(skb)
    }

    /// Makes an skb around a buffer that holds `len` bytes of a frame from `headroom` on,
    /// at least [`HEADROOM`], which the device has written.
    ///
    /// Nothing is copied; the buffer is taken, and recycled with the skb. Where there is no memory,
    /// or the buffer is too small, or the frame has no Ethernet header, it stays.
    #[inline]
    pub fn build<T: Driver>(
        buffer: &mut Option<Fragment>,
        headroom: u32,
        len: u32,
        napi: &Receive<'_, T>,
    ) -> Option<Self> {
        let fragment = buffer.as_ref()?;

        if len < ETH_HLEN
            || u64::from(headroom) + u64::from(len) + u64::from(TAILROOM)
                > u64::from(fragment.size())
        {
            return None;
        }
        fragment
            .netmem()
            .sync_received(fragment.offset() + headroom, len, napi);
        // SAFETY: The buffer is valid for its size, which has room for all three; in a poll with a
        // budget, as the skb cache wants.
        let skb = NonNull::new(unsafe {
            bindings::napi_build_skb(fragment.as_ptr().cast(), fragment.size())
        })?;

        // The skb's head holds the reference from here on.
        if let Some(fragment) = buffer.take() {
            let _ = fragment.into_raw();
        }
        // SAFETY: The skb is new and ours, empty, at the start of the buffer, which is from a pool and
        // has room (`skb_mark_for_recycle()`, `skb_reserve()`, `__skb_put()`).
        unsafe {
            let skb = skb.as_ptr();

            (*skb).set_pp_recycle(1);
            (*skb).data = (*skb).data.add(headroom as usize);
            (*skb).tail = headroom + len;
            (*skb).len = len;
        }
        // INVARIANT: Made above, with an Ethernet header.
        Some(Self {
            skb: SkbRef(skb, PhantomData),
            reusable: false,
        })
    }

    /// Makes an skb of the NAPI's own with a copy of `len` bytes of headers, which the device has
    /// written from `headroom` of a buffer on: what follows is added as fragments.
    ///
    /// The buffer can be posted again. If the frame is merged with others, so can the skb be used
    /// again (`napi_get_frags()`). `None` if there is no memory, or no Ethernet header, or the skb
    /// has no room for so much, or the buffer has less.
    #[inline]
    pub fn copy_headers<T: Driver>(
        buffer: &Fragment,
        headroom: u32,
        len: u32,
        napi: &Receive<'_, T>,
    ) -> Option<Self> {
        let from = buffer.room(headroom, len)?;

        if len < ETH_HLEN {
            return None;
        }
        // SAFETY: In a poll of this NAPI, with a budget.
        let skb = NonNull::new(unsafe { bindings::napi_get_frags(napi.as_raw()) })?;
        // SAFETY: The skb is valid and empty.
        let room = unsafe { (*skb.as_ptr()).end - (*skb.as_ptr()).tail };

        if len > room {
            return None;
        }
        let (page, offset) = (buffer.netmem(), buffer.offset() + headroom);

        page.sync_received(offset, len, napi);
        // SAFETY: The NAPI gives its skb away, which is empty and has room for the bytes; those of the
        // buffer are initialised. What is left of the frame before is overwritten here, or by
        // `hand_up`.
        unsafe {
            let raw = skb.as_ptr();

            (*napi.as_raw()).skb = core::ptr::null_mut();
            if len <= USUAL_HEADERS && USUAL_HEADERS <= room.min(buffer.size() - headroom) {
                let (from, to) = (from.as_ptr().cast::<Few>(), (*raw).data.cast::<Few>());

                to.write_unaligned(from.read_unaligned());
                to.add(1).write_unaligned(from.add(1).read_unaligned());
            } else {
                core::ptr::copy_nonoverlapping(from.as_ptr(), (*raw).data, len as usize);
            }
            (*raw).tail += len;
            (*raw).len = len;
            (*raw).set_pp_recycle(1);
        }
        page.sync_to_post(offset, len, napi);

        // INVARIANT: Taken above, with an Ethernet header.
        let skb = Self {
            skb: SkbRef(skb, PhantomData),
            reusable: true,
        };
        // SAFETY: The skb is ours.
        unsafe { (*skb.fields_mut()).set_unreadable(0) };
        Some(skb)
    }

    /// Makes an skb around a buffer that `len` bytes from the start of `from` are copied to, behind
    /// [`HEADROOM`]; else as [`Self::build`].
    pub fn copy<T: Driver>(
        buffer: &mut Option<Fragment>,
        from: &Fragment,
        len: u32,
        napi: &Receive<'_, T>,
    ) -> Option<Self> {
        if len > from.size() {
            return None;
        }
        let skb = Self::build(buffer, HEADROOM, len, napi)?;

        // Only now: where the device wrote to another place (swiotlb), building it has overwritten
        // the buffer with what is there.
        // SAFETY: Both have that many bytes, which do not overlap, as they are two fragments.
        unsafe {
            core::ptr::copy_nonoverlapping(from.as_ptr(), (*skb.as_raw()).data, len as usize);
        }
        Some(skb)
    }

    /// Makes an skb around a buffer that a whole frame is copied to, which was given to a device to
    /// be sent: how software receives. As [`Self::build`]; also not if the CPU cannot read the frame.
    pub fn copy_sent<T: Driver>(
        buffer: &mut Option<Fragment>,
        sent: &TxSkb,
        napi: &Receive<'_, T>,
    ) -> Option<Self> {
        let len = sent.len();
        let to = buffer.as_ref()?.room(HEADROOM, len + TAILROOM)?;

        if sent.copy_to(to, len) != len {
            return None;
        }
        Self::build(buffer, HEADROOM, len, napi)
    }

    /// Hands the frame to generic receive offload, with what the device says of it
    /// (`napi_gro_receive()`, `napi_gro_frags()`).
    ///
    /// # Safety
    ///
    /// `napi` must be being polled with a budget.
    // See `Receive::receive`.
    #[inline(always)]
    pub(crate) unsafe fn hand_up(self, napi: *mut bindings::napi_struct, metadata: &RxMetadata) {
        let skb = self.as_raw();

        match metadata.checksum {
            Checksum::None => {}
            // SAFETY: The skb is ours.
            Checksum::Unnecessary => unsafe {
                (*self.fields_mut()).set_ip_summed(bindings::CHECKSUM_UNNECESSARY as u8);
            },
            // SAFETY: The skb is ours.
            Checksum::Complete(sum) => unsafe {
                (*self.fields_mut()).set_ip_summed(bindings::CHECKSUM_COMPLETE as u8);
                (*self.fields_mut()).__bindgen_anon_1.csum = sum;
            },
            Checksum::Partial { start, offset } => {
                // SAFETY: The skb is ours.
                if !unsafe { bindings::skb_partial_csum_set(skb, start, offset) } {
                    return;
                }
            }
        }
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
        let (hash, l4) = match metadata.hash {
            Hash::None => (0, false),
            Hash::L3(hash) => (hash, false),
            Hash::L4(hash) => (hash, true),
        };

        // SAFETY: As this function requires; we own the skb, whose linear part has an Ethernet header.
        // If it is reusable, it is as `napi_gro_frags()` wants it.
        unsafe {
            // `skb_set_hash()`
            (*self.fields_mut()).hash = hash;
            (*self.fields_mut()).set_l4_hash(l4.into());
            (*self.fields_mut()).set_sw_hash(0);
            // `skb_record_rx_queue()`; not of one that the core does not use, of which RPS warns.
            let queues = read_once(&raw const (*(*napi).dev).real_num_rx_queues);

            (*skb).queue_mapping = match metadata.queue {
                queue if u32::from(queue) < queues => queue + 1,
                _ => 0,
            };

            // It may be another device's, or another queue of the NAPI's may have left one there
            // meanwhile.
            let dev = (*skb)
                .__bindgen_anon_1
                .__bindgen_anon_1
                .__bindgen_anon_1
                .dev;

            if self.reusable && dev == (*napi).dev && (*napi).skb.is_null() {
                (*napi).skb = skb;
                core::mem::forget(self);
                bindings::napi_gro_frags(napi);
            } else {
                (*self.fields_mut()).protocol = bindings::eth_type_trans(skb, (*napi).dev);
                core::mem::forget(self);
                bindings::gro_receive_skb(&raw mut (*napi).gro, skb);
            }
        }
    }

    /// Adds `len` bytes, which the device has written at `offset` of `memory`, which takes
    /// `truesize` bytes of memory.
    ///
    /// Takes the memory; it stays if the skb has no room for another fragment, or the bytes do not
    /// lie in it. Returns whether it was taken.
    #[inline]
    pub fn add_fragment<T: Driver>(
        &mut self,
        memory: &mut Option<Netmem>,
        offset: u32,
        len: u32,
        truesize: u32,
        napi: &Receive<'_, T>,
    ) -> bool {
        let Some(netmem) = memory else {
            return false;
        };
        let index = self.fragments() as usize;

        if index >= MAX_FRAGMENTS as usize || !netmem.has(offset, len) {
            return false;
        }
        netmem.sync_received(offset, len, napi);
        // SAFETY: The skb is ours and has room for the fragment (`skb_add_rx_frag_netmem()`).
        unsafe {
            let (skb, info) = (self.as_raw(), self.shared_info().cast_mut());
            let fragment = (&raw mut (*info).frags)
                .cast::<bindings::skb_frag>()
                .add(index);

            fragment.write(bindings::skb_frag {
                netmem: netmem.as_raw(),
                len,
                offset,
            });
            (*info).nr_frags += 1;
            (*skb).len += len;
            (*skb).data_len += len;
            (*skb).truesize += truesize;
            if netmem.is_net_iov() {
                (*self.fields_mut()).set_unreadable(1);
            } else if bindings::net_shim_netmem_is_pfmemalloc(netmem.as_raw()) {
                (*skb).set_pfmemalloc(1);
            }
        }
        // The skb has the reference.
        core::mem::forget(memory.take());
        true
    }

    /// Takes note of the VLAN tag, priority and DEI included, that the device has stripped.
    #[inline]
    pub fn set_vlan_tag(&mut self, tag: u16) {
        // SAFETY: The skb is ours; both parts of the union are plain data
        // (`__vlan_hwaccel_put_tag()`).
        let vlan = unsafe { &mut (*self.fields_mut()).__bindgen_anon_2.__bindgen_anon_1 };

        vlan.vlan_proto = ETH_P_8021Q.to_be();
        vlan.vlan_tci = tag;
    }

    /// Takes note of when the device has received the frame, in nanoseconds of its clock.
    #[inline]
    pub fn set_timestamp(&mut self, time: u64) {
        let timestamps = hwtstamp::to_raw(time);

        // SAFETY: The skb is ours.
        unsafe { (*self.shared_info().cast_mut()).__bindgen_anon_1.hwtstamps = timestamps };
    }
}

impl Drop for RxSkb {
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
