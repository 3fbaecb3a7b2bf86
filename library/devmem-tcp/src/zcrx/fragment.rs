// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pieces of areas that hold payload.

use std::ops::Deref;

use io_uring::types::{IORING_ZCRX_AREA_MASK, IORING_ZCRX_AREA_SHIFT};

use crate::extent::Extent;

/// A piece of an area that holds payload. It is the reader's until it is recycled, by value
/// ([`super::Refill::recycle`]). A fragment that is dropped instead is lost to the queue.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the NIC lacks the memory until the fragment is recycled"]
pub struct Fragment {
    extent: Extent,
    area: u64,
}

impl Fragment {
    /// A fragment as a completion tells it: `struct io_uring_zcrx_cqe::off` and the result.
    pub(super) fn from_completion(offset: u64, len: u32) -> Self {
        let mask = IORING_ZCRX_AREA_MASK;
        Self {
            extent: Extent::new(offset & !mask, len),
            area: offset & mask,
        }
    }

    /// `off` and `len` of an entry of the refill ring.
    pub(super) fn into_entry(self) -> (u64, u32) {
        (self.area | self.extent.offset(), self.extent.len())
    }

    /// Which area it is in: 0 is the one that the queue was registered with, those that were added follow.
    #[must_use]
    pub fn area(&self) -> u32 {
        (self.area >> IORING_ZCRX_AREA_SHIFT) as u32
    }
}

impl Deref for Fragment {
    type Target = Extent;

    fn deref(&self) -> &Extent {
        &self.extent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_areas_number_is_not_part_of_a_fragments_offset_and_goes_back_with_it() {
        let fragment = Fragment::from_completion((3 << 48) | 0x1234, 7);
        assert_eq!(
            (fragment.area(), fragment.offset(), fragment.len()),
            (3, 0x1234, 7)
        );
        assert_eq!(fragment.into_entry(), ((3 << 48) | 0x1234, 7));
    }
}
