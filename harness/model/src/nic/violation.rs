// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a driver must not do.

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An address that nothing answers was to be read or written.
    Unreachable,
    /// A transmit descriptor is of no kind that the device knows.
    Descriptor,
    /// A packet has more bytes than the device takes.
    TooLong,
    /// What is to be done with a packet does not fit the packet.
    Offload,
}

/// Something that a driver must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// What was wrong.
    pub what: What,
    /// Whose queue it was: of those that receive, or that transmit.
    pub transmit: bool,
    /// Its number.
    pub queue: u16,
}
