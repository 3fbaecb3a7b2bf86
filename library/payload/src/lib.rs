// SPDX-License-Identifier: MIT OR Apache-2.0

//! Seeded payload that can be generated and checked from any offset.
//!
//! The stream is the little-endian output of a permuted congruential generator (PCG XSL 128/64
//! MCG), eight bytes a step. Such a generator can jump ahead in logarithmic time, so a fragment in
//! the middle of a transfer is checked without the bytes before it.
//!
//! [`search`] finds out whether any part of a payload lies in memory. This crate is optimised in every
//! profile, so it has no more than what goes over each byte.

pub mod search;

use rand_pcg::Mcg128Xsl64;
use rand_pcg::rand_core::Rng;

/// Bytes that one step of the generator makes.
const WORD: usize = 8;

/// The endless payload that belongs to a seed. Byte `n` depends on the seed and `n` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    seed: u64,
}

/// The first byte that is not the payload's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error,
)]
#[error("byte {offset} of the stream is {found:#04x}, expected {expected:#04x}")]
pub struct Mismatch {
    /// Offset in the stream, in bytes.
    pub offset: u64,
    /// What the seed makes of this byte.
    pub expected: u8,
    /// What was there.
    pub found: u8,
}

impl Payload {
    /// The payload of `seed`. Different seeds make different payloads.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The generator, about to make the word with index `word`.
    fn generator(self, word: u64) -> Mcg128Xsl64 {
        // The generator needs an odd state, and states that differ in few bits start alike: spread
        // the seed over the state with an odd constant (the golden ratio in 128 bits).
        let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        let state = (u128::from(self.seed) << 1 | 1).wrapping_mul(spread);
        let mut generator = Mcg128Xsl64::new(state);
        generator.advance(u128::from(word));
        generator
    }

    /// Writes the payload's bytes from `offset` on into `buffer`.
    pub fn fill(self, offset: u64, buffer: &mut [u8]) {
        let mut generator = self.generator(offset / WORD as u64);
        let skip = (offset % WORD as u64) as usize;
        let mut rest = buffer;
        if skip != 0 {
            let head = rest.len().min(WORD - skip);
            let word = generator.next_u64().to_le_bytes();
            rest[..head].copy_from_slice(&word[skip..skip + head]);
            rest = &mut rest[head..];
        }
        let mut words = rest.chunks_exact_mut(WORD);
        for word in &mut words {
            word.copy_from_slice(&generator.next_u64().to_le_bytes());
        }
        let tail = words.into_remainder();
        if !tail.is_empty() {
            let word = generator.next_u64().to_le_bytes();
            tail.copy_from_slice(&word[..tail.len()]);
        }
    }

    /// Compares `bytes` with the payload from `offset` on.
    ///
    /// # Errors
    ///
    /// The first byte that differs.
    pub fn check(self, offset: u64, bytes: &[u8]) -> Result<(), Mismatch> {
        let mut expected = [0; 4096];
        let mut at = offset;
        for piece in bytes.chunks(expected.len()) {
            let expected = &mut expected[..piece.len()];
            self.fill(at, expected);
            if piece != expected {
                let differs = piece.iter().zip(&*expected).position(|(a, b)| a != b);
                let index = differs.unwrap_or_default();
                return Err(Mismatch {
                    offset: at + index as u64,
                    expected: expected[index],
                    found: piece[index],
                });
            }
            at += piece.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        // A seed in a bug report must make the same bytes in every version.
        let mut bytes = [0; 16];
        Payload::new(1).fill(0, &mut bytes);
        assert_eq!(
            bytes,
            [
                113, 77, 105, 100, 180, 199, 219, 28, 135, 143, 111, 85, 249, 18, 168, 100
            ]
        );
    }

    #[test]
    fn neighbouring_seeds_differ_from_the_first_word_on() {
        let mut one = [0; 8];
        let mut two = [0; 8];
        Payload::new(1).fill(0, &mut one);
        Payload::new(2).fill(0, &mut two);
        assert_ne!(one, two);
    }

    proptest! {
        #[test]
        fn filling_in_pieces_equals_filling_at_once(
            seed: u64,
            offset in 0u64..1 << 40,
            pieces in prop::collection::vec(0usize..300, 1..20),
        ) {
            let total = pieces.iter().sum();
            let mut whole = vec![0; total];
            Payload::new(seed).fill(offset, &mut whole);
            let mut joined = Vec::new();
            for length in pieces {
                let mut piece = vec![0; length];
                Payload::new(seed).fill(offset + joined.len() as u64, &mut piece);
                joined.extend(piece);
            }
            prop_assert_eq!(whole, joined);
        }

        #[test]
        fn a_changed_byte_is_found_where_it_is(
            seed: u64,
            offset in 0u64..1 << 40,
            length in 1usize..10_000,
            at: prop::sample::Index,
            change in 1u8..=255,
        ) {
            let payload = Payload::new(seed);
            let mut bytes = vec![0; length];
            payload.fill(offset, &mut bytes);
            prop_assert_eq!(payload.check(offset, &bytes), Ok(()));
            let at = at.index(length);
            let expected = bytes[at];
            bytes[at] ^= change;
            prop_assert_eq!(
                payload.check(offset, &bytes),
                Err(Mismatch { offset: offset + at as u64, expected, found: bytes[at] })
            );
        }

        #[test]
        fn a_shifted_stream_is_not_the_stream(seed: u64, shift in 1u64..5000) {
            let payload = Payload::new(seed);
            let mut bytes = vec![0; 64];
            payload.fill(shift, &mut bytes);
            prop_assert!(payload.check(0, &bytes).is_err());
        }
    }
}
