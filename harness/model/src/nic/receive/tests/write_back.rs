// SPDX-License-Identifier: MIT OR Apache-2.0

//! Descriptors are what the driver's crate makes of them.

use i82576::{
    regs::{RFCTL, RXCSUM, rfctl, rxcsum},
    rx::{Checksum, RssType, WriteBack, is_done},
};
use proptest::prelude::*;

use super::*;
use crate::nic::receive::{
    packet::Packet,
    queue::Piece,
    split::Layout,
    steer::Destination,
    write_back::{Received, write_back},
};

const WHOLE: Layout = Layout {
    header: 0,
    sph: false,
    hbo: false,
    hdr_len: 0,
};
const PLAIN: Destination = Destination {
    queue: 0,
    hash: None,
    immediate: false,
    ethertype_filter: None,
    timestamp: false,
};
const TYPES: [RssType; 9] = [
    RssType::Ipv4Tcp,
    RssType::Ipv4,
    RssType::Ipv6Tcp,
    RssType::Ipv6Ex,
    RssType::Ipv6,
    RssType::Ipv6TcpEx,
    RssType::Ipv4Udp,
    RssType::Ipv6Udp,
    RssType::Ipv6UdpEx,
];

/// The raw descriptor of a frame that is in one buffer.
fn raw(frame: &[u8], registers: &Registers) -> [u64; 2] {
    let received = Received {
        packet: &Packet::parse(frame, registers),
        bytes: frame,
        destination: &PLAIN,
        layout: WHOLE,
        vlan: None,
        timestamp: false,
        damaged: false,
    };
    let piece = Piece {
        len: frame.len() as u16,
        last: true,
    };
    write_back(&received, piece, registers)
}

fn decoded(frame: &[u8], rxcsum: u32) -> WriteBack {
    let mut registers = registers();
    registers.set(RXCSUM, rxcsum);
    let [lo, hi] = raw(frame, &registers);
    WriteBack::from_raw(lo, hi)
}

proptest! {
    #[test]
    fn every_field_is_read_back(
        hash in any::<u32>(), kind in prop::sample::select(&TYPES[..]),
        sph: bool, hbo: bool, hdr_len in 0u16..1024, len: u16, last: bool,
        vlan: Option<u16>, timestamp: bool, damaged: bool,
        ethertype_filter in prop::option::of(0u8..8),
    ) {
        let mut registers = registers();
        registers.set(RXCSUM, rxcsum::PCSD);
        let frame = tcp4(&[1; 10]);
        let packet = Packet::parse(&frame, &registers);
        let destination = Destination { hash: Some((kind, hash)), ethertype_filter, ..PLAIN };
        let received = Received {
            packet: &packet,
            bytes: &frame,
            destination: &destination,
            layout: Layout { header: 0, sph, hbo, hdr_len },
            vlan,
            timestamp,
            damaged,
        };
        let [lo, hi] = write_back(&received, Piece { len, last }, &registers);
        let read = WriteBack::from_raw(lo, hi);
        prop_assert!(is_done(hi) && read.done());
        prop_assert_eq!(read.frame_error(), damaged && last);
        prop_assert_eq!((read.split_header(), read.header_buffer_overflow()), (sph, hbo));
        prop_assert_eq!((read.header_len(), read.packet_len()), (hdr_len, len));
        prop_assert_eq!(read.end_of_packet(), last);
        if last {
            prop_assert_eq!((read.rss_type(), read.rss_hash()), (kind, hash));
            prop_assert_eq!(read.vlan_packet(), vlan.is_some());
            prop_assert_eq!(read.vlan_tag(), vlan.unwrap_or(0));
            prop_assert_eq!(read.has_timestamp(), timestamp);
            prop_assert_eq!(read.packet_type().ethertype_filter(), ethertype_filter);
            prop_assert_eq!(read.packet_type().tcp(), ethertype_filter.is_none());
        } else {
            prop_assert_eq!((read.rss_type(), read.rss_hash()), (RssType::None, 0));
            prop_assert!(!read.vlan_packet() && !read.has_timestamp());
        }
    }
}

