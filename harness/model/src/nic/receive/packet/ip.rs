// SPDX-License-Identifier: MIT OR Apache-2.0

//! Headers of IPv4 and IPv6.

use i82576::regs::{RFCTL, rfctl};

use super::{array, word};
use crate::nic::{
    checksum::{fold, sum},
    registers::Registers,
};

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// More fragments, and the fragment's offset (RFC 791).
const FRAGMENT: u16 = 0x3fff;
/// The same in IPv6 (RFC 8200).
const FRAGMENT_V6: u16 = 0xfff9;

/// Protocols and next headers.
const IPV6: u8 = 41;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT_HEADER: u8 = 44;
const AUTHENTICATION: u8 = 51;
const NO_NEXT_HEADER: u8 = 59;
const DESTINATION_OPTIONS: u8 = 60;

/// The routing header with a home address (RFC 6275), and its length in units of 8 bytes.
const HOME_ROUTING: u8 = 2;
const HOME_ROUTING_LEN: u8 = 2;
/// The option with a home address (RFC 6275), and the one that is a single byte (RFC 8200).
const HOME_ADDRESS: u8 = 0xc9;
const PAD1: u8 = 0;

/// Source and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addresses {
    V4 {
        source: [u8; 4],
        destination: [u8; 4],
    },
    V6 {
        source: [u8; 16],
        destination: [u8; 16],
        /// Those in extension headers that stand for the two: the source from a home address option,
        /// the destination from a routing header of type 2.
        home_source: Option<[u8; 16]>,
        home_destination: Option<[u8; 16]>,
    },
}

/// An IP header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ip {
    pub(crate) addresses: Addresses,
    /// Where the header ends, with options and extension headers; a fragment header is not counted in.
    pub(crate) header_end: usize,
    /// Where the payload ends. `None` if that is beyond the frame, or before the header's end.
    pub(crate) end: Option<usize>,
    /// There are options, or extension headers that were parsed.
    pub(crate) extended: bool,
    /// There are extension headers that were not parsed.
    pub(crate) unparsed: bool,
    pub(crate) fragment: bool,
    /// It is not the first one.
    pub(crate) later_fragment: bool,
    /// What follows, if that is known.
    pub(crate) protocol: Option<u8>,
    /// Identification, zero for IPv6.
    pub(crate) id: u16,
    /// The header checksum is right. `None` for IPv6.
    pub(crate) checksum: Option<bool>,
    /// The destination is not that of the checksum's pseudo header: transport checksums aren't
    /// checked.
    pub(crate) rerouted: bool,
}

impl Ip {
    pub(super) fn parse_v4(frame: &[u8], start: usize) -> Option<Self> {
        let [version, ..] = array::<IPV4_HEADER>(frame, start)?;
        let len = usize::from(version & 0xf) * 4;
        if version >> 4 != 4 || len < IPV4_HEADER {
            return None;
        }
        let header = frame.get(start..start + len)?;
        let fragment = word(header, 6)?;
        let end = start + usize::from(word(header, 2)?);
        let header_end = start + len;
        Some(Self {
            addresses: Addresses::V4 {
                source: array(header, 12)?,
                destination: array(header, 16)?,
            },
            header_end,
            end: (header_end..=frame.len()).contains(&end).then_some(end),
            extended: len > IPV4_HEADER,
            unparsed: false,
            fragment: fragment & FRAGMENT != 0,
            later_fragment: fragment & (FRAGMENT >> 1) != 0,
            protocol: header.get(9).copied(),
            id: word(header, 4)?,
            checksum: Some(fold(sum(header)) == 0xffff),
            rerouted: false,
        })
    }

