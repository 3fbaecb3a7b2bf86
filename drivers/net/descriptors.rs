// SPDX-License-Identifier: GPL-2.0

//! A ring of descriptors that driver and device share.

use core::{
    marker::PhantomData,
    mem::ManuallyDrop, //
};

use kernel::{
    device::{
        Bound,
        Device, //
    },
    dma::Coherent,
    prelude::*, //
};

/// Descriptors in coherent memory: `N` little-endian quadwords each, in host order here.
///
/// All access is volatile, as the device writes at any time. Which side owns a descriptor is the
/// driver's business; a wrong guess reads or writes stale values, never other memory.
pub struct Descriptors<const N: usize = 2>(ManuallyDrop<Coherent<[[u64; N]]>>, bool);

// SAFETY: Access is volatile, by value and in bounds, so it may come from any thread.
unsafe impl<const N: usize> Sync for Descriptors<N> {}

impl<const N: usize> Descriptors<N> {
    /// Allocates `len` zeroed descriptors.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EINVAL` if `len` is 0.
    pub fn new(dev: &Device<Bound>, len: u32) -> Result<Self> {
        Coherent::zeroed_slice(dev, len as usize, GFP_KERNEL)
            .map(|memory| Self(ManuallyDrop::new(memory), false))
    }

    /// Never frees the memory: the device may go on to access it.
    pub fn leak(&mut self) {
        self.1 = true;
    }

    /// The address of the first descriptor as the device sees it.
    pub fn dma_address(&self) -> u64 {
        self.0.dma_address()
    }

    /// The descriptor at `index`; `None` outside of the ring.
    #[inline]
    pub fn get(&self, index: u32) -> Option<Descriptor<'_, N>> {
        if index as usize >= self.0.len() {
            return None;
        }
        // SAFETY: The index was checked.
        let first = unsafe { self.0.as_mut_ptr().cast::<u64>().add(index as usize * N) };

        // INVARIANT: In bounds; the memory lives as long as `self`.
        Some(Descriptor(first, PhantomData))
    }

    /// The descriptors from `start` on, `count` of them or as many as there are.
    #[inline]
    pub fn run(&self, start: u32, count: u32) -> impl Iterator<Item = Descriptor<'_, N>> {
        // CAST: `new` takes the length as `u32`.
        let len = self.0.len() as u32;
        let start = start.min(len);
        let end = start + count.min(len - start);
        let first = self.0.as_mut_ptr().cast::<u64>();

        (start..end).map(move |index| {
            // SAFETY: `index` is less than the length. INVARIANT: As in `get`.
            Descriptor(unsafe { first.add(index as usize * N) }, PhantomData)
        })
    }

    /// Writes a descriptor, the first quadword first; nothing outside of the ring.
    #[inline]
    pub fn write(&self, index: u32, value: [u64; N]) {
        if let Some(descriptor) = self.get(index) {
            descriptor.write(value);
        }
    }

    /// Reads one quadword of a descriptor; 0 outside of the ring.
    #[inline]
    pub fn read<const WORD: usize>(&self, index: u32) -> u64 {
        self.get(index)
            .map_or(0, |descriptor| descriptor.read::<WORD>())
    }
}

impl<const N: usize> Drop for Descriptors<N> {
    fn drop(&mut self) {
        if !self.1 {
            // SAFETY: Dropped once, and not used any more.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// A descriptor whose index was checked; its quadwords are numbered at compile time.
///
/// # Invariants
///
/// The pointer is aligned and valid for volatile access to `N` quadwords for `'a`.
pub struct Descriptor<'a, const N: usize = 2>(*mut u64, PhantomData<&'a Descriptors<N>>);

impl<const N: usize> Descriptor<'_, N> {
    /// Reads a quadword.
    #[inline]
    pub fn read<const WORD: usize>(&self) -> u64 {
        const { assert!(WORD < N) };
        // SAFETY: In bounds, checked above, by the type invariant.
        u64::from_le(unsafe { self.0.add(WORD).read_volatile() })
    }

    /// Writes all quadwords, the first one first.
    #[inline]
    pub fn write(&self, value: [u64; N]) {
        for (word, value) in value.into_iter().enumerate() {
            // SAFETY: `word` is less than `N`; in bounds by the type invariant.
            unsafe { self.0.add(word).write_volatile(value.to_le()) };
        }
    }
}