#[test]
fn packet_types_are_the_headers_of_the_packet() {
    let kind = decoded(&tcp4(&[]), 0).packet_type();
    assert!(kind.ipv4() && kind.tcp() && !kind.ipv4_options() && !kind.ipv6());
    let kind = decoded(&udp4((1, 2049), &[]), 0).packet_type();
    assert!(kind.ipv4() && kind.udp() && kind.nfs());
    let kind = decoded(
        &ip6(
            60,
            &[132, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        0,
    );
    let kind = kind.packet_type();
    assert!(kind.ipv6() && kind.ipv6_extensions() && kind.sctp());
}

#[test]
fn checksums_are_reported_as_far_as_rxcsum_has_them_checked() {
    let both = rxcsum::IPOFL | rxcsum::TUOFL;
    let mut frame = tcp4(&[3; 40]);
    assert_eq!(decoded(&frame, both).checksum(), Checksum::Verified);
    assert!(decoded(&frame, both).ip_checksum_checked());
    assert_eq!(decoded(&frame, rxcsum::IPOFL).checksum(), Checksum::None);
    assert!(!decoded(&frame, rxcsum::TUOFL).ip_checksum_checked());
    frame[70] ^= 1;
    let read = decoded(&frame, both);
    assert_eq!(read.checksum(), Checksum::Bad);
    assert!(read.l4_checksum_error() && !read.ip_checksum_error());
    frame[22] ^= 1;
    assert!(decoded(&frame, both).ip_checksum_error());
    assert_eq!(decoded(&frame, 0).checksum(), Checksum::None);
}

#[test]
fn udp_is_reported_by_two_bits_and_without_a_checksum_by_none() {
    let mut registers = registers();
    registers.set(RXCSUM, rxcsum::TUOFL);
    let mut frame = udp4((1, 2), &[3; 40]);
    assert_eq!(raw(&frame, &registers)[1] & 0x70, 0x30);
    frame[40..42].fill(0);
    assert_eq!(raw(&frame, &registers)[1] & 0x70, 0);
}

#[test]
fn checksums_over_ipv6_are_not_reported_when_that_is_off() {
    let mut registers = registers();
    registers.set(RXCSUM, rxcsum::TUOFL | rxcsum::IPOFL);
    let frame = tcp6(&[3; 40]);
    assert_eq!(raw(&frame, &registers)[1] & 0x70, 0x20);
    registers.set(RFCTL, rfctl::IPV6_XSUM_DIS);
    assert_eq!(raw(&frame, &registers)[1] & 0x70, 0);
}

#[test]
fn without_a_hash_there_are_a_checksum_and_the_identification() {
    let mut registers = registers();
    let mut frame = udp4((1, 2), &[3; 40]);
    frame[18..20].copy_from_slice(&[0x12, 0x34]);
    fix_ipv4(&mut frame);
    registers.set(RXCSUM, 14);
    let [lo, _] = raw(&frame, &registers);
    assert_eq!(lo >> 32 & 0xffff, 0x1234);
    let sum = crate::nic::checksum::fold(crate::nic::checksum::sum(&frame[14..]));
    assert_eq!(lo >> 48, u64::from(sum));
}

#[test]
fn a_fragment_of_udp_has_the_checksum_of_its_payload() {
    let mut registers = registers();
    registers.set(RXCSUM, rxcsum::IPPCSE | rxcsum::TUOFL);
    let mut frame = udp4((1, 2), &[3; 40]);
    frame[20] = 0x20;
    fix_ipv4(&mut frame);
    let [lo, hi] = raw(&frame, &registers);
    let sum = crate::nic::checksum::fold(crate::nic::checksum::sum(&frame[34..]));
    assert_eq!((lo >> 48, hi & 0x430), (u64::from(sum), 0x410));
    frame[21] = 1;
    fix_ipv4(&mut frame);
    assert_eq!(raw(&frame, &registers)[1] & 0x430, 0x010);
}
