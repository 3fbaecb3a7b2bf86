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
    skb::TxSkb,
    xdp::Frame, //
};

/// `DMA_MAPPING_ERROR`.
const MAPPING_ERROR: u64 = u64::MAX;

/// How a mapping was made, and so how it is undone.
#[derive(Copy, Clone)]
enum Kind {
    Single,
    Page,
    /// Device memory: the binding owns the mapping.
    NetIov,
}

/// A part of a frame that the device may read until this is dropped.
///
/// # Invariants
///
/// `addr` is a mapping of `len` bytes for `dev`, made as `kind` says.
pub struct TxMapping<'bound> {
    dev: &'bound Device<Bound>,
    addr: u64,
    len: u32,
    kind: Kind,
}

fn as_raw(dev: &Device<Bound>) -> *mut bindings::device {
    // CAST: `Device` is a transparent wrapper of `struct device`.
    core::ptr::from_ref(dev).cast_mut().cast()
}

impl<'bound> TxMapping<'bound> {
    /// Maps the linear part of `skb`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the mapping failed.
    #[inline]
    fn head(dev: &'bound Device<Bound>, skb: &TxSkb) -> Result<Self> {
        let len = skb.head_len();

        // SAFETY: The linear part has `len` bytes, and the device is bound.
        let addr = unsafe {
            bindings::net_shim_dma_map_single(
                as_raw(dev),
                (*skb.as_raw()).data.cast(),
                len as usize,
            )
        };

        Self::checked(dev, addr, len, Kind::Single)
    }

    /// Maps `frame`.
    ///
    /// Its memory may be mapped already, by the pool that it is from. But a pool that is destroyed
    /// unmaps what it has given out, and the frame may be on the ring of another queue then.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the mapping failed.
    #[inline]
    pub fn frame(dev: &'bound Device<Bound>, frame: &Frame) -> Result<Self> {
        let len = frame.len();

        // SAFETY: The frame has `len` bytes, and the device is bound.
        let addr = unsafe {
            bindings::net_shim_dma_map_single(as_raw(dev), frame.data().cast(), len as usize)
        };

        Self::checked(dev, addr, len, Kind::Single)
    }

    #[inline]
    fn checked(dev: &'bound Device<Bound>, addr: u64, len: u32, kind: Kind) -> Result<Self> {
        if addr == MAPPING_ERROR {
            return Err(ENOMEM);
        }

        // INVARIANT: The mapping was made and did not fail.
        Ok(Self {
            dev,
            addr,
            len,
            kind,
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
        matches!(self.kind, Kind::NetIov)
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
        // SAFETY: By the type invariant, and the device is bound as long as `'bound` lasts.
        unsafe {
            match self.kind {
                Kind::Single => bindings::net_shim_dma_unmap_single(
                    as_raw(self.dev),
                    self.addr,
                    self.len as usize,
                ),
                Kind::Page => bindings::net_shim_dma_unmap_page(
                    as_raw(self.dev),
                    self.addr,
                    self.len as usize,
                ),
                Kind::NetIov => {}
            }
        }
    }
}

/// The parts of a frame, from its first byte to its last, each mapped when it is asked for.
///
/// Fragments in device memory are mapped already. Those that follow each other in DMA addresses, as
/// a dma-buf's net_iovs mostly do, come as one part, as long as it has at most `max` bytes.
pub struct TxMappings<'skb, 'bound> {
    dev: &'bound Device<Bound>,
    skb: &'skb TxSkb,
    max: u32,
    /// The next fragment; `None` for the linear part.
    next: Option<u32>,
}

impl<'skb, 'bound> TxMappings<'skb, 'bound> {
    /// The parts of `skb`, for a device that likes them to have up to `max` bytes.
    #[inline]
    pub fn new(dev: &'bound Device<Bound>, skb: &'skb TxSkb, max: u32) -> Self {
        Self {
            dev,
            skb,
            max,
            next: None,
        }
    }
}

impl<'bound> Iterator for TxMappings<'_, 'bound> {
    /// `ENOMEM` if a mapping failed.
    type Item = Result<TxMapping<'bound>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Some(index) = self.next else {
            self.next = Some(0);
            return Some(TxMapping::head(self.dev, self.skb));
        };
        let mut mapped: bindings::net_shim_mapped = pin_init::zeroed();

        // SAFETY: The skb is valid, and the device is bound.
        unsafe {
            bindings::net_shim_skb_frags_dma_map(
                as_raw(self.dev),
                self.skb.as_raw(),
                index,
                self.max,
                &mut mapped,
            );
        }
        if mapped.frags == 0 {
            return None;
        }
        let kind = if mapped.net_iov {
            Kind::NetIov
        } else {
            Kind::Page
        };

        self.next = Some(index + mapped.frags);
        Some(TxMapping::checked(self.dev, mapped.addr, mapped.len, kind))
    }
}
