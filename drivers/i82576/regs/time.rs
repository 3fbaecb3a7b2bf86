// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Registers of the system time and of the stamps that are taken of it (82576 datasheet, chapter
//! "Time SYNC").
//!
//! A time has two registers, and its low half is read first: that latches the high one.

use super::{
    element,
    Reg, //
};

/// System time, low. QEMU's model latches the high half when this is read, as silicon does.
pub const SYSTIML: Reg = Reg(0x0b600);
/// System time, high.
pub const SYSTIMH: Reg = Reg(0x0b604);
/// How fast the system time goes; see [`timinca`]. A write makes the time jump in QEMU's model.
pub const TIMINCA: Reg = Reg(0x0b608);
/// Transmit stamps; bits in [`tsynctxctl`].
pub const TSYNCTXCTL: Reg = Reg(0x0b614);
/// Stamp of what was sent, low.
pub const TXSTMPL: Reg = Reg(0x0b618);
/// Stamp of what was sent, high. Reading it lets the next one be taken.
pub const TXSTMPH: Reg = Reg(0x0b61c);
/// Receive stamps; bits in [`tsyncrxctl`].
pub const TSYNCRXCTL: Reg = Reg(0x0b620);
/// Stamp of what was received, low.
pub const RXSTMPL: Reg = Reg(0x0b624);
/// Stamp of what was received, high.
pub const RXSTMPH: Reg = Reg(0x0b628);
/// Attributes of what was received, high: sequence number and a part of the sender's identity.
/// Reading it lets the next stamp be taken.
pub const RXSATRH: Reg = Reg(0x0b630);
/// Which messages are stamped; see [`tsyncrxcfg`].
pub const TSYNCRXCFG: Reg = Reg(0x05f50);

/// EtherType filter `n` of 8; bits in [`etqf`](mod@etqf).
#[inline]
pub const fn etqf(n: u16) -> Reg {
    element(0x05cb0, 4, 8, n)
}

/// Increment of the system time.
pub mod timinca {
    /// Adds 2^19 for each nanosecond: 16 times as much every 16 ns, which is how often the clock
    /// ticks at 1000 Mb/s.
    pub const NANOSECONDS: u32 = 1 << 24 | 16 << FRACTION;
    /// Bits of the system time below a nanosecond.
    pub const FRACTION: u32 = 19;
}

/// Transmit stamps.
pub mod tsynctxctl {
    /// TXTT: there is a stamp.
    pub const VALID: u32 = 1 << 0;
    /// EN: stamp what its descriptor asks it for.
    pub const ENABLE: u32 = 1 << 4;
}

/// Receive stamps.
pub mod tsyncrxctl {
    /// RXTT: there is a stamp.
    pub const VALID: u32 = 1 << 0;
    /// Type: messages of PTP version 2 over Ethernet of the kind that TSYNCRXCFG names.
    pub const TYPE_L2_V2: u32 = 0;
    /// Type: all event messages of PTP version 2. QEMU's model looks at no type, and stamps those
    /// that TSYNCRXCFG names.
    pub const TYPE_EVENT_V2: u32 = 5 << 1;
    /// EN: stamp.
    pub const ENABLE: u32 = 1 << 4;
}

/// Kinds of messages.
pub mod tsyncrxcfg {
    /// Shift of the message of PTP version 2: transport specific bits and type, as on the wire.
    pub const MESSAGE_V2_SHIFT: u32 = 8;
}

/// EtherType filter.
pub mod etqf {
    /// Shift of the EtherType.
    pub const TYPE_SHIFT: u32 = 0;
    /// Use the filter.
    pub const ENABLE: u32 = 1 << 26;
    /// Stamp what matches.
    pub const STAMP: u32 = 1 << 30;
}
