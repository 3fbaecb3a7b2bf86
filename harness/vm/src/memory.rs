// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest's RAM, seen from the host.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

use crate::{Error, Result};

/// q35 puts all RAM below 4 GiB when it is smaller than this, else only [`LOW`] of it
/// (QEMU, hw/i386/pc_q35.c, pc_q35_init).
const SPLIT_FROM: u64 = 0xb000_0000;
const LOW: u64 = 0x8000_0000;
const HIGH_ADDRESS: u64 = 1 << 32;

/// The guest's RAM: memory that the host made and QEMU shares.
///
/// The guest and its devices write to it at any time, so bytes are copied out and never borrowed.
#[derive(Debug)]
pub struct GuestRam {
    file: File,
    memory: GuestMemoryMmap,
    bytes: u64,
}

impl GuestRam {
    /// Makes and maps the RAM.
    pub(crate) fn create(bytes: u64) -> Result<Self> {
        let failed = |message: String| Error::Memory { bytes, message };
        let fd = memfd_create("nobounce-guest-ram", MemfdFlags::CLOEXEC)
            .map_err(|error| failed(format!("memfd_create: {error}")))?;
        ftruncate(&fd, bytes).map_err(|error| failed(format!("ftruncate: {error}")))?;
        let file = File::from(fd);
        let mut ranges = Vec::new();
        for (address, offset, len) in layout(bytes) {
            let file = file
                .try_clone()
                .map_err(|error| failed(error.to_string()))?;
            let len = usize::try_from(len).map_err(|error| failed(error.to_string()))?;
            ranges.push((
                GuestAddress(address),
                len,
                Some(FileOffset::new(file, offset)),
            ));
        }
        let memory = GuestMemoryMmap::from_ranges_with_files(ranges)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            file,
            memory,
            bytes,
        })
    }

    /// Copies out what is at a guest-physical address.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when that is not all RAM.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        self.memory
            .read_slice(buffer, GuestAddress(address))
            .map_err(|_| Error::OutOfRange {
                what: "the guest's RAM",
                address,
                len: buffer.len() as u64,
            })
    }

    /// The RAM as vm-memory sees it.
    #[must_use]
    pub fn memory(&self) -> &GuestMemoryMmap {
        &self.memory
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl AsFd for GuestRam {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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
        use std::os::unix::fs::FileExt;
        let ram = GuestRam::create(1 << 20).unwrap();
        ram.file.write_all_at(b"payload", 0x1234).unwrap();
        let mut bytes = [0; 7];
        ram.read(0x1234, &mut bytes).unwrap();
        assert_eq!(&bytes, b"payload");
    }

    #[test]
    fn an_address_behind_the_end_is_an_error() {
        let ram = GuestRam::create(1 << 20).unwrap();
        let error = ram.read((1 << 20) - 4, &mut [0; 8]).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { len: 8, .. }), "{error}");
    }
}
