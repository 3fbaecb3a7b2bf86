// SPDX-License-Identifier: MIT OR Apache-2.0

//! Accesses to the registers' BAR. All registers have 32 bits.
//!
//! A device may complete accesses that its programming model does not allow as it likes (PCI Express Base
//! Specification, "Programming Model Violation"), and the datasheet allows those to whole registers only.
//! Here a part of a register reads as that part, with all effects that reading the register has; a write of
//! a part is dropped, because no value of the other bytes would be right; an access to several registers is
//! one to each, in ascending order. Beyond the end all bits read as ones, as from a device that is absent.

use std::ops::Range;

const BYTES: u64 = 4;

/// The registers that an access is about, of those in `size` bytes: the offset of each, and which of its bytes.
fn registers(size: u32, offset: u64, len: usize) -> impl Iterator<Item = (u32, Range<usize>)> {
    let end = offset.saturating_add(len as u64).min(size.into());
    let first = offset / BYTES * BYTES;
    (first..end.max(first))
        .step_by(BYTES as usize)
        .map(move |register| {
            let from = offset.max(register) - register;
            let to = end.min(register + BYTES) - register;
            (register as u32, from as usize..to as usize)
        })
        .filter(|(_, bytes)| !bytes.is_empty())
}

/// Makes a read of any size from reads of registers.
pub(crate) fn read(size: u32, offset: u64, data: &mut [u8], mut read: impl FnMut(u32) -> u32) {
    data.fill(0xff);
    let mut rest = data;
    for (register, bytes) in registers(size, offset, rest.len()) {
        let value = read(register).to_le_bytes();
        let Some((part, behind)) = rest.split_at_mut_checked(bytes.len()) else {
            return;
        };
        part.copy_from_slice(&value[bytes]);
        rest = behind;
    }
}

/// Makes a write of any size from writes of registers. Returns whether parts were dropped.
pub(crate) fn write(size: u32, offset: u64, data: &[u8], mut write: impl FnMut(u32, u32)) -> bool {
    let mut rest = data;
    let mut dropped = false;
    for (register, bytes) in registers(size, offset, data.len()) {
        let Some((part, behind)) = rest.split_at_checked(bytes.len()) else {
            break;
        };
        match part.try_into() {
            Ok(value) => write(register, u32::from_le_bytes(value)),
            Err(_) => dropped = true,
        }
        rest = behind;
    }
    dropped || !rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 128 * 1024;

    fn read_of(offset: u64, len: usize) -> (Vec<u8>, Vec<u32>) {
        let (mut data, mut seen) = (vec![0; len], Vec::new());
        read(SIZE, offset, &mut data, |register| {
            seen.push(register);
            0x0403_0201_u32.wrapping_add(register.wrapping_mul(0x0101_0101))
        });
        (data, seen)
    }

    fn write_of(offset: u64, data: &[u8]) -> (bool, Vec<(u32, u32)>) {
        let mut seen = Vec::new();
        let dropped = write(SIZE, offset, data, |register, value| {
            seen.push((register, value))
        });
        (dropped, seen)
    }

    #[test]
    fn a_whole_register_is_read_and_written() {
        assert_eq!(read_of(8, 4), (vec![9, 10, 11, 12], vec![8]));
        assert_eq!(write_of(8, &[1, 2, 3, 4]), (false, vec![(8, 0x0403_0201)]));
    }

    #[test]
    fn a_part_is_read_and_not_written() {
        assert_eq!(read_of(10, 1), (vec![11], vec![8]));
        assert_eq!(read_of(2, 4), (vec![3, 4, 5, 6], vec![0, 4]));
        assert_eq!(write_of(8, &[1, 2]), (true, vec![]));
        assert_eq!(write_of(2, &[0; 6]), (true, vec![(4, 0)]));
    }

    #[test]
    fn several_are_accessed_in_order() {
        assert_eq!(read_of(0, 8).1, [0, 4]);
        assert_eq!(write_of(4, &[0; 8]).1, [(4, 0), (8, 0)]);
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let end = u64::from(SIZE);
        assert_eq!(read_of(end, 4), (vec![0xff; 4], vec![]));
        assert_eq!(read_of(u64::MAX, 2), (vec![0xff; 2], vec![]));
        assert_eq!(read_of(end - 4, 8).1, [end as u32 - 4]);
        assert!(write_of(end - 4, &[0; 8]).0);
        assert_eq!(write_of(u64::MAX, &[0; 8]), (true, vec![]));
        assert_eq!(read_of(0, 0), (vec![], vec![]));
    }
}
