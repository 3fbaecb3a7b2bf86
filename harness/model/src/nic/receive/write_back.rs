// SPDX-License-Identifier: MIT OR Apache-2.0

//! Advanced receive descriptors as they are written back (82576 datasheet, chapters "Advanced Receive
//! Descriptors" and "Receive Packet Checksum and SCTP CRC Off Loading").
//!
//! As in QEMU's model, every descriptor of a packet has the split of the first, and only the last has
//! the rest.

use i82576::{
    five_tuple::Protocol,
    regs::{RFCTL, RXCSUM, rfctl, rxcsum},
};

use super::{
    fields::*,
    packet::{Addresses, Packet},
    queue::Piece,
    split::Layout,
    steer::Destination,
};
use crate::nic::{
    checksum::{fold, sum},
    registers::Registers,
};

/// RXCSUM.PCSS: where the packet checksum starts.
const PCSS: u32 = 0xff;
const UDP: u8 = 17;
/// Where UDP has its checksum.
const UDP_CHECKSUM: usize = 6;

/// What is reported of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) packet: &'a Packet,
    /// As they go to memory: without a tag that is taken out, and without the frame check sequence.
    pub(crate) bytes: &'a [u8],
    pub(crate) destination: &'a Destination,
    pub(crate) layout: Layout,
    /// The tag that was taken out.
    pub(crate) vlan: Option<u16>,
    /// RXSTMPL and RXSTMPH have its timestamp.
    pub(crate) timestamp: bool,
    /// Its check sequence was wrong.
    pub(crate) damaged: bool,
}

/// The descriptor for a piece of a packet.
pub(crate) fn write_back(received: &Received<'_>, piece: Piece, registers: &Registers) -> [u64; 2] {
    let layout = received.layout;
    let mut lo =
        (u64::from(layout.hdr_len) & HDR_LEN_MASK) << HDR_LEN_SHIFT | flag(layout.sph, SPH);
    let mut hi = DD | flag(layout.hbo, HBO) | u64::from(piece.len) << LENGTH_SHIFT;
    if piece.last {
        let Destination {
            immediate,
            ethertype_filter,
            ..
        } = *received.destination;
        let (kind, value) = hash_or_checksum(received, registers);
        let packet_type = match ethertype_filter {
            Some(number) => TYPE_FILTER | u16::from(number),
            None => received.packet.packet_type(),
        };
        lo |= u64::from(kind)
            | u64::from(packet_type) << PACKET_TYPE_SHIFT
            | u64::from(value) << HASH_SHIFT;
        hi |= EOP
            | checksums(received, registers)
            | flag(immediate, LLINT)
            | flag(received.timestamp, TS)
            | flag(received.damaged, RXE)
            | flag(received.vlan.is_some(), VP)
            | u64::from(received.vlan.unwrap_or(0)) << VLAN_SHIFT;
    }
    [lo, hi]
}

fn flag(is_set: bool, bit: u64) -> u64 {
    if is_set { bit } else { 0 }
}

/// The RSS type, and what is in the field of the hash: with RXCSUM.PCSD the hash, and else IP's
/// identification below a checksum, of the packet or of a fragment. The checksums are not inverted.
fn hash_or_checksum(received: &Received<'_>, registers: &Registers) -> (u8, u32) {
    let (kind, hash) = match received.destination.hash {
        // CAST: It has the field's values.
        Some((kind, hash)) => (kind as u8, hash),
        None => (0, 0),
    };
    if registers.has(RXCSUM, rxcsum::PCSD) {
        return (kind, hash);
    }
    let checksum = fragment(received, registers).unwrap_or_else(|| {
        let start = (registers.get(RXCSUM) & PCSS) as usize;
        received.bytes.get(start..).unwrap_or_default()
    });
    let id = received.packet.ip.as_ref().map_or(0, |ip| ip.id);
    let value = u32::from(fold(sum(checksum))) << 16 | u32::from(id);
    (kind, value)
}

/// The payload of a fragment of IPv4, if its checksum is to be reported (chapter "Receive UDP
/// Fragmentation Checksum").
fn fragment<'a>(received: &Received<'a>, registers: &Registers) -> Option<&'a [u8]> {
    let packet = received.packet;
    let ip = packet.ip.as_ref()?;
    let is_reported = registers.get(RXCSUM) & (rxcsum::PCSD | rxcsum::IPPCSE) == rxcsum::IPPCSE;
    if !is_reported || !ip.fragment || !matches!(ip.addresses, Addresses::V4 { .. }) {
        return None;
    }
    let tag = packet.len.checked_sub(received.bytes.len())?;
    let start = ip.header_end.checked_sub(tag)?;
    received.bytes.get(start..ip.end?.checked_sub(tag)?)
}

/// Which checksums were checked, and which are wrong.
fn checksums(received: &Received<'_>, registers: &Registers) -> u64 {
    let Some(ip) = &received.packet.ip else {
        return 0;
    };
    let has = |bit| registers.has(RXCSUM, bit);
    let mut bits = match ip.checksum.filter(|_| has(rxcsum::IPOFL)) {
        Some(right) => IPCS | flag(!right, IPE),
        None => 0,
    };
    if let Some(payload) = fragment(received, registers).filter(|_| ip.protocol == Some(UDP)) {
        let has_checksum = payload.get(UDP_CHECKSUM..UDP_CHECKSUM + 2) != Some(&[0, 0]);
        return bits | UDPCS | flag(!ip.later_fragment && has_checksum, UDPV);
    }
    let is_v6 = received
        .packet
        .innermost()
        .is_some_and(|ip| ip.checksum.is_none());
    if is_v6 && registers.has(RFCTL, rfctl::IPV6_XSUM_DIS) {
        return bits;
    }
    if let Some(transport) = &received.packet.transport {
        let (enable, checked) = match transport.protocol {
            Protocol::Tcp => (rxcsum::TUOFL, L4CS),
            Protocol::Udp => (rxcsum::TUOFL, L4CS | UDPCS),
            Protocol::Sctp => (rxcsum::CRCOFL, L4CS),
        };
        if let Some(right) = transport.checksum.filter(|_| has(enable)) {
            bits |= checked | flag(!right, L4E);
        }
    }
    bits
}
