// SPDX-License-Identifier: MIT OR Apache-2.0

//! A dma-buf together with the CPU's view of it, whatever exported it.
//!
//! | memory | how to get it |
//! |---|---|
//! | ordinary memory | [`crate::udmabuf::Udmabuf`] |
//! | a dma-heap's | [`crate::heap::Heap`] |
//! | any other device's, for instance a GPU's | its library exports a descriptor: [`Memory::from_fd`] |
//!
//! Binding, receiving and sending need no view: where an exporter offers none, a
//! [`crate::dmabuf::DmaBuf`] will do.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::param::page_size;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, FileOffset, MmapRegion};

use crate::dmabuf::{CpuAccess, DmaBuf};
use crate::error::{MemoryError, OutOfRange};
pub use crate::extent::ReadAt;
use crate::pagemap::{self, PhysicalRange};

/// A dma-buf and the CPU's view of it.
///
/// A device may write to the memory at any time, so that there are no references into it: data is
/// copied in and out.
#[derive(Debug)]
pub struct Memory {
    buffer: DmaBuf,
    view: View,
}

/// The CPU's view of a dma-buf. It stays when the dma-buf's descriptor is closed.
#[derive(Debug)]
pub struct View {
    region: MmapRegion,
    place: Place,
}

/// How to learn where memory lies.
#[derive(Debug)]
enum Place {
    /// It has pages, which the page table of this process names.
    PageTable,
    /// It is a range of a device's memory that starts at this physical address. Such a mapping has
    /// no pages, and `/proc/self/pagemap` passes over it (`walk_page_test` in mm/pagewalk.c).
    At(u64),
}

impl Memory {
    /// Maps a dma-buf for the CPU.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotMappable`] if its exporter does not offer that.
    pub fn map(buffer: DmaBuf) -> Result<Self, MemoryError> {
        let file = buffer
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| MemoryError::io("duplicate a dma-buf's descriptor", error))?;
        let view = view(file.into(), buffer.len())
            .map_err(|source| MemoryError::NotMappable { source })?;
        Ok(Self::new(buffer, view))
    }

    /// Takes over a dma-buf's file descriptor and maps it.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotADmaBuf`] if it is a descriptor of another kind; otherwise as [`Memory::map`].
    pub fn from_fd(fd: OwnedFd) -> Result<Self, MemoryError> {
        Self::map(DmaBuf::from_fd(fd)?)
    }

    /// A dma-buf with a view that shows the same memory.
    pub(crate) fn new(buffer: DmaBuf, region: MmapRegion) -> Self {
        let place = Place::PageTable;
        Self {
            buffer,
            view: View { region, place },
        }
    }

    /// The same memory, which its exporter knows to be one range that starts at this physical address. It
    /// is what [`View::physical_ranges`] will tell; nothing else depends on it.
    #[must_use]
    pub fn located_at(self, address: u64) -> Self {
        let Self { buffer, mut view } = self;
        view.place = Place::At(address);
        Self { buffer, view }
    }

    /// The dma-buf and the view apart from each other.
    #[must_use]
    pub fn into_parts(self) -> (DmaBuf, View) {
        (self.buffer, self.view)
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

    /// The CPU's view.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Copies out as [`View::read_at`] does, between [`Memory::begin_cpu_access`] and [`Memory::end_cpu_access`]. To
    /// make many copies, call these once, and copy through the view.
    ///
    /// # Errors
    ///
    /// As there, and those of [`Memory::begin_cpu_access`].
    pub fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.told(CpuAccess::Read, || self.view.read_at(offset, bytes))
    }

    /// Copies in as [`View::write_at`] does, between [`Memory::begin_cpu_access`] and [`Memory::end_cpu_access`]. To
    /// make many copies, call these once, and copy through the view.
    ///
    /// # Errors
    ///
    /// As there, and those of [`Memory::begin_cpu_access`].
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        self.told(CpuAccess::Write, || self.view.write_at(offset, bytes))
    }

    /// Copies between the two calls that tell the exporter; the second comes in any case.
    fn told(
        &self,
        access: CpuAccess,
        copy: impl FnOnce() -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        self.begin_cpu_access(access)?;
        let copied = copy();
        self.end_cpu_access(access)?;
        copied
    }

    /// See [`DmaBuf::begin_cpu_access`].
    ///
    /// # Errors
    ///
    /// [`MemoryError::SystemCall`] if the exporter refuses.
    pub fn begin_cpu_access(&self, access: CpuAccess) -> Result<(), MemoryError> {
        self.buffer.begin_cpu_access(access)
    }

    /// See [`DmaBuf::end_cpu_access`].
    ///
    /// # Errors
    ///
    /// [`MemoryError::SystemCall`] if the exporter refuses.
    pub fn end_cpu_access(&self, access: CpuAccess) -> Result<(), MemoryError> {
        self.buffer.end_cpu_access(access)
    }

    /// See [`View::physical_ranges`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn physical_ranges(&self) -> Result<Vec<PhysicalRange>, MemoryError> {
        self.view.physical_ranges()
    }
}

