// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lies in what is written back of a received packet.

use super::receive::fields::{
    DD, EOP, HASH_SHIFT, HBO, HDR_LEN_MASK, HDR_LEN_SHIFT, LENGTH_SHIFT, SPH, TS, VLAN_SHIFT, VP,
};
use super::{Kind, Lies};

/// First quadword: both types.
const TYPES: u64 = 0x1_ffff;
const HASH: u64 = 0xffff_ffff << HASH_SHIFT;
/// Second quadword. DD stays set, as without it there is no lie.
const STATUS: u64 = 0xffff_ffff & !(DD | EOP);
const LENGTH: u64 = 0xffff;

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
            low = replace(low, HDR_LEN_MASK, HDR_LEN_SHIFT, value);
        }
        if let Some(value) = self.tell(Kind::SplitFlag) {
            low ^= if value & 1 == 0 { SPH } else { 0 };
            high ^= if value & 2 == 0 { HBO } else { 0 };
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
            high = replace(high | VP, LENGTH, VLAN_SHIFT, value);
        }
        if self.tells(Kind::EndOfPacket) {
            high ^= EOP;
        }
        if self.tells(Kind::Timestamp) {
            high |= TS;
        }
        [low, high]
    }
}

fn replace(raw: u64, mask: u64, shift: u32, value: u64) -> u64 {
    raw & !(mask << shift) | (value & mask) << shift
}
