// SPDX-License-Identifier: MIT OR Apache-2.0

//! A dma-buf of any exporter, by its file descriptor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{SeekFrom, fstatfs, seek};
use rustix::ioctl::{self, Setter, opcode};

use crate::error::MemoryError;

/// `f_type` of the file system that dma-bufs live in (`DMA_BUF_MAGIC`, include/uapi/linux/magic.h).
const DMA_BUF_MAGIC: u64 = 0x444d_4142;

/// `struct dma_buf_sync` (include/uapi/linux/dma-buf.h).
#[repr(C)]
struct DmaBufSync {
    flags: u64,
}

const DMA_BUF_SYNC_END: u64 = 1 << 2;

/// What the CPU does with the memory between [`DmaBuf::begin_cpu_access`] and
/// [`DmaBuf::end_cpu_access`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuAccess {
    /// The CPU reads (`DMA_BUF_SYNC_READ`).
    Read,
    /// The CPU writes (`DMA_BUF_SYNC_WRITE`).
    Write,
    /// The CPU reads and writes (`DMA_BUF_SYNC_RW`).
    ReadWrite,
}

impl CpuAccess {
    const fn bits(self) -> u64 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::ReadWrite => 3,
        }
    }
}

/// An open dma-buf: memory that devices share, from whatever exporter.
#[derive(Debug)]
pub struct DmaBuf {
    fd: OwnedFd,
    len: usize,
}

impl DmaBuf {
    /// Takes over a dma-buf's file descriptor; the length is asked from the kernel.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotADmaBuf`] if it is a descriptor of another kind.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, MemoryError> {
        check(fd.as_fd())?;
        let len = len_of(fd.as_fd())?;
        Ok(Self { fd, len })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes what devices wrote visible to the CPU, before the CPU touches the memory
    /// (`DMA_BUF_IOCTL_SYNC`).
    ///
    /// # Errors
    ///
    /// [`MemoryError::SystemCall`] if the exporter refuses.
    pub fn begin_cpu_access(&self, access: CpuAccess) -> Result<(), MemoryError> {
        sync(self.fd.as_fd(), access.bits())
    }

    /// Makes what the CPU wrote visible to devices, after the CPU touched the memory
    /// (`DMA_BUF_IOCTL_SYNC`).
    ///
    /// # Errors
    ///
    /// [`MemoryError::SystemCall`] if the exporter refuses.
    pub fn end_cpu_access(&self, access: CpuAccess) -> Result<(), MemoryError> {
        sync(self.fd.as_fd(), access.bits() | DMA_BUF_SYNC_END)
    }
}

impl AsFd for DmaBuf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<DmaBuf> for OwnedFd {
    fn from(buffer: DmaBuf) -> Self {
        buffer.fd
    }
}

fn sync(fd: BorrowedFd<'_>, flags: u64) -> Result<(), MemoryError> {
    const SYNC: ioctl::Opcode = opcode::write::<DmaBufSync>(b'b', 0);
    loop {
        // SAFETY: `DMA_BUF_IOCTL_SYNC` reads a `struct dma_buf_sync`, which `DmaBufSync` is laid
        // out as.
        let outcome =
            unsafe { ioctl::ioctl(fd, Setter::<SYNC, DmaBufSync>::new(DmaBufSync { flags })) };
        match outcome {
            Ok(()) => return Ok(()),
            // The exporter waits for fences; a signal interrupts that.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(errno) => return Err(MemoryError::io("DMA_BUF_IOCTL_SYNC", errno)),
        }
    }
}

/// Refuses a descriptor that is not a dma-buf.
pub(crate) fn check(fd: BorrowedFd<'_>) -> Result<(), MemoryError> {
    let status = fstatfs(fd).map_err(|errno| MemoryError::io("fstatfs of a dma-buf", errno))?;
    // The type of `f_type` depends on the architecture; the magic fits each.
    let magic = status.f_type as u64 & 0xffff_ffff;
    if magic == DMA_BUF_MAGIC {
        Ok(())
    } else {
        Err(MemoryError::NotADmaBuf { fd: fd.as_raw_fd() })
    }
}

/// Length of a dma-buf: its only seekable position is its end
/// (Documentation/driver-api/dma-buf.rst).
pub(crate) fn len_of(fd: BorrowedFd<'_>) -> Result<usize, MemoryError> {
    let end = seek(fd, SeekFrom::End(0))
        .map_err(|errno| MemoryError::io("length of a dma-buf", errno))?;
    usize::try_from(end)
        .map_err(|error| MemoryError::io("length of a dma-buf", std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    #[test]
    fn a_memfd_is_refused_as_not_a_dma_buf() {
        let memfd = memfd_create("not-a-dma-buf", MemfdFlags::CLOEXEC).expect("memfd");
        let fd = memfd.as_raw_fd();
        match DmaBuf::from_fd(memfd) {
            Err(MemoryError::NotADmaBuf { fd: named }) => assert_eq!(named, fd),
            other => panic!("expected NotADmaBuf, got {other:?}"),
        }
    }
}
