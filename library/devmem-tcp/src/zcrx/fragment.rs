// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pieces of areas that hold payload.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use io_uring::types::IORING_ZCRX_AREA_SHIFT;

use crate::extent::Extent;

/// A piece of an area that holds payload. It is the reader's until it is recycled, by value
/// ([`super::Refill::recycle`]). A fragment that is dropped instead is lost to the queue.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the NIC lacks the memory until the fragment is recycled"]
pub struct Fragment {
    extent: Extent,
    area: u16,
    /// The queue that it is to be recycled to.
    queue: Identity,
}

/// A queue, unlike all others of this process. The kernel's numbers are an io_uring's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u32);

impl Identity {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Fragment {
    /// A fragment as a completion tells it: `struct io_uring_zcrx_cqe::off` and the result.
    pub(super) fn from_completion(offset: u64, len: u32, queue: Identity) -> Self {
        let area = offset >> IORING_ZCRX_AREA_SHIFT;
        Self {
            extent: Extent::new(offset ^ (area << IORING_ZCRX_AREA_SHIFT), len),
            area: area as u16,
            queue,
        }
    }

    pub(super) fn is_of(&self, queue: Identity) -> bool {
        self.queue == queue
    }

    /// `off` and `len` of an entry of the refill ring.
    pub(super) fn into_entry(self) -> (u64, u32) {
        let area = u64::from(self.area) << IORING_ZCRX_AREA_SHIFT;
        (area | self.extent.offset(), self.extent.len())
    }

    /// Which area it is in: 0 is the one that the queue was registered with, those that were added follow.
    #[must_use]
    pub fn area(&self) -> u32 {
        self.area.into()
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
        let fragment = Fragment::from_completion((3 << 48) | 0x1234, 7, Identity::new());
        assert_eq!(
            (fragment.area(), fragment.offset(), fragment.len()),
            (3, 0x1234, 7)
        );
        assert_eq!(fragment.into_entry(), ((3 << 48) | 0x1234, 7));
        // No larger than it must be: 48 bits of offset and 16 of area were one word.
        assert_eq!(size_of::<Fragment>(), 24);
    }
}
