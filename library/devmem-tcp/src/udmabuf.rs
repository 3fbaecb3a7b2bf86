// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary memory as a dma-buf: a memfd that the udmabuf driver exports
//! (drivers/dma-buf/udmabuf.c).

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, open,
};
use rustix::io::Errno;
use rustix::ioctl::{self, Ioctl, IoctlOutput, Opcode, opcode};
use rustix::param::page_size;

use crate::dmabuf::DmaBuf;
use crate::error::MemoryError;
use crate::memory::{Exporter, Memory, view};

/// Size of the pages behind the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backing {
    /// The system's base pages.
    #[default]
    BasePages,
    /// 2 MiB huge pages (`MFD_HUGE_2MB`), which must be reserved in `/proc/sys/vm/nr_hugepages`:
    /// for fragments larger than a base page.
    HugePages2M,
}

impl Backing {
    fn page_size(self) -> usize {
        match self {
            Self::BasePages => page_size(),
            Self::HugePages2M => 2 << 20,
        }
    }
}

/// Exports ordinary memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Udmabuf {
    backing: Backing,
}

impl Udmabuf {
    /// From base pages.
    #[must_use]
    pub const fn new() -> Self {
        Self::backed_by(Backing::BasePages)
    }

    /// From pages of a size.
    #[must_use]
    pub const fn backed_by(backing: Backing) -> Self {
        Self { backing }
    }

    /// Makes a dma-buf of `len` bytes, a multiple of the backing's page size.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NoUdmabuf`] without the driver or the right to open it,
    /// [`MemoryError::UdmabufRefused`] for an odd or too large length, [`MemoryError::NoHugePages`] and
    /// [`MemoryError::SystemCall`] if there is no memory.
    pub fn create(&self, len: usize) -> Result<Memory, MemoryError> {
        create(len, self.backing)
    }
}

impl Exporter for Udmabuf {
    type Error = MemoryError;

    fn allocate(&self, len: usize, align: usize) -> Result<Memory, MemoryError> {
        let offered = self.backing.page_size();
        if align > offered {
            return Err(MemoryError::Unaligned {
                exporter: "udmabuf",
                wanted: align,
                offered,
            });
        }
        self.create(len)
    }
}

fn create(len: usize, backing: Backing) -> Result<Memory, MemoryError> {
    let page_size = backing.page_size();
    let no_memory = |operation, errno: Errno| match backing {
        Backing::BasePages => MemoryError::io(operation, errno),
        Backing::HugePages2M => MemoryError::NoHugePages {
            len,
            source: errno.into(),
        },
    };
    let refused = |errno| match errno {
        Errno::INVAL => MemoryError::UdmabufRefused {
            len,
            page_size,
            source: errno.into(),
        },
        _ => no_memory("UDMABUF_CREATE", errno),
    };
    let driver = open(
        "/dev/udmabuf",
        OFlags::RDWR | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| MemoryError::NoUdmabuf {
        source: errno.into(),
    })?;
    if len == 0 || len % page_size != 0 {
        return Err(refused(Errno::INVAL));
    }

    let huge = match backing {
        Backing::BasePages => MemfdFlags::empty(),
        Backing::HugePages2M => MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
    };
    let memfd = memfd_create(
        "devmem",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | huge,
    )
    .map_err(|errno| no_memory("memfd_create", errno))?;
    // The driver pins the pages and refuses a memfd that could shrink under it.
    fcntl_add_seals(&memfd, SealFlags::SHRINK)
        .map_err(|errno| MemoryError::io("F_SEAL_SHRINK on a memfd", errno))?;
    ftruncate(&memfd, len as u64).map_err(|errno| MemoryError::io("size a memfd", errno))?;

    let create = Create {
        memfd: memfd.as_raw_fd() as u32,
        flags: FLAGS_CLOEXEC,
        offset: 0,
        size: len as u64,
    };
    // SAFETY: `UDMABUF_CREATE` reads a `struct udmabuf_create`, which `Create` is laid out as,
    // and returns a descriptor.
    let buffer = unsafe { ioctl::ioctl(&driver, create) }.map_err(refused)?;
    // The view is of the memfd: unlike the dma-buf's own, it has pages whose place can be asked.
    let view =
        view(File::from(memfd), len).map_err(|error| MemoryError::io("map a memfd", error))?;
    Ok(Memory::new(DmaBuf::from_fd(buffer)?, view))
}

/// `struct udmabuf_create` (include/uapi/linux/udmabuf.h).
#[repr(C)]
struct Create {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

const FLAGS_CLOEXEC: u32 = 1;

// SAFETY: the opcode is `UDMABUF_CREATE`, which reads the struct that `as_ptr` points to and
// returns a new file descriptor.
unsafe impl Ioctl for Create {
    type Output = OwnedFd;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        opcode::write::<Self>(b'u', 0x42)
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        std::ptr::from_mut(self).cast()
    }

    unsafe fn output_from_ptr(
        returned: IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> rustix::io::Result<OwnedFd> {
        // SAFETY: the call succeeded, so that `returned` is a descriptor that was opened for it and
        // that nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(returned) })
    }
}