impl View {
    /// A view without a dma-buf.
    #[cfg(test)]
    pub(crate) fn of(region: MmapRegion) -> Self {
        Self {
            region,
            place: Place::PageTable,
        }
    }

    pub(crate) fn region(&self) -> &MmapRegion {
        &self.region
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.region.size()
    }

    /// Whether the length is 0, which it never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `bytes.len()` bytes at `offset` out of the memory.
    ///
    /// Bytes that a device writes meanwhile may come out old or new. Where the machine's DMA is not
    /// coherent with its caches, bracket the copies with [`Memory::begin_cpu_access`] and
    /// [`Memory::end_cpu_access`].
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfRange`] if the range leaves the memory.
    pub fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let len = bytes.len();
        self.region
            .as_volatile_slice()
            .read_slice(bytes, offset)
            .map_err(|_| self.out_of_range(offset, len))
    }

    /// Copies `bytes` into the memory at `offset`. What holds for [`View::read_at`] holds here.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfRange`] if the range leaves the memory; a part may have been written.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        self.region
            .as_volatile_slice()
            .write_slice(bytes, offset)
            .map_err(|_| self.out_of_range(offset, bytes.len()))
    }

    /// The memory's physical addresses as the CPU sees them, in order of offset, adjacent ranges
    /// merged: for inspecting it from outside.
    ///
    /// The answer holds as long as the memory: a udmabuf's pages are pinned, an accelerator's range
    /// does not move.
    ///
    /// # Errors
    ///
    /// [`MemoryError::PagemapHidden`] without `CAP_SYS_ADMIN` in the initial user namespace,
    /// [`MemoryError::PageNotPresent`] if its exporter maps it without pages and does not say where it
    /// is, as dma-heaps do.
    pub fn physical_ranges(&self) -> Result<Vec<PhysicalRange>, MemoryError> {
        if let Place::At(address) = self.place {
            return Ok(vec![PhysicalRange {
                offset: 0,
                address,
                len: self.len() as u64,
            }]);
        }
        let page = page_size();
        // A page has no entry in this process's page table before the first access to it.
        let mut byte = [0];
        for offset in (0..self.len()).step_by(page) {
            self.read_at(offset, &mut byte)?;
        }
        pagemap::physical_ranges(self.region.as_ptr() as usize, self.len(), page)
    }

    fn out_of_range(&self, offset: usize, len: usize) -> MemoryError {
        MemoryError::OutOfRange(OutOfRange {
            offset: offset as u64,
            len: len as u64,
            buffer_len: self.len() as u64,
        })
    }
}

/// What allocates dma-bufs. Implement it for the memory of your own device.
pub trait Exporter {
    /// Why there is no memory.
    type Error: std::error::Error + Send + Sync + 'static;

    /// A new dma-buf of `len` bytes, each contiguous piece of which starts at a multiple of `align` bytes, a
    /// power of two, for a device that accesses it.
    ///
    /// # Errors
    ///
    /// What keeps the exporter from it.
    fn allocate(&self, len: usize, align: usize) -> Result<Memory, Self::Error>;
}

impl ReadAt for Memory {
    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.view.read_at(offset, bytes)
    }
}

impl ReadAt for View {
    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.read_at(offset, bytes)
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.buffer.as_fd()
    }
}

/// Maps the first `len` bytes of a file, shared.
pub(crate) fn view(file: File, len: usize) -> std::io::Result<MmapRegion> {
    use vm_memory::mmap::MmapRegionError;
    MmapRegion::from_file(FileOffset::new(file, 0), len).map_err(|error| match error {
        MmapRegionError::Mmap(error) => error,
        other => std::io::Error::other(other),
    })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    #[test]
    fn the_cpu_view_copies_at_any_offset_and_refuses_what_leaves_it() {
        let memfd = memfd_create("devmem-test", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&memfd, 3 * 4096).expect("ftruncate");
        let view = view(File::from(memfd), 3 * 4096).expect("map");
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

    #[test]
    fn what_cannot_be_mapped_is_said_with_the_kernels_errno() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("socket");
        let error = view(File::from(OwnedFd::from(socket)), 4096).expect_err("a socket was mapped");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
