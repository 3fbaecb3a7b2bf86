// SPDX-License-Identifier: MIT OR Apache-2.0

//! The RSS hash, with the vectors of Microsoft's verification suite.

use std::net::{Ipv4Addr, Ipv6Addr};

use i82576::{
    regs::{MRQC, RFCTL, mrqc, reta, rfctl, rssrk},
    rss::{HashFields, IndirectionTable, Key},
    rx::RssType,
};

use super::*;
use crate::nic::receive::{packet::Packet, steer::steer};

/// The suite's key.
const KEY: Key = Key::new([
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
]);

pub(super) fn hashing(mrqc: u32) -> Registers {
    let mut registers = registers();
    for (n, value) in (0..).zip(KEY.registers()) {
        registers.set(rssrk(n), value);
    }
    for (n, value) in (0..).zip(IndirectionTable::spread(16).registers()) {
        registers.set(reta(n), value);
    }
    registers.set(MRQC, mrqc);
    registers
}

fn hash(frame: &[u8], registers: &Registers) -> Option<(RssType, u32)> {
    let packet = Packet::parse(frame, registers);
    let destination = steer(&packet, registers);
    let queue = destination.hash.map_or(0, |(_, hash)| hash as u8 & 0xf);
    assert_eq!(destination.queue, queue);
    destination.hash
}

/// Of the suite: from 66.9.149.187:2794 to 161.142.100.80:1766.
pub(super) fn suite4(udp: bool) -> Vec<u8> {
    let parse = |a: &str| a.parse::<Ipv4Addr>().unwrap().octets();
    let ip = ethernet().ipv4(parse("66.9.149.187"), parse("161.142.100.80"), 64);
    let mut frame = Vec::new();
    if udp {
        ip.udp(2794, 1766).write(&mut frame, &[]).unwrap();
    } else {
        ip.tcp(2794, 1766, 1, 1).write(&mut frame, &[]).unwrap();
    }
    padded(frame)
}

/// Of the suite: from 3ffe:2501:200:1fff::7, 2794 to 3ffe:2501:200:3::1, 1766.
fn suite6(udp: bool) -> Vec<u8> {
    let parse = |a: &str| a.parse::<Ipv6Addr>().unwrap().octets();
    let (source, destination) = (parse("3ffe:2501:200:1fff::7"), parse("3ffe:2501:200:3::1"));
    let ip = ethernet().ipv6(source, destination, 64);
    let mut frame = Vec::new();
    if udp {
        ip.udp(2794, 1766).write(&mut frame, &[]).unwrap();
    } else {
        ip.tcp(2794, 1766, 1, 1).write(&mut frame, &[]).unwrap();
    }
    frame
}

const TUPLE4: u32 = 0x51cc_c178;
const PAIR4: u32 = 0x323e_8fc2;
const TUPLE6: u32 = 0x4020_7d3d;
const PAIR6: u32 = 0x2cc1_8cd5;

#[test]
fn hashes_are_those_of_the_verification_suite() {
    let registers = hashing(HashFields::ALL.mrqc());
    assert_eq!(
        hash(&suite4(false), &registers),
        Some((RssType::Ipv4Tcp, TUPLE4))
    );
    assert_eq!(
        hash(&suite4(true), &registers),
        Some((RssType::Ipv4Udp, TUPLE4))
    );
    assert_eq!(
        hash(&suite6(false), &registers),
        Some((RssType::Ipv6Tcp, TUPLE6))
    );
    assert_eq!(
        hash(&suite6(true), &registers),
        Some((RssType::Ipv6Udp, TUPLE6))
    );
}

#[test]
fn without_its_ports_a_packet_is_hashed_by_addresses_if_at_all() {
    let registers = hashing(mrqc::ENABLE_RSS | mrqc::RSS_FIELD_IPV4 | mrqc::RSS_FIELD_IPV6);
    assert_eq!(
        hash(&suite4(false), &registers),
        Some((RssType::Ipv4, PAIR4))
    );
    assert_eq!(
        hash(&suite6(true), &registers),
        Some((RssType::Ipv6, PAIR6))
    );
    let registers = hashing(HashFields::TCP.mrqc());
    assert_eq!(hash(&suite4(true), &registers), None);
    assert_eq!(hash(&suite6(true), &registers), None);
    let off = hashing(HashFields::ALL.mrqc() & !mrqc::ENABLE_RSS);
    assert_eq!(hash(&suite4(false), &off), None);
}

#[test]
fn fragments_are_hashed_by_addresses() {
    let registers = hashing(HashFields::ALL.mrqc());
    let mut frame = suite4(false);
    frame[20] = 0x20;
    fix_ipv4(&mut frame);
    assert_eq!(hash(&frame, &registers), Some((RssType::Ipv4, PAIR4)));
    assert_eq!(hash(&super::frame(STATION, 0x0806, &[]), &registers), None);
}

#[test]
fn tcp_without_extension_headers_is_not_hashed_as_with_them() {
    let with = hashing(mrqc::ENABLE_RSS | mrqc::RSS_FIELD_IPV6_TCP_EX);
    assert_eq!(hash(&suite6(false), &with), None);
    let addresses = hashing(mrqc::ENABLE_RSS | mrqc::RSS_FIELD_IPV6_EX);
    assert_eq!(
        hash(&suite6(false), &addresses),
        Some((RssType::Ipv6, PAIR6))
    );
}

#[test]
fn addresses_in_extension_headers_stand_for_those_of_the_packet() {
    let plain = suite6(false);
    let (source, destination) = (&plain[22..38], &plain[38..54]);
    let routing = [&[60, 2, 2, 0, 0, 0, 0, 0], destination].concat();
    let options = [&[6, 2, 1, 2, 0, 0, 0xc9, 16], source].concat();
    let frame = ip6(43, &[&routing, &options, &plain[54..]].concat());
    let mut registers = hashing(HashFields::ALL.mrqc());
    assert_eq!(hash(&frame, &registers), Some((RssType::Ipv6TcpEx, TUPLE6)));
    let addresses = hashing(mrqc::ENABLE_RSS | mrqc::RSS_FIELD_IPV6_EX);
    assert_eq!(hash(&frame, &addresses), Some((RssType::Ipv6Ex, PAIR6)));
    let without = hashing(mrqc::ENABLE_RSS | mrqc::RSS_FIELD_IPV6);
    let other = hash(&frame, &without).unwrap();
    assert_eq!(other.0, RssType::Ipv6);
    assert_ne!(other.1, PAIR6, "the addresses of the IPv6 header");
    registers.set(RFCTL, rfctl::IPV6_EX_DIS);
    assert_eq!(hash(&frame, &registers), None);
}
