// SPDX-License-Identifier: MIT OR Apache-2.0

//! Physical addresses of this process's memory, from `/proc/self/pagemap`
//! (Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use crate::error::MemoryError;

/// Bytes of one pagemap entry.
const ENTRY: usize = 8;
const PRESENT: u64 = 1 << 63;
const FRAME_NUMBER: u64 = (1 << 55) - 1;

/// A piece of a buffer that is contiguous in physical memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhysicalRange {
    /// Where the piece starts in the buffer, in bytes.
    pub offset: u64,
    /// Its physical address, in bytes.
    pub address: u64,
    /// Its length, in bytes.
    pub len: u64,
}

/// The physical ranges of `len` bytes at the virtual address `start`; both are multiples of
/// `page_size`.
pub(crate) fn physical_ranges(
    start: usize,
    len: usize,
    page_size: usize,
) -> Result<Vec<PhysicalRange>, MemoryError> {
    let file = File::open("/proc/self/pagemap").map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => MemoryError::PagemapHidden,
        _ => MemoryError::io("open /proc/self/pagemap", error),
    })?;
    let mut entries = vec![0; len / page_size * ENTRY];
    file.read_exact_at(&mut entries, (start / page_size * ENTRY) as u64)
        .map_err(|error| MemoryError::io("read /proc/self/pagemap", error))?;
    Ok(coalesce(&decode(&entries, page_size)?, page_size))
}

/// Physical address of every page, from the raw entries.
fn decode(entries: &[u8], page_size: usize) -> Result<Vec<u64>, MemoryError> {
    entries
        .chunks_exact(ENTRY)
        .enumerate()
        .map(|(page, bytes)| {
            let mut raw = [0; ENTRY];
            raw.copy_from_slice(bytes);
            let entry = u64::from_ne_bytes(raw);
            if entry & PRESENT == 0 {
                return Err(MemoryError::PageNotPresent {
                    offset: page * page_size,
                });
            }
            match entry & FRAME_NUMBER {
                // Frame 0 is never given to user memory; the kernel shows it to those who lack
                // CAP_SYS_ADMIN.
                0 => Err(MemoryError::PagemapHidden),
                frame => Ok(frame * page_size as u64),
            }
        })
        .collect()
}

/// Joins pages that follow each other both in the buffer and in physical memory.
fn coalesce(pages: &[u64], page_size: usize) -> Vec<PhysicalRange> {
    let page_size = page_size as u64;
    let mut ranges: Vec<PhysicalRange> = Vec::new();
    for (offset, &address) in (0..).step_by(page_size as usize).zip(pages) {
        match ranges.last_mut() {
            Some(last) if last.address + last.len == address => last.len += page_size,
            _ => ranges.push(PhysicalRange {
                offset,
                address,
                len: page_size,
            }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: usize = 4096;

    fn entry(frame: u64) -> [u8; ENTRY] {
        // Bits 55 to 62 are flags that say nothing about the address: soft-dirty and exclusive are
        // set here.
        (PRESENT | 1 << 55 | 1 << 56 | frame).to_ne_bytes()
    }

    #[test]
    fn the_frame_number_is_the_low_55_bits_and_flags_are_ignored() {
        let frames = [1, 1 << 40];
        let entries: Vec<u8> = frames.iter().flat_map(|&frame| entry(frame)).collect();
        assert_eq!(decode(&entries, PAGE).expect("present"), [4096, 4096 << 40]);
    }

    #[test]
    fn a_hidden_frame_number_is_an_error_that_names_the_capability() {
        let error = decode(&entry(0), PAGE).expect_err("frame 0 is hidden");
        assert!(matches!(error, MemoryError::PagemapHidden), "got {error:?}");
        assert!(
            error.to_string().contains("CAP_SYS_ADMIN"),
            "unclear message: {error}"
        );
    }

    #[test]
    fn an_absent_page_is_an_error_that_names_its_offset() {
        let mut entries = entry(7).to_vec();
        entries.extend(0u64.to_ne_bytes());
        match decode(&entries, PAGE) {
            Err(MemoryError::PageNotPresent { offset }) => assert_eq!(offset, PAGE),
            other => panic!("expected PageNotPresent, got {other:?}"),
        }
    }

    proptest! {
        #[test]
        fn joined_ranges_describe_every_page_once_and_cannot_be_joined_further(
            frames in proptest::collection::vec(1u64..20, 0..64),
        ) {
            let pages: Vec<u64> = frames.iter().map(|frame| frame * PAGE as u64).collect();
            let ranges = coalesce(&pages, PAGE);
            let mut expanded = Vec::new();
            let mut offset = 0;
            for range in &ranges {
                prop_assert_eq!(range.offset, offset);
                expanded.extend((0..range.len / PAGE as u64).map(|page| range.address + page * PAGE as u64));
                offset += range.len;
            }
            prop_assert_eq!(expanded, pages);
            for pair in ranges.windows(2) {
                prop_assert_ne!(pair[0].address + pair[0].len, pair[1].address);
            }
        }
    }
}
