// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary memory as a dma-buf: a memfd that the udmabuf driver exports
//! (drivers/dma-buf/udmabuf.c).

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create, open,
};
use rustix::io::Errno;
use rustix::ioctl::{self, Ioctl, IoctlOutput, Opcode, opcode};
use rustix::param::page_size;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, FileOffset, MmapRegion};

use crate::dmabuf::{CpuAccess, DmaBuf};
use crate::error::{Error, Result};
use crate::pagemap::{self, PhysicalRange};

/// Size of the pages that back a [`Udmabuf`].
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

/// A dma-buf backed by ordinary memory, together with the CPU's view of it.
///
/// A NIC may write to the memory at any time, so that there are no references into it: data is
/// copied in and out.
#[derive(Debug)]
pub struct Udmabuf {
    buffer: DmaBuf,
    view: MmapRegion,
}

impl Udmabuf {
    /// Makes a dma-buf of `len` bytes, a multiple of the page size, from base pages.
    ///
    /// # Errors
    ///
    /// As [`Udmabuf::create_with`].
    pub fn create(len: usize) -> Result<Self> {
        Self::create_with(len, Backing::BasePages)
    }

    /// Makes a dma-buf of `len` bytes, a multiple of the backing's page size.
    ///
    /// # Errors
    ///
    /// [`Error::NoUdmabuf`] without the driver or the right to open it, [`Error::UdmabufRefused`]
    /// for an odd or too large length, [`Error::NoHugePages`] and [`Error::Io`] if there is no
    /// memory.
    pub fn create_with(len: usize, backing: Backing) -> Result<Self> {
        let page_size = backing.page_size();
        let no_memory = |operation, errno: Errno| match backing {
            Backing::BasePages => Error::io(operation, errno),
            Backing::HugePages2M => Error::NoHugePages {
                len,
                source: errno.into(),
            },
        };
        let refused = |errno| match errno {
            Errno::INVAL => Error::UdmabufRefused {
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
        .map_err(|errno| Error::NoUdmabuf {
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
            .map_err(|errno| Error::io("F_SEAL_SHRINK on a memfd", errno))?;
        ftruncate(&memfd, len as u64).map_err(|errno| Error::io("size a memfd", errno))?;

        let create = Create {
            memfd: memfd.as_raw_fd() as u32,
            flags: FLAGS_CLOEXEC,
            offset: 0,
            size: len as u64,
        };
        // SAFETY: `UDMABUF_CREATE` reads a `struct udmabuf_create`, which `Create` is laid out as,
        // and returns a descriptor.
        let buffer = unsafe { ioctl::ioctl(&driver, create) }.map_err(refused)?;
        let view = map(File::from(memfd), len)?;
        Ok(Self {
            buffer: DmaBuf::from_fd(buffer)?,
            view,
        })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether the length is 0, which it never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The dma-buf itself.
    #[must_use]
    pub fn dmabuf(&self) -> &DmaBuf {
        &self.buffer
    }

    /// Copies `bytes.len()` bytes at `offset` out of the buffer.
    ///
    /// Bytes that a device writes meanwhile may come out old or new. Where the machine's DMA is not
    /// coherent with its caches, bracket the copies with [`Udmabuf::begin_cpu_access`] and
    /// [`Udmabuf::end_cpu_access`].
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the range leaves the buffer.
    pub fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let len = bytes.len();
        self.view
            .as_volatile_slice()
            .read_slice(bytes, offset)
            .map_err(|_| self.out_of_range(offset, len))
    }

    /// Copies `bytes` into the buffer at `offset`. What holds for [`Udmabuf::read_at`] holds here.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the range leaves the buffer; a part may have been written.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.view
            .as_volatile_slice()
            .write_slice(bytes, offset)
            .map_err(|_| self.out_of_range(offset, bytes.len()))
    }

    /// See [`DmaBuf::begin_cpu_access`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the driver refuses.
    pub fn begin_cpu_access(&self, access: CpuAccess) -> Result<()> {
        self.buffer.begin_cpu_access(access)
    }

    /// See [`DmaBuf::end_cpu_access`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the driver refuses.
    pub fn end_cpu_access(&self, access: CpuAccess) -> Result<()> {
        self.buffer.end_cpu_access(access)
    }

    /// Where the buffer lies in physical memory, in order of offset, neighbours joined: for those
    /// who look from outside.
    ///
    /// The pages are pinned by the udmabuf driver, so that the answer holds as long as the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::PagemapHidden`] without `CAP_SYS_ADMIN` in the initial user namespace.
    pub fn physical_pages(&self) -> Result<Vec<PhysicalRange>> {
        let page = page_size();
        // A page has no entry in this process's page table before the first access to it.
        let mut byte = [0];
        for offset in (0..self.len()).step_by(page) {
            self.read_at(offset, &mut byte)?;
        }
        pagemap::physical_ranges(self.view.as_ptr() as usize, self.len(), page)
    }

    fn out_of_range(&self, offset: usize, len: usize) -> Error {
        Error::OutOfRange {
            offset: offset as u64,
            len: len as u64,
            buffer_len: self.len() as u64,
        }
    }
}

impl AsFd for Udmabuf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.buffer.as_fd()
    }
}

fn map(memfd: File, len: usize) -> Result<MmapRegion> {
    MmapRegion::from_file(FileOffset::new(memfd, 0), len)
        .map_err(|error| Error::io("map a memfd", std::io::Error::other(error)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn view(len: usize) -> MmapRegion {
        let memfd = memfd_create("devmem-test", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&memfd, len as u64).expect("ftruncate");
        map(File::from(memfd), len).expect("map")
    }

    #[test]
    fn the_cpu_view_copies_at_any_offset_and_refuses_what_leaves_it() {
        let view = view(3 * 4096);
        let slice = view.as_volatile_slice();
        let data: Vec<u8> = (0..5000u32).map(|n| (n % 251) as u8).collect();
        slice.write_slice(&data, 4093).expect("inside");
        let mut back = vec![0; data.len()];
        slice.read_slice(&mut back, 4093).expect("inside");
        assert_eq!(back, data);
        assert!(
            slice.read_slice(&mut back, 3 * 4096 - 4999).is_err(),
            "one byte too many was read"
        );
    }
}
