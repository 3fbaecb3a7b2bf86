// SPDX-License-Identifier: MIT OR Apache-2.0

//! Descriptor rings in memory (82576 datasheet, chapters "Receive Descriptor Queue Structure" and
//! "Transmit Descriptor Ring Structure").

use std::ops::Range;

use i82576::{limits::DESCRIPTOR_SIZE, regs::Reg};

use super::registers::Registers;
use crate::{Fault, Host};

/// Bytes of a descriptor.
const SIZE: usize = DESCRIPTOR_SIZE as usize;

/// Where a ring is, and how many descriptors it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ring {
    base: u64,
    len: u32,
}

impl Ring {
    /// The ring that base and length registers describe. The low bits of both are ignored.
    pub(crate) fn new(registers: &Registers, low: Reg, high: Reg, bytes: Reg) -> Self {
        let base = u64::from(registers.get(high)) << 32 | u64::from(registers.get(low) & !0x7f);
        Self {
            base,
            len: (registers.get(bytes) & 0xf_ff80) / DESCRIPTOR_SIZE,
        }
    }

    /// Its addresses.
    pub(crate) fn range(self) -> Range<u64> {
        let bytes = u64::from(self.len) * u64::from(DESCRIPTOR_SIZE);
        self.base..self.base.saturating_add(bytes)
    }

    /// The index after this one.
    pub(crate) fn next(self, index: u32) -> u32 {
        if index + 1 < self.len { index + 1 } else { 0 }
    }

    /// How many descriptors there are from `head` up to but not including `tail`: none if an index
    /// lies outside of the ring.
    pub(crate) fn available(self, head: u32, tail: u32) -> u32 {
        if head >= self.len || tail >= self.len {
            0
        } else if tail >= head {
            tail - head
        } else {
            self.len - head + tail
        }
    }

    /// A descriptor, by `value`, that is not between `head` and `tail`, nor soon behind `tail`, where the
    /// driver may be writing the next.
    pub(crate) fn unposted(self, head: u32, tail: u32, value: u64) -> Option<u32> {
        let count = self.len.checked_sub(self.available(head, tail))? / 2;
        // CAST: It is less than the ring has.
        let nth = value.checked_rem(u64::from(count))? as u32;
        (head + self.len - 1)
            .checked_sub(nth)?
            .checked_rem(self.len)
    }

    /// Reads a descriptor.
    pub(crate) fn read(self, index: u32, host: &mut dyn Host) -> Result<[u64; 2], Fault> {
        let mut bytes = [0; SIZE];
        host.read(self.address(index), &mut bytes)?;
        // The high half's bytes are the high ones of the whole, too.
        let raw = u128::from_le_bytes(bytes);
        Ok([raw as u64, (raw >> 64) as u64])
    }

    /// Writes a descriptor. The part that says that it is done must come last: drivers poll it.
    pub(crate) fn write(
        self,
        index: u32,
        [low, high]: [u64; 2],
        host: &mut dyn Host,
    ) -> Result<(), Fault> {
        let address = self.address(index);
        host.write(address, &low.to_le_bytes())?;
        host.write(address + 8, &high.to_le_bytes())
    }

    /// Writes the second half of a descriptor, as reports of transmission are.
    pub(crate) fn write_high(
        self,
        index: u32,
        high: u64,
        host: &mut dyn Host,
    ) -> Result<(), Fault> {
        host.write(self.address(index) + 8, &high.to_le_bytes())
    }

    fn address(self, index: u32) -> u64 {
        self.base
            .wrapping_add(u64::from(index) * u64::from(DESCRIPTOR_SIZE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::tests::Recorder;
    use i82576::regs::{rdbah, rdbal, rdlen};

    #[test]
    fn descriptors_are_counted_around_the_end_and_never_beyond_it() {
        let mut registers = Registers::default();
        registers.set(rdbal(0), 0x1000);
        registers.set(rdlen(0), 64 * 16);
        let ring = Ring::new(&registers, rdbal(0), rdbah(0), rdlen(0));
        assert_eq!(ring.available(60, 4), 8);
        assert_eq!(ring.available(4, 4), 0);
        assert_eq!((ring.available(64, 4), ring.available(4, 64)), (0, 0));
        assert_eq!((ring.next(62), ring.next(63)), (63, 0));

        let mut host = Recorder::with_memory(0x2000);
        ring.write(3, [1, 2], &mut host).unwrap();
        assert_eq!(ring.read(3, &mut host), Ok([1, 2]));
        assert_eq!(
            host.memory[0x1030..0x1040],
            *b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"
        );
    }

    /// The registers may hold any indices, and no length but multiples of eight descriptors.
    #[test]
    fn every_pair_of_indices_stays_within_every_small_ring() {
        for len in (0..=64).step_by(8) {
            let ring = Ring { base: 0, len };
            let indices = || (0..len + 3).chain([u32::MAX]);
            for (head, tail) in indices().flat_map(|head| indices().map(move |tail| (head, tail))) {
                let available = ring.available(head, tail);
                if head >= len || tail >= len {
                    assert_eq!(available, 0, "{head}..{tail} of {len}");
                    continue;
                }
                let posted: Vec<_> = (0..available)
                    .scan(head, |index, _| {
                        Some(std::mem::replace(index, ring.next(*index)))
                    })
                    .collect();
                let all = (0..len).map(|nth| (head + nth) % len);
                let expected: Vec<_> = all.take_while(|index| *index != tail).collect();
                assert_eq!(posted, expected, "{head}..{tail} of {len}");
                for value in 0..u64::from(len) {
                    let unposted = ring.unposted(head, tail, value);
                    assert!(unposted.is_none_or(|index| index < len && !posted.contains(&index)));
                }
            }
        }
    }
}
