// SPDX-License-Identifier: MIT OR Apache-2.0

//! dma-bufs from the kernel's dma-heaps, `/dev/dma_heap/<name>`.

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{self, Updater, opcode};

use crate::dmabuf::DmaBuf;
use crate::error::MemoryError;
use crate::memory::{Exporter, Memory};

/// `struct dma_heap_allocation_data` (include/uapi/linux/dma-heap.h).
#[repr(C)]
struct Allocation {
    len: u64,
    fd: u32,
    fd_flags: u32,
    heap_flags: u64,
}

/// An open dma-heap.
#[derive(Debug)]
pub struct Heap {
    heap: OwnedFd,
}

impl Heap {
    /// Opens the heap `/dev/dma_heap/<name>`: `system` is one of ordinary memory.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NoHeap`] if there is none, or no right to open it.
    pub fn open(name: &str) -> Result<Self, MemoryError> {
        let path = Path::new("/dev/dma_heap").join(name);
        let heap = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let heap = heap.map_err(|errno| MemoryError::NoHeap {
            heap: path.display().to_string(),
            source: errno.into(),
        })?;
        Ok(Self { heap })
    }

    /// Allocates a dma-buf of `len` bytes; the heap rounds up to whole pages.
    ///
    /// # Errors
    ///
    /// [`MemoryError::SystemCall`] if the heap refuses.
    pub fn create(&self, len: usize) -> Result<DmaBuf, MemoryError> {
        const ALLOCATE: ioctl::Opcode = opcode::read_write::<Allocation>(b'H', 0);
        let fd_flags = (OFlags::RDWR | OFlags::CLOEXEC).bits();
        let mut allocation = Allocation {
            len: len as u64,
            fd: 0,
            fd_flags,
            heap_flags: 0,
        };
        // SAFETY: `DMA_HEAP_IOCTL_ALLOC` reads and writes a `struct dma_heap_allocation_data`, which
        // `Allocation` is laid out as.
        unsafe {
            ioctl::ioctl(
                &self.heap,
                Updater::<ALLOCATE, Allocation>::new(&mut allocation),
            )
        }
        .map_err(|errno| MemoryError::io("DMA_HEAP_IOCTL_ALLOC", errno))?;
        let raw = i32::try_from(allocation.fd).map_err(|error| {
            MemoryError::io("DMA_HEAP_IOCTL_ALLOC", std::io::Error::other(error))
        })?;
        // SAFETY: the kernel just opened this descriptor for this call; nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        DmaBuf::from_fd(fd)
    }
}

/// The system heap takes the largest pieces that are free: 1 MiB, 64 KiB, pages
/// (drivers/dma-buf/heaps/system_heap.c). That they are aligned is usual and no promise: a binding checks it.
impl Exporter for Heap {
    type Error = MemoryError;

    fn allocate(&self, len: usize, _align: usize) -> Result<Memory, MemoryError> {
        Memory::map(self.create(len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_that_does_not_exist_is_named_in_the_error() {
        match Heap::open("no-such-heap") {
            Err(error @ MemoryError::NoHeap { .. }) => {
                assert_eq!(error.errno(), Some(libc::ENOENT));
                assert!(
                    error.to_string().contains("/dev/dma_heap/no-such-heap"),
                    "unclear message: {error}"
                );
            }
            other => panic!("expected NoHeap, got {other:?}"),
        }
    }
}
