// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Registers of the system time and its timestamps (82576 datasheet, chapter "Time SYNC").
//!
//! A time has two registers. The low half must be read first: that latches the high one.

use super::{
    element,
    Reg, //
};

/// System time, low. QEMU's model latches the high half when this is read, as silicon does.
pub const SYSTIML: Reg = Reg(0x0b600);
/// System time, high.
pub const SYSTIMH: Reg = Reg(0x0b604);
/// How fast the system time runs; see [`timinca`]. A write makes the time jump in QEMU's model.
pub const TIMINCA: Reg = Reg(0x0b608);
/// Transmit timestamps; bits in [`tsynctxctl`].
pub const TSYNCTXCTL: Reg = Reg(0x0b614);
/// TX timestamp, low.
pub const TXSTMPL: Reg = Reg(0x0b618);
/// TX timestamp, high. Reading it lets the next one be taken.
pub const TXSTMPH: Reg = Reg(0x0b61c);
/// Receive timestamps; bits in [`tsyncrxctl`].
pub const TSYNCRXCTL: Reg = Reg(0x0b620);
/// RX timestamp, low.
pub const RXSTMPL: Reg = Reg(0x0b624);
/// RX timestamp, high.
pub const RXSTMPH: Reg = Reg(0x0b628);
/// RX timestamp attributes, high: the message's sequence number and a part of the sender's
/// identity. Reading it lets the next timestamp be taken.
pub const RXSATRH: Reg = Reg(0x0b630);
/// Which messages get a timestamp; see [`tsyncrxcfg`].
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

/// Transmit timestamps.
pub mod tsynctxctl {
    /// TXTT: there is a timestamp.
    pub const VALID: u32 = 1 << 0;
    /// EN: timestamp the frames whose descriptor asks for it.
    pub const ENABLE: u32 = 1 << 4;
}

/// Receive timestamps.
pub mod tsyncrxctl {
    /// RXTT: there is a timestamp.
    pub const VALID: u32 = 1 << 0;
    /// Type: messages of PTP version 2 over Ethernet of the kind that TSYNCRXCFG names.
    pub const TYPE_L2_V2: u32 = 0;
    /// Type: all event messages of PTP version 2. QEMU's model ignores the type and timestamps the
    /// messages that TSYNCRXCFG names.
    pub const TYPE_EVENT_V2: u32 = 5 << 1;
    /// EN: take timestamps.
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
    /// Timestamp the frames that match.
    pub const TIMESTAMP: u32 = 1 << 30;
}
