// SPDX-License-Identifier: MIT OR Apache-2.0

//! Fields of receive descriptors as they are written back (82576 datasheet, chapter "Advanced Receive
//! Descriptors").

/// First quadword.
pub(crate) const PACKET_TYPE_SHIFT: u32 = 4;
pub(crate) const HDR_LEN_SHIFT: u32 = 21;
pub(crate) const HDR_LEN_MASK: u64 = 0x3ff;
pub(crate) const SPH: u64 = 1 << 31;
pub(crate) const HASH_SHIFT: u32 = 32;
/// Packet type: the number of an EtherType filter in place of headers.
pub(crate) const TYPE_FILTER: u16 = 1 << 11;

/// Second quadword: status.
pub(crate) const DD: u64 = 1 << 0;
pub(crate) const EOP: u64 = 1 << 1;
pub(crate) const VP: u64 = 1 << 3;
pub(crate) const UDPCS: u64 = 1 << 4;
pub(crate) const L4CS: u64 = 1 << 5;
pub(crate) const IPCS: u64 = 1 << 6;
/// A fragment's UDP header has a checksum.
pub(crate) const UDPV: u64 = 1 << 10;
/// The packet has caused an immediate interrupt.
pub(crate) const LLINT: u64 = 1 << 11;
pub(crate) const TS: u64 = 1 << 16;
/// Second quadword: errors.
pub(crate) const HBO: u64 = 1 << 23;
pub(crate) const L4E: u64 = 1 << 29;
pub(crate) const IPE: u64 = 1 << 30;
/// The check sequence was wrong.
pub(crate) const RXE: u64 = 1 << 31;
pub(crate) const LENGTH_SHIFT: u32 = 32;
pub(crate) const VLAN_SHIFT: u32 = 48;
