// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which descriptors of a receive ring the device has.

#[cfg(test)]
mod explore;

use core::ops::Range;

use super::Ring;

/// Slots that lie beside each other in memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first of them.
    pub start: u16,
    /// How many there are.
    pub count: u16,
}

impl Run {
    /// Their indices.
    #[inline]
    pub const fn range(self) -> Range<usize> {
        let start = self.start as usize;

        start..start + self.count as usize
    }
}

/// The descriptors of a receive ring that were posted and not cleaned. They are the device's, or it has filled
/// them; all others are the driver's.
// INVARIANT: Both indices are below `ring.len()`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Window {
    ring: Ring,
    next_to_use: u16,
    next_to_clean: u16,
}

impl Window {
    /// None of the ring's.
    #[inline]
    pub const fn new(ring: Ring) -> Self {
        Self {
            ring,
            next_to_use: 0,
            next_to_clean: 0,
        }
    }

    /// The size of the ring.
    #[inline]
    pub const fn ring(self) -> Ring {
        self.ring
    }

    /// The value of RDT: the first descriptor that the device may not fill.
    #[inline]
    pub const fn tail(self) -> u16 {
        self.next_to_use
    }

    /// The descriptor that the device fills next, or has filled first.
    #[inline]
    pub const fn oldest(self) -> u16 {
        self.next_to_clean
    }

    /// How many there are.
    #[inline]
    pub const fn posted(self) -> u16 {
        self.ring.used(self.next_to_use, self.next_to_clean)
    }

    /// How many more there could be.
    #[inline]
    pub const fn unposted(self) -> u16 {
        self.ring.unused(self.next_to_use, self.next_to_clean)
    }

    /// The descriptors to post next: up to `most`, and up to the end of the ring, from where it goes on at
    /// the start.
    #[inline]
    pub const fn to_post(self, most: u16) -> Run {
        self.run(self.next_to_use, min(most, self.unposted()))
    }

    /// The first `count` of [`to_post`](Self::to_post) are posted.
    #[inline]
    pub const fn post(&mut self, count: u16) {
        self.next_to_use = self.ring.after(self.next_to_use, count);
    }

    /// The oldest descriptors: up to `most`, and up to the end of the ring.
    #[inline]
    pub const fn to_clean(self, most: u16) -> Run {
        self.run(self.next_to_clean, min(most, self.posted()))
    }

    /// The first `count` of [`to_clean`](Self::to_clean) are the driver's again.
    #[inline]
    pub const fn clean(&mut self, count: u16) {
        self.next_to_clean = self.ring.after(self.next_to_clean, count);
    }

    /// All descriptors are the driver's again, and the first to be posted is that at index 0. Only when the
    /// device has stopped.
    #[inline]
    pub const fn rewind(&mut self) {
        self.next_to_use = 0;
        self.next_to_clean = 0;
    }

    #[inline]
    const fn run(self, start: u16, count: u16) -> Run {
        Run {
            start,
            count: self.ring.contiguous(start, count),
        }
    }
}

#[inline]
const fn min(a: u16, b: u16) -> u16 {
    if a < b {
        a
    } else {
        b
    }
}
