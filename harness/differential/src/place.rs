// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where rings and buffers are in memory.

/// Queues of either direction that are used: the first ones.
pub const QUEUES: u16 = 4;
/// Descriptors of a ring.
pub const DESCRIPTORS: u16 = 64;
/// Bytes from one header buffer to the next.
pub const HEADER_STRIDE: u64 = 0x400;
/// Bytes from one payload buffer to the next.
pub const PAYLOAD_STRIDE: u64 = 0x800;
/// Where memory begins that is used for anything, and how many bytes it has.
pub const START: u64 = 0x100_0000;
/// Bytes from [`START`].
pub const BYTES: usize = 0x28_0000;
/// What memory is filled with before anything is done.
pub const FILL: u8 = 0xa5;
/// Bytes of a ring.
pub const RING: u64 = 16 * DESCRIPTORS as u64;

/// A queue's ring for reception.
#[must_use]
pub const fn rx_ring(queue: u16) -> u64 {
    START + queue as u64 * RING
}

/// A queue's ring for transmission.
#[must_use]
pub const fn tx_ring(queue: u16) -> u64 {
    START + 0x4000 + queue as u64 * RING
}

/// Where a vector's message is written: 4 bytes.
#[must_use]
pub const fn message(vector: u16) -> u64 {
    START + 0x8000 + vector as u64 * 4
}

/// A descriptor's header buffer.
#[must_use]
pub const fn header(queue: u16, descriptor: u16) -> u64 {
    let nth = queue as u64 * DESCRIPTORS as u64 + descriptor as u64;
    START + 0x1_0000 + nth * HEADER_STRIDE
}

/// A descriptor's payload buffer.
#[must_use]
pub const fn payload(queue: u16, descriptor: u16) -> u64 {
    let nth = queue as u64 * DESCRIPTORS as u64 + descriptor as u64;
    START + 0x8_0000 + nth * PAYLOAD_STRIDE
}

/// Where bytes to be sent are, 1 MiB of them.
pub const OUTGOING: u64 = START + 0x18_0000;
