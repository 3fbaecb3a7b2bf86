// SPDX-License-Identifier: MIT OR Apache-2.0

//! Values from bytes. Behind their end all is zero.

use std::ops::RangeInclusive;

use arbitrary::{Arbitrary, Unstructured, unstructured::Int};

pub(crate) struct Input<'a>(Unstructured<'a>);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// Whether all bytes were used.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Any value.
    pub(crate) fn any<T: Arbitrary<'a> + Default>(&mut self) -> T {
        self.0.arbitrary().unwrap_or_default()
    }

    /// A value within a range.
    pub(crate) fn within<T: Int>(&mut self, range: RangeInclusive<T>) -> T {
        let start = *range.start();
        self.0.int_in_range(range).unwrap_or(start)
    }

    /// One of these.
    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.within(0..=values.len() - 1)]
    }

    /// So many bytes, of which the first few are any.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let there = self.0.len().min(len).min(24);
        let some = self.0.bytes(there).unwrap_or_default();
        // The others are numbered, so that no two pieces are alike.
        let number = |at: usize| (at as u8).wrapping_add((at >> 8) as u8);
        let byte = |at: usize| match some.get(at) {
            Some(byte) => *byte,
            None => number(at),
        };
        (0..len).map(byte).collect()
    }
}
