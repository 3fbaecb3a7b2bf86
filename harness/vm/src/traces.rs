// SPDX-License-Identifier: MIT OR Apache-2.0

//! Traces of a payload in memory: whether any part of it lies there, wherever it was put and
//! wherever it was cut.
//!
//! A trace is a run of at least [`WINDOW`] bytes of the payload in their order, at any address and
//! from any offset of the payload. To find them all without comparing everything with everything,
//! 8-byte words are sampled: every 7th byte of the payload starts one, and every 8th of the memory.
//! As 7 and 8 have no common factor, 7 · 8 consecutive places contain one that both samples have,
//! whatever the two offsets are; a window of 64 bytes has 57 places for a word. A word in common is
//! then compared to both sides.

use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use vm_memory::{Address, GuestMemoryBackend, GuestMemoryRegion};

use crate::{Error, GuestMemory, Result};

/// Bytes of the payload that make a trace. Headers, and what happens to look like payload, are
/// shorter.
pub const WINDOW: usize = 64;

const WORD: usize = 8;
const PAYLOAD_STRIDE: usize = 7;
const MEMORY_STRIDE: usize = 8;
const _: () = assert!(PAYLOAD_STRIDE * MEMORY_STRIDE <= WINDOW - WORD + 1);

/// Bytes of memory that are looked at in one go.
const BLOCK: usize = 1 << 20;

/// A part of the payload in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// Guest-physical address.
    pub address: u64,
    /// Offset in the payload of what lies there, in bytes.
    pub payload_offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A payload, prepared to be searched for.
#[derive(Debug)]
pub struct Search {
    payload: Vec<u8>,
    /// Sampled words and their offsets, sorted.
    words: Vec<(u64, u32)>,
    /// A bit for each hash of a sampled word: most words of the memory need no more than a look here.
    filter: Vec<u64>,
    shift: u32,
}

impl Search {
    /// Prepares a search for any window of `payload`, which must have less than 4 GiB.
    ///
    /// It takes about three times as much memory as the payload.
    #[must_use]
    pub fn new(payload: Vec<u8>) -> Self {
        let mut words: Vec<(u64, u32)> = (0..)
            .step_by(PAYLOAD_STRIDE)
            .map_while(|offset| Some((word(&payload, offset)?, offset as u32)))
            .collect();
        words.sort_unstable();
        let bits = (words.len() * 64).next_power_of_two().max(1 << 12);
        let mut search = Self {
            payload,
            words,
            filter: vec![0; bits / 64],
            shift: 64 - bits.trailing_zeros(),
        };
        for index in 0..search.words.len() {
            let (slot, bit) = search.place(search.words[index].0);
            search.filter[slot] |= bit;
        }
        search
    }

    /// All traces of the payload in `memory`, in order of address. Parts of the memory that were
    /// never written are skipped.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] when the memory cannot be read.
    pub fn find_in(&self, memory: &GuestMemory) -> Result<Vec<Trace>> {
        let mut traces = Vec::new();
        let mut block = Vec::new();
        for region in memory.memory().iter() {
            let address = region.start_addr().raw_value();
            let bytes = region.len();
            let failed = |message: String| Error::Memory {
                name: "a search",
                bytes,
                message,
            };
            let backing = region.file_offset();
            let backing = backing.ok_or_else(|| failed("there is no file behind it".to_owned()))?;
            let (file, first) = (backing.file(), backing.start());
            let end = first + bytes;
            let mut at = first;
            while at < end {
                // Unwritten memory is a hole of the file.
                at = match seek(file, SeekFrom::Data(at)) {
                    Ok(data) => data,
                    Err(Errno::NXIO) => break,
                    Err(errno) => return Err(failed(format!("SEEK_DATA: {errno}"))),
                };
                let hole = seek(file, SeekFrom::Hole(at));
                let hole = hole.map_err(|errno| failed(format!("SEEK_HOLE: {errno}")))?;
                while at < hole.min(end) {
                    // A window that starts in this block ends in it, or right behind.
                    let len = (hole.min(end) - at).min((BLOCK + WINDOW) as u64);
                    block.resize(len as usize, 0);
                    let read = file.read_exact_at(&mut block, at);
                    read.map_err(|error| failed(format!("reading at {at:#x}: {error}")))?;
                    self.find_in_block(&block, address + (at - first), &mut traces);
                    at += len.min(BLOCK as u64);
                }
            }
        }
        Ok(traces)
    }

    /// Adds the traces in `block`, which is at `address`, a multiple of the stride.
    fn find_in_block(&self, block: &[u8], address: u64, traces: &mut Vec<Trace>) {
        let mut at = 0;
        while let Some(word) = word(block, at) {
            let (slot, bit) = self.place(word);
            let found = self.filter[slot] & bit != 0;
            match found.then(|| self.longest(block, at, word)).flatten() {
                Some((start, payload_offset, len)) => {
                    let trace = Trace {
                        address: address + start as u64,
                        payload_offset: payload_offset as u64,
                        len: len as u64,
                    };
                    add(traces, trace);
                    let behind = (start + len) / MEMORY_STRIDE * MEMORY_STRIDE;
                    at = behind.max(at + MEMORY_STRIDE);
                }
                None => at += MEMORY_STRIDE,
            }
        }
    }

