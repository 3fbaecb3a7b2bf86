// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where payload lies in memory.

use crate::error::{MemoryError, OutOfRange};

/// A piece of memory that holds payload.
///
/// It is only ever seen through the fragment that owns it, and can't be copied: when the fragment was
/// recycled, nothing names its place any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Extent {
    offset: u64,
    len: u32,
}

impl Extent {
    pub(crate) const fn new(offset: u64, len: u32) -> Self {
        Self { offset, len }
    }

    /// Where it starts in the dma-buf or area, in bytes.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the length is 0, which it never is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies `bytes.len()` bytes, from `skip` bytes after the start on, out of the memory that was
    /// received into.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfRange`] if the range leaves the extent, or the extent the memory.
    pub fn read(
        &self,
        memory: &impl ReadAt,
        skip: u32,
        bytes: &mut [u8],
    ) -> Result<(), MemoryError> {
        OutOfRange::check(skip.into(), bytes.len() as u64, self.len.into())?;
        let offset = self.offset + u64::from(skip);
        let offset = usize::try_from(offset).map_err(|_| OutOfRange {
            offset,
            len: bytes.len() as u64,
            buffer_len: usize::MAX as u64,
        })?;
        memory.read_at(offset, bytes)
    }
}

/// Memory that can be copied out of.
pub trait ReadAt {
    /// Copies `bytes.len()` bytes at `offset` out of the memory.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfRange`] if the range leaves the memory.
    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbered;

    impl ReadAt for Numbered {
        fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
            OutOfRange::check(offset as u64, bytes.len() as u64, 200)?;
            bytes
                .iter_mut()
                .zip(offset..)
                .for_each(|(byte, n)| *byte = n as u8);
            Ok(())
        }
    }

    #[test]
    fn an_extent_is_read_from_any_byte_on_and_not_beyond_its_end() {
        let extent = Extent::new(100, 10);
        let mut bytes = [0; 4];
        extent.read(&Numbered, 6, &mut bytes).expect("inside");
        assert_eq!(bytes, [106, 107, 108, 109]);
        let error = extent
            .read(&Numbered, 7, &mut bytes)
            .expect_err("one too many");
        assert!(matches!(error, MemoryError::OutOfRange(range) if range.buffer_len == 10));
        let error = Extent::new(190, 20).read(&Numbered, 10, &mut bytes);
        assert!(matches!(error, Err(MemoryError::OutOfRange(range)) if range.buffer_len == 200));
    }
}
