// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory of an accelerator: dma-bufs that the driver `ivshmem_mem` exports, `/dev/ivshmem_mem<n>`.
//!
//! The driver stands for that of any device with memory of its own behind a PCI BAR. Its dma-bufs
//! are ranges of that BAR; a NIC reaches them peer to peer, without host memory in between, where
//! the PCI topology lets it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{self, Getter, Updater, opcode};

use devmem_tcp::MemoryError;
use devmem_tcp::dmabuf::DmaBuf;
use devmem_tcp::memory::{Exporter, Memory};

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The accelerator's node does not exist, or cannot be opened.
    #[error(
        "cannot open {}: {source}; it takes the driver (insmod ivshmem_mem.ko), a device that it \
         drives (lspci -d 1af4:1110), and the right to open the node", path.display()
    )]
    NoAccelerator {
        /// The accelerator's node.
        path: PathBuf,
        /// Why it cannot be opened.
        source: io::Error,
    },
    /// The accelerator has no contiguous free memory of this size.
    #[error(
        "{}: {len} contiguous bytes are not free, of {free} free bytes; close unused dma-bufs \
         ({source})", path.display()
    )]
    Full {
        /// The accelerator's node.
        path: PathBuf,
        /// Length asked for, in bytes.
        len: usize,
        /// Free memory, in bytes.
        free: u64,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The accelerator's driver refused length or alignment.
    #[error(
        "{}: cannot allocate {len} bytes aligned to {align}; the length must be a multiple of the \
         page size, the alignment a power of two ({source})", path.display()
    )]
    Refused {
        /// The accelerator's node.
        path: PathBuf,
        /// Length asked for, in bytes.
        len: usize,
        /// Alignment asked for, in bytes.
        align: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// An ioctl failed, or its answer is not one.
    #[error("{operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The dma-buf cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl Error {
    /// The errno behind the error, positive, if a system call gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::NoAccelerator { source, .. }
            | Self::Full { source, .. }
            | Self::Refused { source, .. }
            | Self::Io { source, .. } => source.raw_os_error(),
            Self::Memory(error) => error.errno(),
        }
    }

    fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io {
            operation,
            source: source.into(),
        }
    }
}

/// Group of the driver's ioctls.
const GROUP: u8 = 0xdb;

/// `struct ivshmem_mem_alloc`.
#[repr(C)]
struct Allocation {
    size: u64,
    align: u64,
    flags: u32,
    fd: i32,
    offset: u64,
}

/// `struct ivshmem_mem_info`: how much memory an accelerator has, and where.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// All of it, in bytes.
    pub size: u64,
    /// What is not allocated, in bytes; not necessarily in one piece.
    pub free: u64,
    /// Physical address of its first byte, as the CPU sees it.
    pub address: u64,
}

/// An accelerator whose memory can be allocated.
///
/// Memory outlives the value that it was allocated through.
#[derive(Debug)]
pub struct Accelerator {
    node: OwnedFd,
    path: PathBuf,
}

impl Accelerator {
    /// Opens the accelerator with this number, counted from 0.
    ///
    /// # Errors
    ///
    /// [`Error::NoAccelerator`] without the driver, the device or the right to open it.
    pub fn open(number: u32) -> Result<Self> {
        let path = PathBuf::from(format!("/dev/ivshmem_mem{number}"));
        match open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(node) => Ok(Self { node, path }),
            Err(errno) => Err(Error::NoAccelerator {
                path,
                source: errno.into(),
            }),
        }
    }

    /// How much memory there is, and where.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the device is gone.
    pub fn info(&self) -> Result<Info> {
        const INFO: ioctl::Opcode = opcode::read::<Info>(GROUP, 1);
        // SAFETY: `IVSHMEM_MEM_IOC_INFO` writes a `struct ivshmem_mem_info`, which `Info` is laid
        // out as.
        unsafe { ioctl::ioctl(&self.node, Getter::<INFO, Info>::new()) }
            .map_err(|errno| Error::io("IVSHMEM_MEM_IOC_INFO", errno))
    }

    /// Allocates `len` bytes, a multiple of the page size, in one piece that starts at a multiple of `align`.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there is no such piece, [`Error::Refused`] for an
    /// odd length or alignment, [`Error::Io`] if the device is gone.
    fn allocate_aligned(&self, len: usize, align: usize) -> Result<Memory> {
        const ALLOCATE: ioctl::Opcode = opcode::read_write::<Allocation>(GROUP, 0);
        let mut allocation = Allocation {
            size: len as u64,
            align: align as u64,
            flags: (OFlags::RDWR | OFlags::CLOEXEC).bits(),
            fd: -1,
            offset: 0,
        };
        // SAFETY: `IVSHMEM_MEM_IOC_ALLOC` reads and writes a `struct ivshmem_mem_alloc`, which
        // `Allocation` is laid out as.
        unsafe {
            ioctl::ioctl(
                &self.node,
                Updater::<ALLOCATE, Allocation>::new(&mut allocation),
            )
        }
        .map_err(|errno| self.refused(errno, len, align))?;
        if allocation.fd < 0 {
            let what = format!("{} is not a file descriptor", allocation.fd);
            return Err(Error::io("IVSHMEM_MEM_IOC_ALLOC", io::Error::other(what)));
        }
        // SAFETY: the kernel just opened this descriptor for this call; nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(allocation.fd) };
        let address = self.info()?.address + allocation.offset;
        Ok(Memory::map(DmaBuf::from_fd(fd)?)?.located_at(address))
    }

    fn refused(&self, errno: Errno, len: usize, align: usize) -> Error {
        let path = self.path.clone();
        let source = errno.into();
        match errno {
            Errno::NOMEM | Errno::NOSPC => Error::Full {
                path,
                len,
                free: self.info().map_or(0, |info| info.free),
                source,
            },
            Errno::INVAL => Error::Refused {
                path,
                len,
                align,
                source,
            },
            _ => Error::io("IVSHMEM_MEM_IOC_ALLOC", errno),
        }
    }
}

/// For receive buffers larger than a page, memory must be aligned to their size.
impl Exporter for Accelerator {
    type Error = Error;

    fn allocate(&self, len: usize, align: usize) -> Result<Memory> {
        self.allocate_aligned(len, align)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accelerator_that_does_not_exist_is_named_with_what_it_takes() {
        match Accelerator::open(4_000_000) {
            Err(error @ Error::NoAccelerator { .. }) => {
                assert_eq!(error.errno(), Some(Errno::NOENT.raw_os_error()));
                let text = error.to_string();
                assert!(
                    text.contains("/dev/ivshmem_mem4000000") && text.contains("ivshmem_mem.ko"),
                    "unclear message: {text}"
                );
            }
            other => panic!("expected NoAccelerator, got {other:?}"),
        }
    }

    #[test]
    fn the_structs_are_laid_out_as_the_driver_has_them() {
        use std::mem::{offset_of, size_of};
        assert_eq!(size_of::<Allocation>(), 32);
        assert_eq!(offset_of!(Allocation, fd), 20);
        assert_eq!(offset_of!(Allocation, offset), 24);
        assert_eq!(size_of::<Info>(), 24);
        assert_eq!(offset_of!(Info, address), 16);
    }
}
