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

use crate::skb::SkBuff;

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
/// `addr` is a mapping of `len` bytes for `dev` that was made as `kind` says.
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
    pub fn head(dev: &'bound Device<Bound>, skb: &SkBuff) -> Result<Self> {
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

    /// Maps fragment `index` of `skb`; a fragment in device memory is mapped already.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such fragment, `ENOMEM` if the mapping failed.
    #[inline]
    pub fn fragment(dev: &'bound Device<Bound>, skb: &SkBuff, index: u32) -> Result<Self> {
        if index >= skb.fragments() {
            return Err(EINVAL);
        }
        let mut len = 0;
        let mut net_iov = false;
        // SAFETY: The fragment exists, and the device is bound.
        let addr = unsafe {
            bindings::net_shim_skb_frag_dma_map(
                as_raw(dev),
                skb.as_raw(),
                index,
                &mut len,
                &mut net_iov,
            )
        };
        let kind = if net_iov { Kind::NetIov } else { Kind::Page };

        Self::checked(dev, addr, len, kind)
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
