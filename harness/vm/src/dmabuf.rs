// SPDX-License-Identifier: MIT OR Apache-2.0

//! A dma-buf of the guest, read from outside.

use protocol::{
    Payload,
    job::{PhysicalRange, Span},
    payload::Mismatch,
};

use crate::{Error, GuestRam, Result};

/// Where a dma-buf lies in the guest's RAM: the host reads what the NIC wrote, without the guest.
#[derive(Debug)]
pub struct DmaBufView<'a> {
    ram: &'a GuestRam,
    ranges: Vec<PhysicalRange>,
}

impl<'a> DmaBufView<'a> {
    /// A dma-buf whose pages are at `ranges`, as [`protocol::Event::DmaBuf`] tells.
    #[must_use]
    pub fn new(ram: &'a GuestRam, mut ranges: Vec<PhysicalRange>) -> Self {
        ranges.sort_by_key(|range| range.offset);
        Self { ram, ranges }
    }

    /// Copies out what is at an offset of the dma-buf.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when that is not all within the dma-buf.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let outside = Error::OutOfRange {
            what: "the dma-buf",
            address: offset,
            len: buffer.len() as u64,
        };
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            // The last range that starts at or before the offset.
            let index = self.ranges.partition_point(|range| range.offset <= at);
            let range = index
                .checked_sub(1)
                .and_then(|index| self.ranges.get(index));
            let Some(range) = range.filter(|range| at - range.offset < range.len) else {
                return Err(outside);
            };
            let within = at - range.offset;
            let len = rest.len().min((range.len - within) as usize);
            let (piece, behind) = rest.split_at_mut(len);
            self.ram.read(range.address + within, piece)?;
            at += len as u64;
            rest = behind;
        }
        Ok(())
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
    use vm_memory::{Bytes, GuestAddress};

    use super::*;

    fn range(offset: u64, address: u64, len: u64) -> PhysicalRange {
        PhysicalRange {
            offset,
            address,
            len,
        }
    }

    #[test]
    fn a_fragment_across_scattered_pages_is_put_together() {
        let ram = GuestRam::create(1 << 20).unwrap();
        let payload = Payload::new(3);
        let mut bytes = vec![0; 8192];
        payload.fill(100, &mut bytes);
        ram.memory()
            .write_slice(&bytes[..4096], GuestAddress(0x9000))
            .unwrap();
        ram.memory()
            .write_slice(&bytes[4096..], GuestAddress(0x3000))
            .unwrap();

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
    fn a_fragment_outside_the_dma_buf_is_an_error() {
        let ram = GuestRam::create(1 << 20).unwrap();
        let view = DmaBufView::new(&ram, vec![range(0, 0x1000, 4096)]);
        let error = view.read(4000, &mut [0; 200]).unwrap_err();
        assert!(error.to_string().contains("the dma-buf"), "{error}");
        let nothing = DmaBufView::new(&ram, Vec::new());
        assert!(nothing.read(0, &mut [0; 1]).is_err());
    }
}
