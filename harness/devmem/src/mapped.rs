// SPDX-License-Identifier: MIT OR Apache-2.0

//! A dma-buf that the CPU sees too.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::param::page_size;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, FileOffset, MmapRegion};

use crate::dmabuf::{CpuAccess, DmaBuf};
use crate::error::{Error, Result};
use crate::pagemap::{self, PhysicalRange};

/// A dma-buf together with the CPU's view of it.
///
/// A NIC may write to the memory at any time, so that there are no references into it: data is
/// copied in and out.
#[derive(Debug)]
pub struct Mapped {
    buffer: DmaBuf,
    view: MmapRegion,
}

impl Mapped {
    /// `view` is a file that shows the same memory.
    pub(crate) fn new(buffer: DmaBuf, view: File) -> Result<Self> {
        let view = map(view, buffer.len())?;
        Ok(Self { buffer, view })
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
    /// coherent with its caches, bracket the copies with [`Mapped::begin_cpu_access`] and
    /// [`Mapped::end_cpu_access`].
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

    /// Copies `bytes` into the buffer at `offset`. What holds for [`Mapped::read_at`] holds here.
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
    /// [`Error::Io`] if the exporter refuses.
    pub fn begin_cpu_access(&self, access: CpuAccess) -> Result<()> {
        self.buffer.begin_cpu_access(access)
    }

    /// See [`DmaBuf::end_cpu_access`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the exporter refuses.
    pub fn end_cpu_access(&self, access: CpuAccess) -> Result<()> {
        self.buffer.end_cpu_access(access)
    }

    /// Where the buffer lies in physical memory, in order of offset, neighbours joined: for those
    /// who look from outside.
    ///
    /// Memory that is bound to a device does not move, so that the answer holds as long as it is.
    ///
    /// # Errors
    ///
    /// [`Error::PagemapHidden`] without `CAP_SYS_ADMIN` in the initial user namespace,
    /// [`Error::PageNotPresent`] if the exporter maps frames and not pages (`VM_PFNMAP`), as
    /// dma-heaps and devices do.
    pub fn physical_pages(&self) -> Result<Vec<PhysicalRange>> {
        let page = page_size();
        // A page may have no entry in this process's page table before the first access to it.
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

impl AsFd for Mapped {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.buffer.as_fd()
    }
}

fn map(file: File, len: usize) -> Result<MmapRegion> {
    MmapRegion::from_file(FileOffset::new(file, 0), len)
        .map_err(|error| Error::io("map a dma-buf", std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

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
