// SPDX-License-Identifier: MIT OR Apache-2.0

//! dma-bufs from the kernel's dma-heaps, `/dev/dma_heap/<name>`.

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{self, Updater, opcode};

use crate::dmabuf::DmaBuf;
use crate::error::{Error, MemoryError, Result};

/// `struct dma_heap_allocation_data` (include/uapi/linux/dma-heap.h).
#[repr(C)]
struct Allocation {
    len: u64,
    fd: u32,
    fd_flags: u32,
    heap_flags: u64,
}

/// Allocates `len` bytes, rounded up to whole pages by the kernel, from the heap `name` (as in
/// `system`).
///
/// The memory of `system` comes in pieces of 1 MiB, 64 KiB and single pages, as large as the rest of
/// the length and the free memory allow (drivers/dma-buf/heaps/system_heap.c). Each is aligned to its
/// size, which [`crate::netdev::bind_rx_with_page_size`] asks for: with a length that is a multiple
/// of 64 KiB and enough free memory, receive buffers of up to 64 KiB are possible.
///
/// # Errors
///
/// [`MemoryError::NoHeap`] if the heap does not exist or may not be opened, [`Error::Io`] if it has no
/// memory to give.
pub fn allocate(name: &str, len: usize) -> Result<DmaBuf> {
    const ALLOCATE: ioctl::Opcode = opcode::read_write::<Allocation>(b'H', 0);
    let path = Path::new("/dev/dma_heap").join(name);
    let heap = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
        Error::Memory(MemoryError::NoHeap {
            heap: path.display().to_string(),
            source: errno.into(),
        })
    })?;
    let fd_flags = (OFlags::RDWR | OFlags::CLOEXEC).bits();
    let mut allocation = Allocation {
        len: len as u64,
        fd: 0,
        fd_flags,
        heap_flags: 0,
    };
    // SAFETY: `DMA_HEAP_IOCTL_ALLOC` reads and writes a `struct dma_heap_allocation_data`, which
    // `Allocation` is laid out as.
    unsafe { ioctl::ioctl(&heap, Updater::<ALLOCATE, Allocation>::new(&mut allocation)) }
        .map_err(|errno| Error::io("DMA_HEAP_IOCTL_ALLOC", errno))?;
    let raw = i32::try_from(allocation.fd).map_err(|_| Error::BadAnswer {
        operation: "DMA_HEAP_IOCTL_ALLOC",
        what: format!("{} is not a file descriptor", allocation.fd),
    })?;
    // SAFETY: the kernel just opened this descriptor for this call; nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    DmaBuf::from_fd(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_that_does_not_exist_is_named_in_the_error() {
        match allocate("no-such-heap", 4096) {
            Err(error @ Error::Memory(MemoryError::NoHeap { .. })) => {
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
