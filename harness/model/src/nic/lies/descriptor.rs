// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lies in what is written back of a received packet.

use super::{Kind, Lies};

/// First quadword.
const TYPES: u64 = 0x1_ffff;
const HEADER_LENGTH_SHIFT: u32 = 21;
const HEADER_LENGTH: u64 = 0x3ff;
const SPLIT: u64 = 1 << 31;
const HASH: u64 = 0xffff_ffff << 32;
/// Second quadword. DD stays set, as without it there is no lie.
const END: u64 = 1 << 1;
const TAGGED: u64 = 1 << 3;
const TIMESTAMP: u64 = 1 << 16;
const OVERFLOW: u64 = 1 << 23;
const STATUS: u64 = 0xffff_fffc;
const LENGTH_SHIFT: u32 = 32;
const LENGTH: u64 = 0xffff;
const TAG_SHIFT: u32 = 48;

impl Lies {
    /// What is written back in place of `raw`.
    pub(crate) fn distort(&mut self, raw: [u64; 2]) -> [u64; 2] {
        let [mut low, mut high] = raw;
        if let Some(value) = self.tell(Kind::Length) {
            // None, one more than is there, the most, or any.
            let len = match value % 4 {
                0 => 0,
                1 => (high >> LENGTH_SHIFT & LENGTH) + 1,
                2 => LENGTH,
                _ => value >> 8,
            };
            high = replace(high, LENGTH, LENGTH_SHIFT, len);
        }
        if let Some(value) = self.tell(Kind::HeaderLength) {
            low = replace(low, HEADER_LENGTH, HEADER_LENGTH_SHIFT, value);
        }
        if let Some(value) = self.tell(Kind::SplitFlag) {
            low ^= if value & 1 == 0 { SPLIT } else { 0 };
            high ^= if value & 2 == 0 { OVERFLOW } else { 0 };
        }
        if let Some(value) = self.tell(Kind::Status) {
            high ^= value & STATUS;
        }
        if let Some(value) = self.tell(Kind::PacketType) {
            low ^= value & TYPES;
        }
        if let Some(value) = self.tell(Kind::Hash) {
            low ^= value & HASH;
        }
        if let Some(value) = self.tell(Kind::Vlan) {
            high = replace(high | TAGGED, LENGTH, TAG_SHIFT, value);
        }
        if self.tells(Kind::EndOfPacket) {
            high ^= END;
        }
        if self.tells(Kind::Timestamp) {
            high |= TIMESTAMP;
        }
        [low, high]
    }
}

fn replace(raw: u64, mask: u64, shift: u32, value: u64) -> u64 {
    raw & !(mask << shift) | (value & mask) << shift
}
