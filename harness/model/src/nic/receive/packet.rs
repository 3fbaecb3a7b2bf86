// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the device sees in a frame (82576 datasheet, appendix "Packet Types", and chapter "Receive
//! Packet Checksum Off Loading").
//!
//! Of tags it knows one, of the type in VET; CTRL_EXT.EXTENDED_VLAN isn't modelled. Of tunnels it
//! parses IPv6 in IPv4, and nothing else.

mod ip;
mod transport;

use std::borrow::Cow;

use i82576::{
    five_tuple::Protocol,
    limits::VLAN_TAG,
    regs::{CTRL, RFCTL, VET, ctrl, rfctl},
};

pub(crate) use self::{
    ip::{Addresses, Ip},
    transport::Transport,
};
use crate::nic::registers::Registers;

/// Where the type field is, behind both addresses.
const TYPE: usize = 12;
pub(in crate::nic) const IPV4: u16 = 0x0800;
pub(in crate::nic) const IPV6: u16 = 0x86dd;
/// Type fields below this are lengths (IEEE 802.3).
const FIRST_TYPE: u16 = 0x600;
/// LLC and SNAP headers that are followed by an EtherType (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// RDESC.Packet Type: the headers that were recognised (chapter "Advanced Receive Descriptors").
const TYPE_IPV4: u16 = 1 << 0;
const TYPE_IPV4_OPTIONS: u16 = 1 << 1;
const TYPE_IPV6: u16 = 1 << 2;
const TYPE_IPV6_EXTENSIONS: u16 = 1 << 3;
const TYPE_TCP: u16 = 1 << 4;
const TYPE_UDP: u16 = 1 << 5;
const TYPE_SCTP: u16 = 1 << 6;
const TYPE_NFS: u16 = 1 << 7;

/// What the device sees in a frame, which has no frame check sequence. Offsets are into the frame as
/// it was on the wire, with its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Bytes of the frame.
    pub(crate) len: usize,
    /// The type field, and that behind a tag.
    pub(crate) ether_type: Option<u16>,
    pub(crate) inner_type: Option<u16>,
    /// The tag: priority, DEI and VLAN ID.
    pub(crate) vlan: Option<u16>,
    /// Where the field ends that says what the payload is.
    pub(crate) payload: usize,
    /// What follows behind addresses, tag and SNAP header: its type, and where it begins.
    pub(crate) network: Option<(u16, usize)>,
    /// The IP header, the outer one of a tunnel.
    pub(crate) ip: Option<Ip>,
    /// The IPv6 header in IPv4.
    pub(crate) inner: Option<Ip>,
    /// The header of TCP, UDP or SCTP.
    pub(crate) transport: Option<Transport>,
}

impl Packet {
    /// Parses a frame.
    pub(crate) fn parse(frame: &[u8], registers: &Registers) -> Self {
        let ether_type = word(frame, TYPE);
        // CAST: The high half is for an outer tag.
        let tagged = ether_type.is_some_and(|value| value == registers.get(VET) as u16);
        let vlan = word(frame, TYPE + 2).filter(|_| tagged);
        let at = if vlan.is_some() { TYPE + 4 } else { TYPE };
        let mut packet = Self {
            len: frame.len(),
            ether_type,
            inner_type: word(frame, at).filter(|_| vlan.is_some()),
            vlan,
            payload: at + 2,
            network: network(frame, at),
            ip: None,
            inner: None,
            transport: None,
        };
        packet.parse_network(frame, registers);
        packet
    }

    fn parse_network(&mut self, frame: &[u8], registers: &Registers) {
        let parses_ipv6 = !registers.has(RFCTL, rfctl::IPV6_DIS);
        self.ip = match self.network {
            Some((IPV4, start)) => Ip::parse_v4(frame, start),
            Some((IPV6, start)) if parses_ipv6 => Ip::parse_v6(frame, start, registers),
            _ => None,
        };
        let Some(ip) = &self.ip else { return };
        if parses_ipv6 && ip.carries_ipv6() {
            self.inner = Ip::parse_v6(frame, ip.header_end, registers);
        }
        let innermost = self.inner.as_ref().unwrap_or(ip);
        self.transport = Transport::parse(frame, innermost, registers);
    }

    /// The IP header that the transport header follows.
    pub(crate) fn innermost(&self) -> Option<&Ip> {
        self.inner.as_ref().or(self.ip.as_ref())
    }

    /// The packet type for the descriptor, without that of an EtherType filter.
    pub(crate) fn packet_type(&self) -> u16 {
        let mut bits = 0;
        for ip in self.ip.iter().chain(&self.inner) {
            bits |= match (&ip.addresses, ip.extended) {
                (Addresses::V4 { .. }, false) => TYPE_IPV4,
                (Addresses::V4 { .. }, true) => TYPE_IPV4 | TYPE_IPV4_OPTIONS,
                (Addresses::V6 { .. }, false) => TYPE_IPV6,
                (Addresses::V6 { .. }, true) => TYPE_IPV6 | TYPE_IPV6_EXTENSIONS,
            };
        }
        if let Some(transport) = &self.transport {
            bits |= match transport.protocol {
                Protocol::Tcp => TYPE_TCP,
                Protocol::Udp => TYPE_UDP,
                Protocol::Sctp => TYPE_SCTP,
            };
            if transport.nfs {
                bits |= TYPE_NFS;
            }
        }
        bits
    }

    /// Bytes that are taken out before the packet goes to memory: the tag, if CTRL.VME says so.
    pub(crate) fn stripped(&self, registers: &Registers) -> usize {
        if self.vlan.is_some() && registers.has(CTRL, ctrl::VME) {
            VLAN_TAG as usize
        } else {
            0
        }
    }

    /// The frame as it goes to memory, and the tag that was taken out of it (chapter "802.1Q VLAN
    /// Support").
    pub(crate) fn strip<'a>(
        &self,
        frame: &'a [u8],
        registers: &Registers,
    ) -> (Cow<'a, [u8]>, Option<u16>) {
        let tag = TYPE..TYPE + self.stripped(registers);
        match (frame.get(..tag.start), frame.get(tag.end..)) {
            (Some(addresses), Some(rest)) if !tag.is_empty() => {
                (Cow::Owned([addresses, rest].concat()), self.vlan)
            }
            _ => (Cow::Borrowed(frame), None),
        }
    }
}

/// The type of what comes with the type or length at an offset, and where it begins.
fn network(frame: &[u8], at: usize) -> Option<(u16, usize)> {
    let (ether_type, start) = (word(frame, at)?, at + 2);
    let snap = start..start + SNAP.len();
    match frame.get(snap.clone()) == Some(&SNAP) && ether_type < FIRST_TYPE {
        true => Some((word(frame, snap.end)?, snap.end + 2)),
        false => Some((ether_type, start)),
    }
}

/// The number in network order at an offset.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(array(bytes, at)?))
}

/// So many bytes at an offset.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
