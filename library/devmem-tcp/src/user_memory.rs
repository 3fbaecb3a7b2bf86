// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory of this process that is no dma-buf, for what receives into either.

use rustix::param::page_size;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, MmapRegion};

use crate::error::{MemoryError, OutOfRange};
use crate::extent::ReadAt;
use crate::pagemap::{self, PhysicalRange};
use crate::udmabuf::Backing;

/// Ordinary memory of this process.
///
/// A NIC may write to it at any time, so that there are no references into it: data is copied out.
#[derive(Debug)]
pub struct UserMemory {
    view: MmapRegion,
}

impl UserMemory {
    /// `len` bytes of base pages, a multiple of the page size.
    ///
    /// # Errors
    ///
    /// [`MemoryError::SystemCall`] if there is no memory.
    pub fn create(len: usize) -> Result<Self, MemoryError> {
        Self::create_with(len, Backing::BasePages)
    }

    /// `len` bytes, a multiple of the backing's page size.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NoHugePages`] and [`MemoryError::SystemCall`] if there is no memory.
    pub fn create_with(len: usize, backing: Backing) -> Result<Self, MemoryError> {
        let huge = match backing {
            Backing::BasePages => 0,
            Backing::HugePages2M => libc::MAP_HUGETLB | libc::MAP_HUGE_2MB,
        };
        // Populated: physical addresses exist only for what is there.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE | huge;
        let view = MmapRegion::build(None, len, libc::PROT_READ | libc::PROT_WRITE, flags);
        let view = view.map_err(|error| {
            let source = std::io::Error::other(error);
            match backing {
                Backing::BasePages => MemoryError::io("map memory to receive into", source),
                Backing::HugePages2M => MemoryError::NoHugePages { len, source },
            }
        })?;
        Ok(Self { view })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.view.size()
    }

    /// Whether the length is 0, which it never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `bytes.len()` bytes at `offset` out of the memory. What a NIC writes meanwhile may
    /// come out old or new.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`] if the range leaves the memory.
    pub fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let slice = self.view.as_volatile_slice();
        let len = bytes.len();
        slice
            .read_slice(bytes, offset)
            .map_err(|_| self.out_of_range(offset, len))
    }

    /// Copies `bytes` into the memory at `offset`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfRange`] if the range leaves the memory; a part may have been written.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        let slice = self.view.as_volatile_slice();
        let written = slice.write_slice(bytes, offset);
        written.map_err(|_| self.out_of_range(offset, bytes.len()))
    }

    pub(crate) fn region(&self) -> &MmapRegion {
        &self.view
    }

    fn out_of_range(&self, offset: usize, len: usize) -> MemoryError {
        MemoryError::OutOfRange(OutOfRange {
            offset: offset as u64,
            len: len as u64,
            buffer_len: self.len() as u64,
        })
    }

    /// Where the memory lies physically, in order of offset, neighbours joined. It is sure to stay
    /// there while a queue receives into it.
    ///
    /// # Errors
    ///
    /// [`MemoryError::PagemapHidden`] without `CAP_SYS_ADMIN` in the initial user namespace.
    pub fn physical_ranges(&self) -> Result<Vec<PhysicalRange>, MemoryError> {
        pagemap::physical_ranges(self.view.as_ptr() as usize, self.len(), page_size())
    }
}

impl ReadAt for UserMemory {
    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.read_at(offset, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_at_first_and_a_read_that_leaves_it_is_an_error() {
        let memory = UserMemory::create(2 * page_size()).expect("memory");
        let mut bytes = vec![1; 100];
        memory.read_at(page_size() - 50, &mut bytes).expect("read");
        assert_eq!(bytes, vec![0; 100]);
        let error = memory.read_at(2 * page_size() - 99, &mut bytes);
        assert!(
            matches!(
                error,
                Err(MemoryError::OutOfRange(OutOfRange { len: 100, .. }))
            ),
            "got {error:?}"
        );
    }
}
