// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Which frames the device receives: tables of 4096 bits, one for the hashes of multicast addresses
//! (MTA) and one for VLAN IDs (VFTA).

use crate::limits::{
    MULTICAST_TABLE,
    VLAN_TABLE, //
};

/// Bits of a table, and of what selects one.
const BITS: u16 = 4096;
const REGISTER_BITS: u16 = 32;
const REGISTERS: usize = (BITS / REGISTER_BITS) as usize;

const _: () = assert!(REGISTERS == MULTICAST_TABLE as usize && REGISTERS == VLAN_TABLE as usize);

/// The bit of MTA for a multicast address with RCTL.MO zero: bits 47 to 36 of the address, the
/// last on the wire. Other addresses have the same bit, so the receiver looks again.
#[inline]
pub const fn multicast_bit(mac: [u8; 6]) -> u16 {
    let [.., low, high] = mac;
    u16::from_le_bytes([low, high]) >> 4
}

/// A table: register `n` holds bits `32 * n` and up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table([u32; REGISTERS]);

impl Table {
    /// No bit is set.
    pub const EMPTY: Self = Self([0; REGISTERS]);

    /// Sets or clears a bit; of its number the lowest 12 bits count.
    #[inline]
    pub const fn set(&mut self, bit: u16, on: bool) {
        let bit = bit % BITS;
        let register = &mut self.0[(bit / REGISTER_BITS) as usize];
        let mask = 1 << (bit % REGISTER_BITS);
        if on {
            *register |= mask;
        } else {
            *register &= !mask;
        }
    }

    /// Whether a bit is set.
    #[inline]
    pub const fn contains(&self, bit: u16) -> bool {
        let bit = bit % BITS;
        self.0[(bit / REGISTER_BITS) as usize] & 1 << (bit % REGISTER_BITS) != 0
    }

    /// The registers' values, from the first.
    #[inline]
    pub fn registers(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
}
