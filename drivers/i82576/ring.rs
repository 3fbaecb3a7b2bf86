// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Arithmetic on the indices of a descriptor ring.
//!
//! One slot always stays empty: a full ring and an empty one would otherwise both have head equal
//! to tail, which the device reads as empty (82576 datasheet, receive and transmit descriptor
//! queue structure).

mod window;

pub use self::window::{
    Run,
    Window, //
};

use crate::limits::{
    DESCRIPTOR_SIZE,
    RING_MAX,
    RING_MIN,
    RING_MULTIPLE, //
};

/// The size of a descriptor ring. Indices into it are `0..len`.
// INVARIANT: `len` is a multiple of `RING_MULTIPLE` within `RING_MIN..=RING_MAX`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    len: u16,
}

impl Ring {
    /// A ring of `len` descriptors; `None` if the device or the driver's bounds do not allow it
    /// (see [`RING_MIN`], [`RING_MAX`] and [`RING_MULTIPLE`]).
    #[inline]
    pub const fn new(len: u16) -> Option<Self> {
        if len < RING_MIN || len > RING_MAX || len % RING_MULTIPLE != 0 {
            return None;
        }
        Some(Self { len })
    }

    /// Descriptors in the ring.
    // A ring is never empty in the sense of a collection, so there is no `is_empty`.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a ring has at least RING_MIN slots"
    )]
    #[inline]
    pub const fn len(self) -> u16 {
        self.len
    }

    /// Bytes of the ring in memory, the value of RDLEN or TDLEN.
    #[inline]
    pub const fn bytes(self) -> u32 {
        self.len as u32 * DESCRIPTOR_SIZE
    }

    /// The index after `i`.
    #[inline]
    pub const fn next(self, i: u16) -> u16 {
        self.after(i, 1)
    }

    /// The index `n` slots after `i`.
    #[inline]
    pub const fn advance(self, i: u16, n: u16) -> u16 {
        // `checked_rem` because the compiler does not know the invariant `len > 0`.
        match (i as u32 + n as u32).checked_rem(self.len as u32) {
            Some(index) => index as u16,
            None => 0,
        }
    }

    /// How many of `n` slots from `i` on come before the end of the ring; the others are at its
    /// start.
    #[inline]
    pub const fn contiguous(self, i: u16, n: u16) -> u16 {
        let left = self.len.saturating_sub(i);
        if n < left {
            n
        } else {
            left
        }
    }

    /// The index `n` slots after `i`, where all of them are [`contiguous`](Self::contiguous).
    #[inline]
    pub const fn after(self, i: u16, n: u16) -> u16 {
        let n = i.wrapping_add(n);
        if n >= self.len {
            0
        } else {
            n
        }
    }

    /// Slots from `next_to_clean` up to but not including `next_to_use`: those the device has or
    /// has finished with, but that were not cleaned yet. Both are indices below `len`.
    #[inline]
    pub const fn used(self, next_to_use: u16, next_to_clean: u16) -> u16 {
        if next_to_use >= next_to_clean {
            next_to_use - next_to_clean
        } else {
            // Below `len` because `next_to_use < next_to_clean`; wrapping for indices that are
            // not below `len`.
            self.len
                .wrapping_sub(next_to_clean)
                .wrapping_add(next_to_use)
        }
    }

    /// Slots that may be filled: all unused ones but one.
    #[inline]
    pub const fn unused(self, next_to_use: u16, next_to_clean: u16) -> u16 {
        (self.len - 1).saturating_sub(self.used(next_to_use, next_to_clean))
    }
}
