// SPDX-License-Identifier: MIT OR Apache-2.0

//! The memory that a device reaches: what QEMU has mapped for it, by address.
//!
//! QEMU unmaps and maps regions at any time, all RAM several times at boot, so each access looks its
//! regions up and no pointer outlives it. A region without a descriptor, such as a ROM or
//! another device's BAR, is known but can't be accessed.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fs::File};

use libc::{MAP_NORESERVE, MAP_SHARED, PROT_READ, PROT_WRITE};
use model::Fault;
use vfio_user::DmaMapFlags;
use vm_memory::{
    Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice, mmap::MmapRegionError,
};

/// Why a region is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// It has no bytes, or goes beyond the last address.
    #[error("{size:#x} bytes at {address:#x} are no region")]
    Range {
        /// Where it begins.
        address: u64,
        /// Its length.
        size: u64,
    },

    /// There is another one.
    #[error("{size:#x} bytes at {address:#x} overlap what is mapped at {other:#x}")]
    Overlap {
        /// Where it begins.
        address: u64,
        /// Its length.
        size: u64,
        /// Where the other one begins.
        other: u64,
    },

    /// The file ends before the region does: an access would end the program.
    #[error("{size:#x} bytes at {address:#x} are not all in their file")]
    File {
        /// Where it begins.
        address: u64,
        /// Its length.
        size: u64,
    },

    /// The descriptor can't be mapped like this.
    #[error("{size:#x} bytes at {address:#x} can't be mapped: {error}")]
    Mmap {
        /// Where it begins.
        address: u64,
        /// Its length.
        size: u64,
        /// What went wrong.
        #[source]
        error: MmapRegionError,
    },
}

/// A region, by its first address in [`DmaMap`].
#[derive(Debug)]
struct Region {
    /// Never 0, and its end is an address.
    size: u64,
    rights: DmaMapFlags,
    /// None of a region that came without a descriptor.
    memory: Option<MmapRegion>,
}

/// All regions. They don't overlap.
#[derive(Debug, Default)]
pub struct DmaMap {
    regions: BTreeMap<u64, Region>,
}

impl DmaMap {
    /// Adds a region: what is at `offset` of a file, shared with QEMU.
    ///
    /// # Errors
    ///
    /// [`MapError`]; nothing has changed then.
    pub fn map(
        &mut self,
        address: u64,
        size: u64,
        fd: Option<File>,
        offset: u64,
        flags: DmaMapFlags,
    ) -> Result<(), MapError> {
        let Some(last) = size.checked_sub(1).and_then(|n| address.checked_add(n)) else {
            return Err(MapError::Range { address, size });
        };
        if let Some(other) = self.overlapping(address, last).next() {
            return Err(MapError::Overlap {
                address,
                size,
                other,
            });
        }
        if fd.as_ref().is_some_and(|file| !holds(file, offset, size)) {
            return Err(MapError::File { address, size });
        }
        let length = usize::try_from(size).map_err(|_| MapError::Range { address, size })?;
        let mut protection = 0;
        if flags.contains(DmaMapFlags::READ) {
            protection |= PROT_READ;
        }
        if flags.contains(DmaMapFlags::WRITE) {
            protection |= PROT_WRITE;
        }
        let memory = fd
            .map(|file| {
                let file = FileOffset::new(file, offset);
                MmapRegion::build(Some(file), length, protection, MAP_SHARED | MAP_NORESERVE)
            })
            .transpose()
            .map_err(|error| MapError::Mmap {
                address,
                size,
                error,
            })?;
        let region = Region {
            size,
            rights: flags,
            memory,
        };
        self.regions.insert(address, region);
        Ok(())
    }

    /// Removes all regions of which there is a part in the range: memory that was taken away, if only a
    /// part of it, must never be accessed again. That there is none is no error. Returns how many there
    /// were.
    pub fn unmap(&mut self, address: u64, size: u64) -> usize {
        let Some(count) = size.checked_sub(1) else {
            return 0;
        };
        let last = address.saturating_add(count);
        let found: Vec<_> = self.overlapping(address, last).collect();
        for start in &found {
            self.regions.remove(start);
        }
        found.len()
    }

    /// Removes all regions.
    pub fn unmap_all(&mut self) {
        self.regions.clear();
    }

    /// Reads memory.
    ///
    /// # Errors
    ///
    /// [`Fault`] if not all of it can be read; nothing has been read then.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.walk(address, bytes.len(), DmaMapFlags::READ, |_, _| Ok(()))?;
        self.walk(address, bytes.len(), DmaMapFlags::READ, |memory, at| {
            let part = bytes
                .get_mut(at..at + memory.len())
                .ok_or(Fault::Unanswered)?;
            memory.read_slice(part, 0).map_err(|_| Fault::Unanswered)
        })
    }

    /// Writes memory.
    ///
    /// # Errors
    ///
    /// [`Fault`] if not all of it can be written; nothing has been written then.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.walk(address, bytes.len(), DmaMapFlags::WRITE, |_, _| Ok(()))?;
        self.walk(address, bytes.len(), DmaMapFlags::WRITE, |memory, at| {
            let part = bytes.get(at..at + memory.len()).ok_or(Fault::Unanswered)?;
            memory.write_slice(part, 0).map_err(|_| Fault::Unanswered)
        })
    }

    /// Goes over the pieces of an access: each with how many bytes come before it.
    fn walk(
        &self,
        address: u64,
        len: usize,
        right: DmaMapFlags,
        mut each: impl FnMut(VolatileSlice<'_>, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut done = 0;
        while done < len {
            let at = address.checked_add(done as u64).ok_or(Fault::Unanswered)?;
            let piece = self.piece(at, len - done, right).ok_or(Fault::Unanswered)?;
            let size = piece.len();
            each(piece, done)?;
            done += size;
        }
        Ok(())
    }

    /// What there is at an address in one region: a byte at least.
    fn piece(&self, address: u64, most: usize, right: DmaMapFlags) -> Option<VolatileSlice<'_>> {
        let (start, region) = self.regions.range(..=address).next_back()?;
        let within = address - start;
        let left = region.size.checked_sub(within).filter(|&left| left > 0)?;
        if !region.rights.contains(right) {
            return None;
        }
        let memory = region.memory.as_ref()?;
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(most);
        memory.get_slice(usize::try_from(within).ok()?, len).ok()
    }

    /// The first addresses of regions with a part in a range, of which the end belongs to it.
    fn overlapping(&self, first: u64, last: u64) -> impl Iterator<Item = u64> {
        let reaching = self.regions.range(..=last).rev();
        let reaching =
            reaching.take_while(move |(start, region)| *start + (region.size - 1) >= first);
        reaching.map(|(start, _)| *start)
    }
}

/// Whether a file goes on to the end of a range. Of what is no regular file, only mapping it tells.
fn holds(file: &File, offset: u64, size: u64) -> bool {
    let end = offset.checked_add(size);
    match (file.metadata(), end) {
        (Ok(metadata), Some(end)) => !metadata.is_file() || metadata.len() >= end,
        _ => false,
    }
}
