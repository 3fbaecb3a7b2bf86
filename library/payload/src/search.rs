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

/// Bytes of the payload that make a trace. Headers, and what happens to look like payload, are
/// shorter.
pub const WINDOW: usize = 64;

const WORD: usize = 8;
const PAYLOAD_STRIDE: usize = 7;
const MEMORY_STRIDE: usize = 8;
const _: () = assert!(PAYLOAD_STRIDE * MEMORY_STRIDE <= WINDOW - WORD + 1);

/// A part of the payload in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// Where it lies.
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

    /// Adds the traces in `block`, which is at `address`, a multiple of 8. Memory may be searched in
    /// blocks, in their order. They must overlap by a [`WINDOW`], so that a run across a boundary is
    /// found; it becomes one trace.
    pub fn find_in(&self, block: &[u8], address: u64, traces: &mut Vec<Trace>) {
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
    use super::*;
    use crate::Payload;

    fn payload(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Payload::new(7).fill(0, &mut bytes);
        bytes
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
                search.find_in(&block, 0x1000, &mut traces);
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
        search.find_in(&block, 0, &mut traces);
        assert_eq!(traces, []);
    }
}
