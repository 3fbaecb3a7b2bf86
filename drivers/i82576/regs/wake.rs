// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Wake-up from D3.
//!
//! Source: 82576 datasheet, chapter "Wake Up Registers", and the kernel's `__igb_shutdown()`; for bits and rows that
//! these don't name, the 82575's and the I210's, and Intel's shared code for the family.

use super::{
    element,
    Reg, //
};

/// Wake up control; bits in [`wuc`].
pub const WUC: Reg = Reg(0x05800);
/// Wake up filter control: what wakes; bits in [`wufc`].
pub const WUFC: Reg = Reg(0x05808);
/// Wake up status: what has, bits as in [`wufc`]; cleared by writing 1, and by no reset.
pub const WUS: Reg = Reg(0x05810);
/// IP address valid: which addresses of [`ip4at`] and [`ip6at`] count; bits in [`ipav`].
pub const IPAV: Reg = Reg(0x05838);
/// Wake up packet length in bytes, [`wupl::MAX`] at most.
pub const WUPL: Reg = Reg(0x05900);

/// IPv4 address table, address `n` of 4; its first byte is the lowest.
#[inline]
pub const fn ip4at(n: u16) -> Reg {
    element(0x05840, 8, 4, n)
}

/// IPv6 address table, register `n` of 4 with the bytes of one address; the first is the lowest.
#[inline]
pub const fn ip6at(n: u16) -> Reg {
    element(0x05880, 4, 4, n)
}

/// Wake up packet memory, register `n` of 32: the packet's first bytes.
#[inline]
pub const fn wupm(n: u16) -> Reg {
    element(0x05a00, 4, 32, n)
}

/// A register of a flexible filter: 0 to 3 are in FHFT, 4 and 5 in FHFT_EXT, each in rows of four registers.
const fn fhft(filter: u16, row: u16, n: u32) -> Reg {
    let base = match filter & 4 {
        0 => element(0x09000, 0x100, 4, filter),
        _ => element(0x09a00, 0x100, 2, filter),
    };
    element(base.0 + 4 * n, 0x10, 16, row)
}

/// Flexible host filter table: the values of bytes `4 * n` to `4 * n + 3` of a packet for this filter; the first is
/// the lowest.
#[inline]
pub const fn fhft_value(filter: u16, n: u16) -> Reg {
    match n & 1 {
        0 => fhft(filter, n / 2, 0),
        _ => fhft(filter, n / 2, 1),
    }
}

/// Flexible host filter table: which of the bytes `8 * row` to `8 * row + 7` this filter compares, a bit for each.
#[inline]
pub const fn fhft_mask(filter: u16, row: u16) -> Reg {
    fhft(filter, row, 2)
}

/// Flexible host filter table: how many bytes of a packet this filter looks at; field [`fhft::LENGTH_MASK`].
#[inline]
pub const fn fhft_length(filter: u16) -> Reg {
    fhft(filter, 15, 3)
}

/// Flexible host filter table.
pub mod fhft {
    /// Bytes, at most [`FLEXIBLE_FILTER_LEN`](crate::limits::FLEXIBLE_FILTER_LEN).
    pub const LENGTH_MASK: u32 = 0xff;
}

/// IP addresses that are valid.
pub mod ipav {
    /// That in IP6AT.
    pub const V6: u32 = 1 << 16;

    /// Address `n` of IP4AT.
    pub const fn v4(n: u16) -> u32 {
        1 << (n & 3)
    }
}

/// Wake up packet length.
pub mod wupl {
    /// What is said of longer packets.
    pub const MAX: u32 = 2047;
}

/// Wake up control.
pub mod wuc {
    /// Advanced power management: magic packets wake, whatever WUFC says.
    pub const APME: u32 = 1 << 0;
    /// What WUFC says wakes.
    pub const PME_EN: u32 = 1 << 1;
}

/// Wake up filters.
pub mod wufc {
    /// The link has changed.
    pub const LNKC: u32 = 1 << 0;
    /// A magic packet.
    pub const MAG: u32 = 1 << 1;
    /// A packet to one of the receive addresses.
    pub const EX: u32 = 1 << 2;
    /// A multicast packet that is received.
    pub const MC: u32 = 1 << 3;
    /// A broadcast packet that is received.
    pub const BC: u32 = 1 << 4;
    /// An ARP request for one of the addresses in IP4AT.
    pub const ARP: u32 = 1 << 5;
    /// A packet to one of the addresses in IP4AT.
    pub const IPV4: u32 = 1 << 6;
    /// A packet to the address in IP6AT.
    pub const IPV6: u32 = 1 << 7;

    /// A packet that flexible filter `n` of [`FLEXIBLE_FILTERS`](crate::limits::FLEXIBLE_FILTERS) passes.
    pub const fn flx(n: u16) -> u32 {
        1 << (16 + (n & 7))
    }
}