    /// The longest run around a word that the block and the payload have in common: where it starts
    /// in both, and its length. None if it is shorter than a window.
    fn longest(&self, block: &[u8], at: usize, word: u64) -> Option<(usize, usize, usize)> {
        let first = self.words.partition_point(|&(known, _)| known < word);
        let same = self.words[first..]
            .iter()
            .take_while(|&&(known, _)| known == word);
        let runs = same.map(|&(_, offset)| {
            let offset = offset as usize;
            let (before, behind) = (block[..at].iter().rev(), block[at..].iter());
            let back = before
                .zip(self.payload[..offset].iter().rev())
                .take_while(|(a, b)| a == b)
                .count();
            let forth = behind
                .zip(&self.payload[offset..])
                .take_while(|(a, b)| a == b)
                .count();
            (at - back, offset - back, back + forth)
        });
        runs.max_by_key(|&(_, _, len)| len)
            .filter(|&(_, _, len)| len >= WINDOW)
    }

    /// Which bit of the filter belongs to a word: the upper bits of a multiplicative hash.
    fn place(&self, word: u64) -> (usize, u64) {
        let bit = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((bit / 64) as usize, 1 << (bit % 64))
    }
}

/// Bytes of all traces.
#[must_use]
pub fn bytes(traces: &[Trace]) -> u64 {
    traces.iter().map(|trace| trace.len).sum()
}

/// Adds a trace, or the rest of the last one: runs go on across blocks.
fn add(traces: &mut Vec<Trace>, new: Trace) {
    if let Some(last) = traces.last_mut() {
        let same_run = new.address.wrapping_sub(new.payload_offset)
            == last.address.wrapping_sub(last.payload_offset);
        if same_run && new.address <= last.address + last.len {
            let end = (new.address + new.len).max(last.address + last.len);
            last.len = end - last.address;
            return;
        }
    }
    traces.push(new);
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use protocol::Payload;

    use super::*;
    use crate::memory::Backing;

    fn payload(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Payload::new(7).fill(0, &mut bytes);
        bytes
    }

    fn memory() -> GuestMemory {
        Backing::create("test", 8 << 20)
            .unwrap()
            .at(1 << 32)
            .unwrap()
    }

    #[test]
    fn a_window_is_found_at_every_alignment_and_from_every_offset() {
        let payload = payload(400);
        let search = Search::new(payload.clone());
        for at in 0..16 {
            for offset in 0..=(payload.len() - WINDOW) {
                let mut block = vec![0xff; 256];
                block[at..at + WINDOW].copy_from_slice(&payload[offset..offset + WINDOW]);
                let mut traces = Vec::new();
                search.find_in_block(&block, 0x1000, &mut traces);
                assert_eq!(traces.len(), 1, "offset {offset} at {at}: {traces:?}");
                assert!(traces[0].len >= WINDOW as u64, "{traces:?}");
            }
        }
    }

    #[test]
    fn less_than_a_window_is_no_trace() {
        let payload = payload(400);
        let search = Search::new(payload.clone());
        let mut block = vec![0xff; 256];
        block[8..8 + WINDOW - 1].copy_from_slice(&payload[21..21 + WINDOW - 1]);
        let mut traces = Vec::new();
        search.find_in_block(&block, 0, &mut traces);
        assert_eq!(traces, []);
    }

    #[test]
    fn what_was_never_there_is_not_found() {
        let memory = memory();
        let mut other = vec![0; 1 << 20];
        Payload::new(8).fill(0, &mut other);
        memory.write(1 << 32, &other).unwrap();
        let search = Search::new(payload(1 << 20));
        assert_eq!(search.find_in(&memory).unwrap(), []);
    }

    #[test]
    fn runs_are_reported_whole_across_blocks_and_holes() {
        let memory = memory();
        let payload = payload(3 << 20);
        let start = 1 << 32;
        // Over two blocks' ends, and at odd places.
        memory
            .write(start + 12_345, &payload[..(2 << 20) + 77])
            .unwrap();
        // Pieces that follow each other in memory, but not in the payload, as frames do.
        let pieces = [(1_500_001, 1448), (1_000, 1448), (2_000_000, 64)];
        let mut at = start + (5 << 20) + 3;
        let mut expected = vec![Trace {
            address: start + 12_345,
            payload_offset: 0,
            len: (2 << 20) + 77,
        }];
        for (offset, len) in pieces {
            memory.write(at, &payload[offset..offset + len]).unwrap();
            expected.push(Trace {
                address: at,
                payload_offset: offset as u64,
                len: len as u64,
            });
            at += len as u64;
        }
        let traces = Search::new(payload).find_in(&memory).unwrap();
        assert_eq!(traces, expected);
        assert_eq!(bytes(&traces), (2 << 20) + 77 + 2 * 1448 + 64);
    }

    #[test]
    fn a_payload_that_is_shorter_than_a_window_leaves_no_trace() {
        let memory = memory();
        memory.write(1 << 32, &payload(20)).unwrap();
        assert_eq!(Search::new(payload(20)).find_in(&memory).unwrap(), []);
        assert_eq!(Search::new(Vec::new()).find_in(&memory).unwrap(), []);
    }
}
