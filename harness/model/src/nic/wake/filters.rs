// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which packets wake (82576 datasheet, chapter "Wake-Up Packets"). All must be for the port, by their address and VLAN.
//!
//! Addresses of IP are looked for behind a tag and a SNAP header, as the 82541's manual says, and whatever the receiver
//! parses. A flexible filter begins with the frame's first byte and knows neither. It passes what is as long as it says;
//! one with a length that none can have (82575's manual: 2 bytes at least; I210's datasheet: 128 at most) passes
//! nothing.

use i82576::{
    limits::{FLEXIBLE_FILTER_LEN, FLEXIBLE_FILTERS},
    regs::{self, IPAV, fhft, fhft_length, fhft_mask, fhft_value, ip4at, ip6at, ipav, wufc},
};

use crate::nic::{
    receive::{IPV4, IPV6, Packet, is_for_us},
    registers::Registers,
};

/// How often a magic packet has the address, and what comes before.
const REPETITIONS: usize = 16;
const PREAMBLE: [u8; 6] = [0xff; 6];
const ARP: u16 = 0x0806;
/// Of Ethernet and IPv4, with addresses of this length: a request (RFC 826).
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
/// Where the address is that it asks for.
const ARP_TARGET: usize = 24;
/// Where the destination is in a header of IP.
const DESTINATION_V4: usize = 16;
const DESTINATION_V6: usize = 24;
/// The shortest flexible filter, in bytes.
const SHORTEST: u32 = 2;

/// The filters that a frame passes, as WUFC has them, whether they are on or not.
pub(super) fn passed(frame: &[u8], registers: &Registers) -> u32 {
    let packet = Packet::parse(frame, registers);
    if !is_for_us(&packet, frame, registers) {
        return 0;
    }
    let kind = match frame {
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => wufc::BC,
        [first, ..] if first & 1 != 0 => wufc::MC,
        _ => wufc::EX,
    };
    let magic = is_magic(frame, registers).then_some(wufc::MAG);
    let asked = by_network(&packet, frame, kind, registers);
    let flexible = (0..FLEXIBLE_FILTERS).filter(|filter| matches(*filter, frame, registers));
    let causes = magic
        .into_iter()
        .chain(asked)
        .chain(flexible.map(wufc::flx));
    causes.fold(kind, |all, cause| all | cause)
}

fn is_magic(frame: &[u8], registers: &Registers) -> bool {
    let (low, high) = (regs::ral(0), regs::rah(0));
    let station = regs::rah::decode(registers.get(low), registers.get(high));
    station.is_some_and(|station| {
        let pattern = [&PREAMBLE[..], &station.repeat(REPETITIONS)].concat();
        frame.windows(pattern.len()).any(|window| window == pattern)
    })
}

/// The filter that a packet passes by an address of IP.
fn by_network(packet: &Packet, frame: &[u8], kind: u32, registers: &Registers) -> Option<u32> {
    let (ether_type, start) = packet.network?;
    let header = frame.get(start..)?;
    match (ether_type, kind) {
        (ARP, wufc::BC) if header.starts_with(&ARP_REQUEST) => {
            is_our_ipv4(header, ARP_TARGET, registers).then_some(wufc::ARP)
        }
        (IPV4, wufc::EX) if header.first()? >> 4 == 4 => {
            is_our_ipv4(header, DESTINATION_V4, registers).then_some(wufc::IPV4)
        }
        (IPV6, wufc::EX) if header.first()? >> 4 == 6 => {
            let ours: Vec<_> = (0..4).flat_map(|n| bytes(registers, ip6at(n))).collect();
            let is_ours = header.get(DESTINATION_V6..)?.starts_with(&ours);
            (registers.has(IPAV, ipav::V6) && is_ours).then_some(wufc::IPV6)
        }
        _ => None,
    }
}

/// Whether one of the addresses that are valid is there.
fn is_our_ipv4(header: &[u8], at: usize, registers: &Registers) -> bool {
    let valid = (0..4).filter(|n| registers.has(IPAV, ipav::v4(*n)));
    let address = header.get(at..).and_then(|bytes| bytes.first_chunk());
    valid
        .map(|n| bytes(registers, ip4at(n)))
        .any(|ours| address == Some(&ours))
}

/// Whether a flexible filter passes a frame.
fn matches(filter: u16, frame: &[u8], registers: &Registers) -> bool {
    let length = registers.get(fhft_length(filter)) & fhft::LENGTH_MASK;
    let looked_at = usize::try_from(length)
        .ok()
        .and_then(|length| frame.get(..length));
    let Some(looked_at) = looked_at.filter(|_| (SHORTEST..=FLEXIBLE_FILTER_LEN).contains(&length))
    else {
        return false;
    };
    (0..).zip(looked_at.chunks(4)).all(|(n, chunk)| {
        let values = bytes(registers, fhft_value(filter, n));
        let mask = registers.get(fhft_mask(filter, n / 2)) >> (n % 2 * 4);
        let pairs = chunk.iter().zip(values).enumerate();
        pairs
            .into_iter()
            .all(|(at, (byte, value))| mask >> at & 1 == 0 || *byte == value)
    })
}

/// A register with bytes of a packet.
fn bytes(registers: &Registers, reg: regs::Reg) -> [u8; 4] {
    registers.get(reg).to_le_bytes()
}
