// SPDX-License-Identifier: GPL-2.0

//! Allocates ranges of pages from a region, such as a device's memory: first fit, aligned.
//!
//! One bit per page. The crate knows no kernel and allocates nothing, the caller provides the
//! words; the same source is compiled into a driver by Kbuild, and by cargo for tests on the host.
//!
//! First fit leaves the large free ranges at the end, where they last longest, and a bitmap can't
//! become inconsistent: there are no lists to merge. Searching for a range reads each word once;
//! buffers are allocated rarely and used for long.

#![no_std]
// Cannot be `expect`: cargo does not add the attribute, so there it would go unfulfilled.
#![allow(
    unused_attributes,
    clippy::duplicated_attributes,
    reason = "Kbuild adds its own no_std"
)]
#![forbid(unsafe_code)]

use core::ops::DerefMut;

/// Pages in a word.
const WORD: usize = u64::BITS as usize;

/// Which pages of a region are taken.
// INVARIANT: `words` has `words_for(pages)` words or more; bits from `pages` on are not looked at;
// `free` is the number of zeros below.
#[derive(Debug)]
pub struct PageRanges<W> {
    words: W,
    pages: usize,
    free: usize,
}

/// The number of words needed for `pages` pages.
pub const fn words_for(pages: usize) -> usize {
    pages.div_ceil(WORD)
}

impl<W: DerefMut<Target = [u64]>> PageRanges<W> {
    /// A region of `pages` pages, all free. `None` if there are fewer than [`words_for`] `words`.
    pub fn new(mut words: W, pages: usize) -> Option<Self> {
        if words.len() < words_for(pages) {
            return None;
        }
        words.fill(0);
        Some(Self {
            words,
            pages,
            free: pages,
        })
    }

    /// Pages that are free, not necessarily in one range.
    pub fn free(&self) -> usize {
        self.free
    }

    /// Takes the first free `count` pages in a row that begin at a multiple of `align`, and returns
    /// where they begin. `None` if there are none, or if `count` or `align` is zero.
    pub fn take(&mut self, count: usize, align: usize) -> Option<usize> {
        if count == 0 || align == 0 || count > self.free {
            return None;
        }
        let mut first: usize = 0;
        loop {
            let end = first.checked_add(count)?;
            if end > self.pages {
                return None;
            }
            match self.next(first, end, Bit::Taken) {
                None => {
                    self.set(first, end, Bit::Taken);
                    self.free -= count;
                    return Some(first);
                }
                // Nothing that begins before the end of what is taken there can fit.
                Some(taken) => {
                    let free = self.next(taken, self.pages, Bit::Free)?;

                    first = free.checked_next_multiple_of(align)?;
                }
            }
        }
    }

    /// Frees `count` pages from `first`, which one call of [`take`](Self::take) returned.
    ///
    /// Pages that are already free, or outside the region, are ignored.
    pub fn release(&mut self, first: usize, count: usize) {
        let end = first.saturating_add(count).min(self.pages);
        let mut at = first;

        while let Some(taken) = self.next(at, end, Bit::Taken) {
            at = self.next(taken, end, Bit::Free).unwrap_or(end);
            self.set(taken, at, Bit::Free);
            self.free += at - taken;
        }
    }

    /// The first page of `from..to` whose state is `bit`.
    fn next(&self, from: usize, to: usize, bit: Bit) -> Option<usize> {
        let mut at = from;

        while at < to {
            let word = self.words.get(at / WORD)?;
            let looked_for = match bit {
                Bit::Taken => *word,
                Bit::Free => !*word,
            };
            let rest = looked_for >> (at % WORD);

            if rest != 0 {
                let found = at + rest.trailing_zeros() as usize;

                return (found < to).then_some(found);
            }
            at = (at / WORD + 1) * WORD;
        }
        None
    }

    /// Sets the state of the pages of `from..to` to `bit`.
    fn set(&mut self, from: usize, to: usize, bit: Bit) {
        let mut at = from;

        while at < to {
            let end = to.min((at / WORD + 1) * WORD);
            let mask = u64::MAX >> (WORD - (end - at)) << (at % WORD);

            if let Some(word) = self.words.get_mut(at / WORD) {
                match bit {
                    Bit::Taken => *word |= mask,
                    Bit::Free => *word &= !mask,
                }
            }
            at = end;
        }
    }
}

/// The state of a page.
#[derive(Copy, Clone)]
enum Bit {
    Taken,
    Free,
}
