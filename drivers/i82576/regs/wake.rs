// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Wake-up from D3.
//!
//! Source: 82576 datasheet, chapter "Wake Up Registers", and the kernel's `__igb_shutdown()`.

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
/// Wake up packet length in bytes.
pub const WUPL: Reg = Reg(0x05900);

/// Wake up packet memory, register `n` of 32: the packet's first bytes.
#[inline]
pub const fn wupm(n: u16) -> Reg {
    element(0x05a00, 4, 32, n)
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
}
