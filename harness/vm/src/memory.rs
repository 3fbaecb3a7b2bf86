// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory of the guest, seen from the host: its RAM, and that of its accelerator.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion,
};

use crate::{Error, Result};

/// q35 puts all RAM below 4 GiB when it is smaller than this, else only [`LOW`] of it
/// (QEMU, hw/i386/pc_q35.c, pc_q35_init).
const SPLIT_FROM: u64 = 0xb000_0000;
const LOW: u64 = 0x8000_0000;
const HIGH_ADDRESS: u64 = 1 << 32;

/// Memory that the host makes and QEMU shares, before it has an address in the guest.
#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
    name: &'static str,
    bytes: u64,
}

impl Backing {
    /// Makes memory of this size. `name` says in errors whose it is.
    pub(crate) fn create(name: &'static str, bytes: u64) -> Result<Self> {
        let failed = |message: String| Error::Memory {
            name,
            bytes,
            message,
        };
        let fd = memfd_create(name, MemfdFlags::CLOEXEC)
            .map_err(|error| failed(format!("memfd_create: {error}")))?;
        ftruncate(&fd, bytes).map_err(|error| failed(format!("ftruncate: {error}")))?;
        Ok(Self {
            file: File::from(fd),
            name,
            bytes,
        })
    }

    /// The memory as a file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The memory as RAM of a q35 machine.
    pub(crate) fn as_ram(&self) -> Result<GuestMemory> {
        self.map(&layout(self.bytes))
    }

    /// The memory in one piece, at an address.
    pub(crate) fn at(&self, address: u64) -> Result<GuestMemory> {
        self.map(&[(address, 0, self.bytes)])
    }

    /// Maps pieces of the file: guest-physical address, offset in the file, bytes.
    fn map(&self, pieces: &[(u64, u64, u64)]) -> Result<GuestMemory> {
        let failed = |message: String| Error::Memory {
            name: self.name,
            bytes: self.bytes,
            message,
        };
        let again = || self.file.try_clone().map_err(|e| failed(e.to_string()));
        let mut ranges = Vec::new();
        for &(address, offset, len) in pieces {
            let len = usize::try_from(len).map_err(|error| failed(error.to_string()))?;
            let file = FileOffset::new(again()?, offset);
            ranges.push((GuestAddress(address), len, Some(file)));
        }
        let memory = GuestMemoryMmap::from_ranges_with_files(ranges)
            .map_err(|error| failed(error.to_string()))?;
        Ok(GuestMemory {
            memory,
            name: self.name,
        })
    }
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Memory of the guest by guest-physical address.
///
/// The guest and its devices write to it at any time, so bytes are copied and never borrowed.
#[derive(Debug)]
pub struct GuestMemory {
    memory: GuestMemoryMmap,
    name: &'static str,
}

impl GuestMemory {
    /// Copies out what is at a guest-physical address.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when that is not all this memory.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        self.memory
            .read_slice(buffer, GuestAddress(address))
            .map_err(|_| self.out_of_range(address, buffer.len()))
    }

    /// Copies bytes to a guest-physical address, behind the back of the guest's processors.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when that is not all this memory; a part may have been written.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.memory
            .write_slice(bytes, GuestAddress(address))
            .map_err(|_| self.out_of_range(address, bytes.len()))
    }

    /// Whether there is such memory at a guest-physical address.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.memory.address_in_range(GuestAddress(address))
    }

    /// The memory as vm-memory sees it.
    #[must_use]
    pub fn memory(&self) -> &GuestMemoryMmap {
        &self.memory
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.memory.iter().map(GuestMemoryRegion::len).sum()
    }

    fn out_of_range(&self, address: u64, len: usize) -> Error {
        Error::OutOfRange {
            what: self.name,
            address,
            len: len as u64,
        }
    }
}

/// Guest-physical address, offset in the backing file, bytes.
fn layout(bytes: u64) -> Vec<(u64, u64, u64)> {
    if bytes < SPLIT_FROM {
        vec![(0, 0, bytes)]
    } else {
        vec![(0, 0, LOW), (HIGH_ADDRESS, LOW, bytes - LOW)]
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn small_memory_is_in_one_piece() {
        assert_eq!(layout(1 << 30), [(0, 0, 1 << 30)]);
        assert_eq!(layout(SPLIT_FROM - 1), [(0, 0, SPLIT_FROM - 1)]);
    }

    #[test]
    fn large_memory_goes_on_above_4_gib() {
        let bytes = 3 << 30;
        assert_eq!(
            layout(bytes),
            [(0, 0, LOW), (HIGH_ADDRESS, LOW, bytes - LOW)]
        );
    }

    #[test]
    fn what_the_backing_file_holds_is_what_is_read() {
        let backing = Backing::create("test", 1 << 20).unwrap();
        let ram = backing.as_ram().unwrap();
        backing.file.write_all_at(b"payload", 0x1234).unwrap();
        let mut bytes = [0; 7];
        ram.read(0x1234, &mut bytes).unwrap();
        assert_eq!(&bytes, b"payload");
        assert_eq!(ram.bytes(), 1 << 20);
    }

    #[test]
    fn what_is_written_is_in_the_backing_file() {
        let backing = Backing::create("test", 1 << 20).unwrap();
        let memory = backing.at(0x80_0000_0000).unwrap();
        memory.write(0x80_0000_1234, b"payload").unwrap();
        let mut bytes = [0; 7];
        backing.file.read_exact_at(&mut bytes, 0x1234).unwrap();
        assert_eq!(&bytes, b"payload");
        assert!(memory.contains(0x80_0000_1234) && !memory.contains(0x1234));
    }

    #[test]
    fn an_address_behind_the_end_is_an_error() {
        let ram = Backing::create("the RAM", 1 << 20)
            .unwrap()
            .as_ram()
            .unwrap();
        let error = ram.read((1 << 20) - 4, &mut [0; 8]).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { len: 8, .. }), "{error}");
        assert!(error.to_string().contains("the RAM"), "{error}");
        assert!(ram.write((1 << 20) - 4, &[0; 8]).is_err());
    }
}
