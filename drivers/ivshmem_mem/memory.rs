// SPDX-License-Identifier: GPL-2.0

//! Allocates ranges of the BAR.

use dma_buf::{
    export::{
        self,
        Direction,
        DmaBuf,
        Exporter, //
    },
    peer::PeerMemory, //
};
use kernel::{
    new_mutex,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::{
        barrier,
        Arc,
        Mutex, //
    }, //
};
use page_ranges::PageRanges;

/// The memory of one device.
#[pin_data]
pub(crate) struct Memory {
    bar: Arc<PeerMemory>,
    #[pin]
    pages: Mutex<PageRanges<KVVec<u64>>>,
}

impl Memory {
    /// All of `bar`, free.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EOVERFLOW` if the CPU cannot address that much.
    pub(crate) fn new(bar: Arc<PeerMemory>) -> Result<Arc<Self>> {
        let count = usize::try_from(bar.size()).map_err(|_| EOVERFLOW)? >> PAGE_SHIFT;
        let words = KVVec::zeroed(page_ranges::words_for(count), GFP_KERNEL)?;
        let pages = PageRanges::new(words, count).ok_or(ENOMEM)?;

        Arc::pin_init(
            pin_init!(Self {
                bar,
                pages <- new_mutex!(pages),
            }),
            GFP_KERNEL,
        )
    }

    /// Bytes of memory.
    pub(crate) fn size(&self) -> u64 {
        self.bar.size()
    }

    /// Bytes that are not allocated.
    pub(crate) fn free(&self) -> u64 {
        // CAST: `usize` has at most 64 bits.
        (self.pages.lock().free() << PAGE_SHIFT) as u64
    }

    /// The physical address of the memory, as the CPU sees it.
    pub(crate) fn address(&self) -> u64 {
        self.bar.start()
    }

    /// Takes `size` bytes, at a multiple of `align`; 0 is the page size.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `size` is 0 or no multiple of the page size, or `align` is no power of two or
    /// less than it; `ENOMEM` if there is no such range.
    pub(crate) fn allocate(self: &Arc<Self>, size: u64, align: u64) -> Result<Allocation> {
        let size = usize::try_from(size).map_err(|_| ENOMEM)?;
        let align = match usize::try_from(align).map_err(|_| EINVAL)? {
            0 => PAGE_SIZE,
            align => align,
        };
        if size == 0 || size % PAGE_SIZE != 0 || !align.is_power_of_two() || align < PAGE_SIZE {
            return Err(EINVAL);
        }

        let count = size >> PAGE_SHIFT;
        let first = self.pages.lock().take(count, align >> PAGE_SHIFT);

        Ok(Allocation {
            memory: self.clone(),
            first: first.ok_or(ENOMEM)?,
            count,
        })
    }
}

/// Allocated pages, which are freed when this is dropped.
pub(crate) struct Allocation {
    memory: Arc<Memory>,
    first: usize,
    count: usize,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.memory.pages.lock().release(self.first, self.count);
    }
}

impl Allocation {
    /// Where in the BAR it begins, in bytes.
    pub(crate) fn offset(&self) -> u64 {
        // CAST: `usize` has at most 64 bits.
        (self.first << PAGE_SHIFT) as u64
    }

    /// Exports it as a dma-buf. The memory is zeroed: a user must not read another one's data.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the device is going away, `ENOMEM`.
    pub(crate) fn export(self, flags: u32) -> Result<DmaBuf> {
        let range = self
            .memory
            .bar
            .range(self.offset(), self.count << PAGE_SHIFT)?;

        range.clear()?;
        export::export(range, self, flags)
    }
}

/// The memory is RAM that is coherent for the CPU and devices, mapped write-back everywhere: there is
/// nothing to flush. The barriers order the CPU's accesses with those on the other side of the
/// ioctl, such as reading that a device is done.
#[vtable]
impl Exporter for Allocation {
    const NAME: &'static CStr = c"ivshmem_mem";

    fn begin_cpu_access(&self, _direction: Direction) -> Result {
        barrier::mb(barrier::Full);
        Ok(())
    }

    fn end_cpu_access(&self, _direction: Direction) -> Result {
        barrier::mb(barrier::Full);
        Ok(())
    }
}
