// SPDX-License-Identifier: GPL-2.0

//! A ring of 16-byte descriptors that driver and device share.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    dma::Coherent,
    prelude::*, //
};

/// Descriptors in coherent memory: two little-endian quadwords each, in host order here.
///
/// All access is volatile, as the device writes at any time. Which side owns a descriptor is the
/// driver's business; a wrong guess reads or writes stale values, never other memory.
pub struct Descriptors(Coherent<[[u64; 2]]>);

// SAFETY: Access is volatile, by value and in bounds, so it may come from any thread.
unsafe impl Sync for Descriptors {}

impl Descriptors {
    /// Allocates `len` zeroed descriptors.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EINVAL` if `len` is 0.
    pub fn new(dev: &Device<Bound>, len: u32) -> Result<Self> {
        Coherent::zeroed_slice(dev, len as usize, GFP_KERNEL).map(Self)
    }

    /// The address of the first descriptor as the device sees it.
    pub fn dma_address(&self) -> u64 {
        self.0.dma_address()
    }

    fn quadword(&self, index: u32, word: usize) -> Option<*mut u64> {
        if index as usize >= self.0.len() || word >= 2 {
            return None;
        }
        // SAFETY: The index was checked.
        Some(unsafe {
            self.0
                .as_mut_ptr()
                .cast::<u64>()
                .add(index as usize * 2 + word)
        })
    }

    /// Writes a descriptor, the first quadword first.
    #[inline]
    pub fn write(&self, index: u32, value: [u64; 2]) {
        for (word, value) in value.into_iter().enumerate() {
            if let Some(ptr) = self.quadword(index, word) {
                // SAFETY: In bounds and aligned; the memory lives as long as `self`.
                unsafe { ptr.write_volatile(value.to_le()) };
            }
        }
    }

    /// Reads one quadword of a descriptor; 0 outside of the ring.
    #[inline]
    pub fn read(&self, index: u32, word: usize) -> u64 {
        match self.quadword(index, word) {
            // SAFETY: In bounds and aligned; the memory lives as long as `self`.
            Some(ptr) => u64::from_le(unsafe { ptr.read_volatile() }),
            None => 0,
        }
    }
}
