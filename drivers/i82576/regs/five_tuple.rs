// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Registers of the five-tuple filters, which send packets to a queue regardless of their RSS hash.
//! What their values mean is in [`five_tuple`](mod@crate::five_tuple).
//!
//! Addresses and ports are in the order of the wire: the first byte is the lowest.

use super::{
    element,
    Reg, //
};

/// Five-tuple queue filter `n` of 8; bits in [`ftqf`](mod@ftqf). QEMU's model has none: it reads
/// back as zero there.
#[inline]
pub const fn ftqf(n: u16) -> Reg {
    element(0x059e0, 4, 8, n)
}

/// Source address of five-tuple filter `n` of 8.
#[inline]
pub const fn saqf(n: u16) -> Reg {
    element(0x05980, 4, 8, n)
}

/// Destination address of five-tuple filter `n` of 8.
#[inline]
pub const fn daqf(n: u16) -> Reg {
    element(0x059a0, 4, 8, n)
}

/// Source port of five-tuple filter `n` of 8, in the low 16 bits.
#[inline]
pub const fn spqf(n: u16) -> Reg {
    element(0x059c0, 4, 8, n)
}

/// Immediate interrupt `n` of 8, whose destination port and priority five-tuple filter `n` uses;
/// bits in [`imir`](mod@imir).
#[inline]
pub const fn imir(n: u16) -> Reg {
    element(0x05a80, 4, 8, n)
}

/// More conditions of [`imir`](imir())`(n)` and of five-tuple filter `n`; bits in
/// [`imirext`](mod@imirext).
#[inline]
pub const fn imirext(n: u16) -> Reg {
    element(0x05aa0, 4, 8, n)
}

/// Five-tuple queue filter. What is bypassed is not compared.
pub mod ftqf {
    /// Mask of the IP protocol.
    pub const PROTOCOL_MASK: u32 = 0xff;
    /// Send what matches to the queue.
    pub const QUEUE_ENABLE: u32 = 1 << 8;
    /// Bypass the virtual function.
    pub const VF_BP: u32 = 1 << 15;
    /// Shift of the receive queue.
    pub const QUEUE_SHIFT: u32 = 16;
    /// Mask of the receive queue.
    pub const QUEUE_MASK: u32 = 0xf << QUEUE_SHIFT;
    /// Bypass the IP protocol.
    pub const PROTOCOL_BP: u32 = 1 << 28;
    /// Bypass the source address.
    pub const SOURCE_BP: u32 = 1 << 29;
    /// Bypass the destination address.
    pub const DESTINATION_BP: u32 = 1 << 30;
    /// Bypass the source port.
    pub const SOURCE_PORT_BP: u32 = 1 << 31;
}

/// Immediate interrupt.
pub mod imir {
    /// Mask of the destination port.
    pub const PORT_MASK: u32 = 0xffff;
    /// Bypass the destination port.
    pub const PORT_BP: u32 = 1 << 17;
    /// Shift of the priority: of filters that match, the one with the highest counts, and of those
    /// the first.
    pub const PRIORITY_SHIFT: u32 = 29;
    /// The highest priority.
    pub const PRIORITY_MAX: u32 = 7;
}

/// More conditions of an immediate interrupt.
pub mod imirext {
    /// Bypass the packet's size.
    pub const SIZE_BP: u32 = 1 << 12;
    /// Bypass the flags of TCP.
    pub const CONTROL_BP: u32 = 1 << 19;
}
