// SPDX-License-Identifier: MIT OR Apache-2.0

//! A dma-buf of the guest, read from outside.

use protocol::{
    Mismatch, Payload,
    memory::{PhysicalRange, Span},
};

use crate::{Error, GuestMemory, Result};

/// Where a dma-buf lies in the guest's RAM, or in its accelerator's memory: the host reads what the
/// NIC wrote, without the guest.
#[derive(Debug)]
pub struct DmaBufView<'a> {
    memory: &'a GuestMemory,
    ranges: Vec<PhysicalRange>,
}

impl<'a> DmaBufView<'a> {
    /// A dma-buf whose pieces are at `ranges` of `memory`, as [`protocol::Event::DmaBuf`] tells.
    /// [`crate::Guest::dmabuf`] knows which memory it is.
    #[must_use]
    pub fn new(memory: &'a GuestMemory, mut ranges: Vec<PhysicalRange>) -> Self {
        ranges.sort_by_key(|range| range.offset);
        Self { memory, ranges }
    }

    /// Copies out what is at an offset of the dma-buf.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when that is not all within the dma-buf.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let mut rest = buffer;
        for (address, len) in self.pieces(offset, rest.len())? {
            let (piece, behind) = rest.split_at_mut(len);
            self.memory.read(address, piece)?;
            rest = behind;
        }
        Ok(())
    }

    /// Copies bytes to an offset of the dma-buf, behind the back of the guest's processors.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when that is not all within the dma-buf; nothing was written then.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for (address, len) in self.pieces(offset, rest.len())? {
            let (piece, behind) = rest.split_at(len);
            self.memory.write(address, piece)?;
            rest = behind;
        }
        Ok(())
    }

    /// Guest-physical addresses and lengths of what is at an offset of the dma-buf.
    fn pieces(&self, offset: u64, len: usize) -> Result<Vec<(u64, usize)>> {
        let mut pieces = Vec::new();
        let mut at = offset;
        let mut rest = len;
        while rest > 0 {
            // The last range that starts at or before the offset.
            let index = self.ranges.partition_point(|range| range.offset <= at);
            let range = index
                .checked_sub(1)
                .and_then(|index| self.ranges.get(index));
            let Some(range) = range.filter(|range| at - range.offset < range.len) else {
                return Err(Error::OutOfRange {
                    what: "the dma-buf",
                    address: offset,
                    len: len as u64,
                });
            };
            let within = at - range.offset;
            let piece = rest.min((range.len - within) as usize);
            pieces.push((range.address + within, piece));
            at += piece as u64;
            rest -= piece;
        }
        Ok(pieces)
    }

    /// Compares a fragment with the payload that belongs at `stream_offset`. `None` when it is
    /// right.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the fragment is not within the dma-buf.
    pub fn check(
        &self,
        fragment: Span,
        payload: Payload,
        stream_offset: u64,
    ) -> Result<Option<Mismatch>> {
        let mut bytes = vec![0; fragment.len as usize];
        self.read(fragment.offset, &mut bytes)?;
        Ok(payload.check(stream_offset, &bytes).err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Backing;

    fn ram() -> GuestMemory {
        Backing::create("test", 1 << 20).unwrap().as_ram().unwrap()
    }

    fn range(offset: u64, address: u64, len: u64) -> PhysicalRange {
        PhysicalRange {
            offset,
            address,
            len,
        }
    }

    #[test]
    fn a_fragment_across_scattered_pages_is_put_together() {
        let ram = ram();
        let payload = Payload::new(3);
        let mut bytes = vec![0; 8192];
        payload.fill(100, &mut bytes);
        ram.write(0x9000, &bytes[..4096]).unwrap();
        ram.write(0x3000, &bytes[4096..]).unwrap();

        let view = DmaBufView::new(
            &ram,
            vec![range(4096, 0x3000, 4096), range(0, 0x9000, 4096)],
        );
        let whole = Span {
            offset: 0,
            len: 8192,
        };
        assert_eq!(view.check(whole, payload, 100).unwrap(), None);
        let middle = Span {
            offset: 4000,
            len: 200,
        };
        assert_eq!(view.check(middle, payload, 4100).unwrap(), None);

        let wrong = view.check(middle, payload, 4101).unwrap();
        assert!(wrong.is_some_and(|mismatch| mismatch.offset >= 4101));
    }

    #[test]
    fn what_is_written_across_scattered_pages_is_read_back() {
        let ram = ram();
        let view = DmaBufView::new(
            &ram,
            vec![range(0, 0x9000, 4096), range(4096, 0x3000, 4096)],
        );
        view.write(4090, b"across pages").unwrap();
        let mut bytes = [0; 12];
        view.read(4090, &mut bytes).unwrap();
        assert_eq!(&bytes, b"across pages");
        let mut behind = [0; 6];
        ram.read(0x3000, &mut behind).unwrap();
        assert_eq!(&behind, b" pages");
        assert!(view.write(8190, b"too far").is_err());
    }

    #[test]
    fn a_fragment_outside_the_dma_buf_is_an_error() {
        let ram = ram();
        let view = DmaBufView::new(&ram, vec![range(0, 0x1000, 4096)]);
        let error = view.read(4000, &mut [0; 200]).unwrap_err();
        assert!(error.to_string().contains("the dma-buf"), "{error}");
        let nothing = DmaBufView::new(&ram, Vec::new());
        assert!(nothing.read(0, &mut [0; 1]).is_err());
    }
}