    pub(super) fn parse_v6(frame: &[u8], start: usize, registers: &Registers) -> Option<Self> {
        let header: [u8; IPV6_HEADER] = array(frame, start)?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let header_end = start + IPV6_HEADER;
        let end = header_end + usize::from(word(&header, 4)?);
        let mut ip = Self {
            addresses: Addresses::V6 {
                source: array(&header, 8)?,
                destination: array(&header, 24)?,
                home_source: None,
                home_destination: None,
            },
            header_end,
            end: (end <= frame.len()).then_some(end),
            extended: false,
            unparsed: false,
            fragment: false,
            later_fragment: false,
            protocol: None,
            id: 0,
            checksum: None,
            rerouted: false,
        };
        let parses = !registers.has(RFCTL, rfctl::IPV6_EX_DIS);
        ip.parse_extensions(frame, header[6], parses);
        Some(ip)
    }

    /// Parses extension headers. The ones that the device doesn't know are payload.
    fn parse_extensions(&mut self, frame: &[u8], first: u8, parses: bool) {
        let mut next = first;
        // Each is 8 bytes at least, so this ends with the frame.
        while is_extension(next) {
            let is_first = !self.extended;
            let len = header_len(frame, self.header_end, next);
            let bytes = len.and_then(|len| frame.get(self.header_end..self.header_end + len));
            let (true, Some(bytes)) = (parses && (next != HOP_BY_HOP || is_first), bytes) else {
                self.unparsed = true;
                return;
            };
            self.extended = true;
            match next {
                FRAGMENT_HEADER => {
                    let fragment = word(bytes, 2).unwrap_or(0);
                    // One that is whole (RFC 6946) is a fragment too: what follows is not parsed.
                    self.fragment = true;
                    self.later_fragment = fragment & FRAGMENT_V6 & !1 != 0;
                    return;
                }
                ROUTING => self.parse_routing(bytes),
                DESTINATION_OPTIONS => self.parse_options(bytes),
                _ => {}
            }
            self.header_end += bytes.len();
            next = bytes.first().copied().unwrap_or(NO_NEXT_HEADER);
        }
        self.protocol = (next != NO_NEXT_HEADER).then_some(next);
    }

    fn parse_routing(&mut self, bytes: &[u8]) {
        let Some([_, len, kind, left]) = array(bytes, 0) else {
            return;
        };
        self.rerouted |= left != 0;
        if let (
            Addresses::V6 {
                home_destination, ..
            },
            HOME_ROUTING,
            HOME_ROUTING_LEN,
        ) = (&mut self.addresses, kind, len)
        {
            *home_destination = array(bytes, 8);
        }
    }

    fn parse_options(&mut self, bytes: &[u8]) {
        let mut at = 2;
        while let Some(&option) = bytes.get(at) {
            if option == PAD1 {
                at += 1;
                continue;
            }
            let Some(&len) = bytes.get(at + 1) else {
                return;
            };
            if let (Addresses::V6 { home_source, .. }, HOME_ADDRESS, 16) =
                (&mut self.addresses, option, len)
            {
                *home_source = array(bytes, at + 2);
                self.rerouted = true;
            }
            at += 2 + usize::from(len);
        }
    }

    /// Whether IPv6 is in it, as a whole: that is a tunnel.
    pub(super) fn carries_ipv6(&self) -> bool {
        matches!(self.addresses, Addresses::V4 { .. })
            && self.protocol == Some(IPV6)
            && !self.fragment
            && self.end.is_some()
    }
}

/// The extension headers that the device knows (appendix "Packet Types", IPv6 next header values;
/// the table of header lengths of chapter "Receive Packet Checksum Off Loading" adds
/// authentication).
fn is_extension(next: u8) -> bool {
    matches!(
        next,
        HOP_BY_HOP | ROUTING | FRAGMENT_HEADER | AUTHENTICATION | DESTINATION_OPTIONS
    )
}

fn header_len(frame: &[u8], at: usize, kind: u8) -> Option<usize> {
    let len = usize::from(*frame.get(at + 1)?);
    Some(match kind {
        FRAGMENT_HEADER => 8,
        AUTHENTICATION => 8 + 4 * len,
        _ => 8 + 8 * len,
    })
}
