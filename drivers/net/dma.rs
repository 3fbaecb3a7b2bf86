// SPDX-License-Identifier: GPL-2.0

//! Streaming DMA mappings of frames to be sent.
//!
//! C header: `include/linux/dma-mapping.h`

use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use crate::{
    page_pool::net_iov,
    skb::TxSkb,
    xdp::Frame, //
};

/// `DMA_MAPPING_ERROR`.
const MAPPING_ERROR: u64 = u64::MAX;

/// A part of a frame that the device may read until this is dropped. Whoever keeps it keeps the frame, as
/// it is, for as long: else the device may send what its memory is used for next.
///
/// # Invariants
///
/// `addr` is a mapping of `len` bytes for `dev`, of this type's, unless `net_iov`: device memory is
/// mapped by its binding.
pub struct TxMapping<'bound> {
    dev: &'bound Device<Bound>,
    addr: u64,
    len: u32,
    net_iov: bool,
}

fn as_raw(dev: &Device<Bound>) -> *mut bindings::device {
    // CAST: `Device` is a transparent wrapper of `struct device`.
    core::ptr::from_ref(dev).cast_mut().cast()
}

impl<'bound> TxMapping<'bound> {
    /// Maps `len` bytes at `data`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the mapping failed.
    ///
    /// # Safety
    ///
    /// They must be memory of a frame.
    #[inline]
    unsafe fn single(dev: &'bound Device<Bound>, data: *mut c_void, len: u32) -> Result<Self> {
        // SAFETY: As this function requires; the device is bound.
        let addr = unsafe { bindings::net_shim_dma_map_single(as_raw(dev), data, len as usize) };

        Self::checked(dev, addr, len)
    }

    /// Maps `len` bytes at `offset` of `page` and those after it.
    ///
    /// # Safety
    ///
    /// They must be memory of a frame.
    #[inline]
    unsafe fn page(
        dev: &'bound Device<Bound>,
        page: *mut bindings::page,
        offset: u32,
        len: u32,
    ) -> Result<Self> {
        // SAFETY: As this function requires; the device is bound.
        let addr = unsafe {
            bindings::dma_map_page_attrs(
                as_raw(dev),
                page,
                offset as usize,
                len as usize,
                bindings::dma_data_direction::DMA_TO_DEVICE,
                0,
            )
        };

        // Says that the result is looked at (`dma_mapping_error()`).
        #[cfg(CONFIG_DMA_API_DEBUG)]
        {
            // SAFETY: The device is valid.
            unsafe { bindings::debug_dma_mapping_error(as_raw(dev), addr) };
        }
        Self::checked(dev, addr, len)
    }

    #[inline]
    fn checked(dev: &'bound Device<Bound>, addr: u64, len: u32) -> Result<Self> {
        if addr == MAPPING_ERROR {
            return Err(ENOMEM);
        }

        // INVARIANT: The mapping was made and did not fail.
        Ok(Self {
            dev,
            addr,
            len,
            net_iov: false,
        })
    }

    /// The address as the device sees it.
    #[inline]
    pub fn address(&self) -> u64 {
        self.addr
    }

    /// The length in bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether this is device memory.
    #[inline]
    pub fn is_net_iov(&self) -> bool {
        self.net_iov
    }

    /// Returns whether there is nothing mapped.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for TxMapping<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.net_iov {
            return;
        }
        // SAFETY: By the type invariant, and the device is bound as long as `'bound` lasts.
        unsafe {
            bindings::dma_unmap_page_attrs(
                as_raw(self.dev),
                self.addr,
                self.len as usize,
                bindings::dma_data_direction::DMA_TO_DEVICE,
                0,
            );
        }
    }
}

/// The parts of a frame, from its first byte to its last, each mapped when it is asked for.
///
/// Fragments in device memory are mapped already. Those that follow each other in DMA addresses, as
/// a dma-buf's net_iovs mostly do, come as one part, as long as it has at most `max` bytes.
///
/// # Invariants
///
/// `head` and `fragments` are memory of the frame that `'frame` borrows.
pub struct TxMappings<'frame, 'bound> {
    dev: &'bound Device<Bound>,
    /// What is before the fragments, until it is mapped.
    head: Option<(*mut c_void, u32)>,
    /// Those that are not mapped yet.
    fragments: &'frame [bindings::skb_frag],
    max: u32,
}

impl<'frame, 'bound> TxMappings<'frame, 'bound> {
    /// The parts of `skb`, for a device that likes them to have up to `max` bytes.
    #[inline]
    pub fn new(dev: &'bound Device<Bound>, skb: &'frame TxSkb, max: u32) -> Self {
        // SAFETY: The skb is valid.
        let data = unsafe { (*skb.as_raw()).data };

        Self {
            dev,
            head: Some((data.cast(), skb.head_len())),
            fragments: skb.fragment_list(),
            max,
        }
    }

    /// The parts of a `frame`.
    ///
    /// Its memory may be mapped already, by the pool that it is from. But a pool that is destroyed
    /// unmaps what it has given out, and the frame may be on the ring of another queue then.
    #[inline]
    pub fn of_frame(dev: &'bound Device<Bound>, frame: &'frame Frame, max: u32) -> Self {
        Self {
            dev,
            head: Some(frame.head()),
            fragments: frame.fragment_list(),
            max,
        }
    }
}

impl<'bound> Iterator for TxMappings<'_, 'bound> {
    /// `ENOMEM` if a mapping failed.
    type Item = Result<TxMapping<'bound>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some((data, len)) = self.head.take() {
            // SAFETY: By the type invariant.
            return Some(unsafe { TxMapping::single(self.dev, data, len) });
        }
        let (first, others) = self.fragments.split_first()?;

        let Some(addr) = net_iov_address(first) else {
            self.fragments = others;
            // CAST: Without the bit of a net_iov it is a page's address.
            let page = first.netmem as *mut bindings::page;

            // SAFETY: The fragment is of pages, and as long as the frame.
            return Some(unsafe { TxMapping::page(self.dev, page, first.offset, first.len) });
        };
        let (mut len, mut taken) = (first.len, 0);

        for other in others {
            let adjoins = net_iov_address(other) == Some(addr + u64::from(len));

            if !adjoins || len + other.len > self.max {
                break;
            }
            len += other.len;
            taken += 1;
        }
        self.fragments = others.get(taken..)?;
        // INVARIANT: A net_iov's address is its binding's.
        Some(Ok(TxMapping {
            dev: self.dev,
            addr,
            len,
            net_iov: true,
        }))
    }
}

/// Where the device sees a fragment of device memory; `None` if it is of pages
/// (`__skb_frag_dma_map()`).
#[inline]
fn net_iov_address(fragment: &bindings::skb_frag) -> Option<u64> {
    let netmem = net_iov(fragment.netmem)?;

    // SAFETY: The net_iov is valid as long as the skb that the fragment is of.
    Some(unsafe { (*netmem).dma_addr } as u64 + u64::from(fragment.offset))
}
