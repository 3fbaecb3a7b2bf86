// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Interrupt causes, masks, vectors and moderation.

use super::{
    element,
    Reg, //
};

/// Interrupt cause, cleared by reading; bits in [`icr`].
pub const ICR: Reg = Reg(0x000c0);
/// Interrupt cause set; bits in [`icr`].
pub const ICS: Reg = Reg(0x000c8);
/// Interrupt mask set and read; bits in [`icr`].
pub const IMS: Reg = Reg(0x000d0);
/// Interrupt mask clear; bits in [`icr`].
pub const IMC: Reg = Reg(0x000d8);
/// Interrupt acknowledge auto mask; bits in [`icr`].
pub const IAM: Reg = Reg(0x000e0);
/// General purpose interrupt enable; bits in [`gpie`].
pub const GPIE: Reg = Reg(0x01514);
/// Extended interrupt cause set; with MSI-X a bit per vector, as in all the extended registers.
pub const EICS: Reg = Reg(0x01520);
/// Extended interrupt mask set and read.
pub const EIMS: Reg = Reg(0x01524);
/// Extended interrupt mask clear.
pub const EIMC: Reg = Reg(0x01528);
/// Extended interrupt auto clear: the cause clears when its message is sent.
pub const EIAC: Reg = Reg(0x0152c);
/// Extended interrupt auto mask: the mask clears when its message is sent.
pub const EIAM: Reg = Reg(0x01530);
/// Extended interrupt cause, cleared by reading.
pub const EICR: Reg = Reg(0x01580);
/// Vectors of the causes that are not a queue; see [`ivar_misc`].
pub const IVAR_MISC: Reg = Reg(0x01740);

/// Interrupt throttling of vector `v`; see [`eitr`](mod@eitr). An index is taken modulo 32; silicon
/// has 25 vectors.
#[inline]
pub const fn eitr(v: u16) -> Reg {
    element(0x01680, 4, 32, v)
}

/// How many registers [`ivar`] there are.
pub const IVARS: u16 = 8;

/// Interrupt vector allocation, register `n` of [`IVARS`]. Each holds four entries of a byte; see
/// [`ivar_rx`], [`ivar_tx`] and [`ivar_entry`].
#[inline]
pub const fn ivar(n: u16) -> Reg {
    element(0x01700, 4, IVARS as u32, n)
}

/// Where the vector of receive queue `q` is written: the register, and the shift of its byte.
///
/// The 82576 has register `q & 7` hold queues `q & 7` (bytes 0 and 1) and `(q & 7) + 8` (bytes 2
/// and 3), receive before transmit. The 82575 and the chips from the 82580 on differ.
#[inline]
pub const fn ivar_rx(q: u16) -> (Reg, u32) {
    (ivar(q & 7), if q & 8 != 0 { 16 } else { 0 })
}

/// Where the vector of transmit queue `q` is written: the register, and the shift of its byte.
#[inline]
pub const fn ivar_tx(q: u16) -> (Reg, u32) {
    (ivar(q & 7), if q & 8 != 0 { 24 } else { 8 })
}

/// An entry of [`ivar`] or [`IVAR_MISC`] is in use.
pub const IVAR_VALID: u8 = 0x80;

/// The entry that allocates `vector`, 0..=24.
#[inline]
pub const fn ivar_entry(vector: u8) -> u8 {
    (vector & 0x1f) | IVAR_VALID
}

/// `ivar` with the byte at `shift` replaced by `entry`; `shift` is 0, 8, 16 or 24.
#[inline]
pub const fn ivar_replace(ivar: u32, shift: u32, entry: u8) -> u32 {
    let shift = shift & 24;
    ivar & !(0xff << shift) | (entry as u32) << shift
}

/// Shifts of the bytes of [`IVAR_MISC`].
pub mod ivar_misc {
    /// Entry of the TCP timer.
    pub const TCP_TIMER_SHIFT: u32 = 0;
    /// Entry of all other causes: link, reset and errors.
    pub const OTHER_SHIFT: u32 = 8;
}

/// Interrupt throttling.
pub mod eitr {
    /// Writing does not reset the interval counter.
    pub const CNT_IGNR: u32 = 1 << 31;

    /// Most microseconds between two interrupts.
    pub const INTERVAL_MAX: u32 = 0x1fff;

    /// The value that keeps interrupts of a vector at least `us` microseconds apart; 0 is no
    /// throttling, and more than [`INTERVAL_MAX`] is written as that.
    #[inline]
    pub const fn interval(us: u32) -> u32 {
        (if us > INTERVAL_MAX { INTERVAL_MAX } else { us }) << 2
    }
}

/// Interrupt causes, in ICR, ICS, IMS, IMC and IAM.
pub mod icr {
    /// Transmit descriptor written back.
    pub const TXDW: u32 = 1 << 0;
    /// Link status change.
    pub const LSC: u32 = 1 << 2;
    /// Receive descriptors at their minimum threshold.
    pub const RXDMT0: u32 = 1 << 4;
    /// Receiver overrun: no descriptor, or the packet buffer is full.
    pub const RXO: u32 = 1 << 6;
    /// Receive descriptor written back.
    pub const RXDW: u32 = 1 << 7;
    /// Virtual function mailbox.
    pub const VMMB: u32 = 1 << 8;
    /// Time synchronisation.
    pub const TIME_SYNC: u32 = 1 << 19;
    /// Fatal error.
    pub const FER: u32 = 1 << 22;
    /// DMA out of sync: descriptors of a virtual function were malformed.
    pub const DOUTSYNC: u32 = 1 << 28;
    /// Device reset was asserted.
    pub const DRSTA: u32 = 1 << 30;
    /// The device asserts its interrupt.
    pub const INT_ASSERTED: u32 = 1 << 31;
}

/// General purpose interrupt enable.
pub mod gpie {
    /// Reading ICR does not clear it while no enabled cause is set.
    pub const NSICR: u32 = 1 << 0;
    /// MSI-X with several vectors. Set this first: IVAR settings do not stick without it.
    pub const MSIX_MODE: u32 = 1 << 4;
    /// EIAM applies when an MSI-X message is sent.
    pub const EIAME: u32 = 1 << 30;
    /// Pending bits are cleared as the PCI specification demands.
    pub const PBA: u32 = 1 << 31;
}
