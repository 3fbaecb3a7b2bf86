// SPDX-License-Identifier: GPL-2.0

//! Received frames, before an skb is made of them.

use core::ptr::NonNull;

use net_bindings as bindings;

use super::HEADROOM;
use crate::{
    device::Driver,
    fragment::Fragment,
    napi::Receive,
    page_pool::Netmem,
    skb::{
        self,
        MAX_FRAGMENTS, //
    },
};

/// The first bytes of a frame are in a buffer, [`HEADROOM`] from its start, and the rest is in
/// fragments, if there are any (`struct xdp_buff`).
///
/// # Invariants
///
/// `buffer` has [`skb::TAILROOM`] behind `len` bytes of the frame; `fragments` are listed there.
pub struct Buff {
    /// Before the buffer that they are listed in.
    pub(super) fragments: Fragments,
    pub(super) buffer: Fragment,
    pub(super) len: u32,
}

impl Buff {
    /// A frame whose first `len` bytes the device has written to `buffer`, from [`HEADROOM`] on. Takes
    /// the buffer; it stays if it is too small, or if these are too few for an Ethernet header.
    pub fn new<T: Driver>(
        buffer: &mut Option<Fragment>,
        len: u32,
        napi: &Receive<'_, T>,
    ) -> Option<Self> {
        let fragment = buffer.as_ref()?;
        let room = fragment.size().checked_sub(HEADROOM + skb::TAILROOM)?;

        if len > room || len < skb::ETH_HLEN {
            return None;
        }
        fragment
            .netmem()
            .sync_received(fragment.offset() + HEADROOM, len, napi);
        let info = fragment.room(fragment.size() - skb::TAILROOM, skb::TAILROOM)?;

        // INVARIANT: There is room, and no fragment yet.
        Some(Self {
            fragments: Fragments {
                info: info.cast(),
                flags: 0,
            },
            buffer: buffer.take()?,
            len,
        })
    }

    /// A frame whose first `len` bytes are copied from the start of `from` to `buffer`; else as
    /// [`Self::new`].
    pub fn copy<T: Driver>(
        buffer: &mut Option<Fragment>,
        from: &Fragment,
        len: u32,
        napi: &Receive<'_, T>,
    ) -> Option<Self> {
        if len > from.size() {
            return None;
        }
        let buff = Self::new(buffer, len, napi)?;

        // Only now, see `RxSkb::copy()`.
        // SAFETY: Both have that many bytes, which do not overlap, as they are two fragments.
        unsafe {
            core::ptr::copy_nonoverlapping(
                from.as_ptr(),
                buff.buffer.as_ptr().add(HEADROOM as usize),
                len as usize,
            );
        }
        Some(buff)
    }

    /// Adds `len` bytes, which the device has written at `offset` of `memory`, which takes `truesize`
    /// bytes of memory (`xdp_buff_add_frag()`).
    ///
    /// Takes the memory; it stays if there is no room for another fragment, or the bytes do not lie
    /// in it, or it is device memory. Returns whether it was taken.
    pub fn add_fragment<T: Driver>(
        &mut self,
        memory: &mut Option<Netmem>,
        offset: u32,
        len: u32,
        truesize: u32,
        napi: &Receive<'_, T>,
    ) -> bool {
        match memory.take_if(|netmem| !netmem.is_net_iov() && netmem.has(offset, len)) {
            Some(netmem) => {
                netmem.sync_received(offset, len, napi);
                *memory = self.fragments.add(netmem, offset, len, truesize).err();
                memory.is_none()
            }
            None => false,
        }
    }

    /// The length of the frame in bytes, with fragments.
    pub fn frame_len(&self) -> u32 {
        self.len + self.fragments.len()
    }
}

/// The fragments of a frame.
///
/// # Invariants
///
/// With `XDP_FLAGS_HAS_FRAGS` in `flags`, `info` is valid, and each fragment that it lists is ours:
/// a reference to memory of a page pool that the CPU can read.
pub(super) struct Fragments {
    info: NonNull<bindings::skb_shared_info>,
    /// As `struct xdp_buff` has them.
    pub(super) flags: u32,
}

// SAFETY: They own their memory, and the list is in a buffer that goes along.
unsafe impl Send for Fragments {}

impl Fragments {
    /// Returns whether there are any.
    pub(super) fn any(&self) -> bool {
        self.flags & bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS != 0
    }

    fn count(&self) -> u8 {
        if self.any() {
            // SAFETY: Valid by the type invariant.
            unsafe { (*self.info.as_ptr()).nr_frags }
        } else {
            0
        }
    }

    /// How long they are together, in bytes.
    fn len(&self) -> u32 {
        if self.any() {
            // SAFETY: Valid by the type invariant; this part of the union is XDP's.
            unsafe {
                (*self.info.as_ptr())
                    .__bindgen_anon_2
                    .__bindgen_anon_1
                    .xdp_frags_size
            }
        } else {
            0
        }
    }

    /// Gives `netmem` back if there is no room for another one.
    fn add(
        &mut self,
        netmem: Netmem,
        offset: u32,
        len: u32,
        truesize: u32,
    ) -> core::result::Result<(), Netmem> {
        let (info, count) = (self.info.as_ptr(), self.count());

        if u32::from(count) >= MAX_FRAGMENTS {
            return Err(netmem);
        }
        // SAFETY: `info` is in the frame's buffer, and has room for the fragment. What is read was
        // written with the first one.
        unsafe {
            let sizes = &raw mut (*info).__bindgen_anon_2.__bindgen_anon_1;

            if bindings::net_shim_netmem_is_pfmemalloc(netmem.as_raw()) {
                self.flags |= bindings::xdp_buff_flags_XDP_FLAGS_FRAGS_PF_MEMALLOC;
            }
            (&raw mut (*info).frags)
                .cast::<bindings::skb_frag>()
                .add(count.into())
                .write(bindings::skb_frag {
                    netmem: netmem.into_raw(),
                    len,
                    offset,
                });
            if count == 0 {
                (*sizes).xdp_frags_size = 0;
                (*sizes).xdp_frags_truesize = 0;
            }
            (*info).nr_frags = count + 1;
            (*sizes).xdp_frags_size += len;
            (*sizes).xdp_frags_truesize += truesize;
        }
        // INVARIANT: The new one is ours, too.
        self.flags |= bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS;
        Ok(())
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        for index in 0..self.count() {
            // SAFETY: By the type invariant there are so many, and the references are ours.
            unsafe {
                let fragments =
                    (&raw const (*self.info.as_ptr()).frags).cast::<bindings::skb_frag>();

                bindings::net_shim_pp_put((*fragments.add(index.into())).netmem);
            }
        }
    }
}
