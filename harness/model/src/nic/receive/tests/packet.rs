// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is seen in frames.

use i82576::{
    five_tuple::Protocol,
    regs::{CTRL, RFCTL, ctrl, rfctl},
};

use super::*;
use crate::nic::receive::packet::{Addresses, Packet};

fn parse(frame: &[u8]) -> Packet {
    Packet::parse(frame, &registers())
}

fn parse_with(frame: &[u8], rfctl: u32) -> Packet {
    let mut registers = registers();
    registers.set(RFCTL, rfctl);
    Packet::parse(frame, &registers)
}

fn checksum(packet: &Packet) -> Option<bool> {
    packet
        .transport
        .as_ref()
        .and_then(|transport| transport.checksum)
}

#[test]
fn a_padded_tcp_packet_has_right_checksums_and_its_headers_end_where_they_do() {
    let packet = parse(&tcp4(&[]));
    assert_eq!(packet.packet_type(), 0x11);
    let ip = packet.ip.as_ref().unwrap();
    assert_eq!(
        (ip.header_end, ip.end, ip.checksum),
        (34, Some(54), Some(true))
    );
    let tcp = packet.transport.as_ref().unwrap();
    assert_eq!((tcp.source_port, tcp.destination_port), (1000, 2000));
    assert_eq!((tcp.header_end, tcp.checksum), (54, Some(true)));
    let packet = parse(&tcp6(&[1, 2, 3]));
    assert_eq!(
        (packet.packet_type(), checksum(&packet)),
        (0x14, Some(true))
    );
}

#[test]
fn a_byte_that_changes_makes_a_checksum_wrong() {
    let mut frame = tcp4(&[5; 100]);
    frame[60] ^= 1;
    let packet = parse(&frame);
    assert_eq!(checksum(&packet), Some(false));
    assert_eq!(packet.ip.unwrap().checksum, Some(true));
    let mut frame = tcp4(&[5; 100]);
    frame[22] ^= 1;
    let packet = parse(&frame);
    assert_eq!(
        checksum(&packet),
        Some(true),
        "the time to live is not in it"
    );
    assert_eq!(packet.ip.unwrap().checksum, Some(false));
}

#[test]
fn udp_without_a_checksum_is_not_checked_in_ipv4_and_wrong_in_ipv6() {
    let mut frame = udp4((1, 2), &[7; 33]);
    assert_eq!(checksum(&parse(&frame)), Some(true));
    frame[40..42].fill(0);
    assert_eq!(checksum(&parse(&frame)), None);
    let udp = [0, 1, 0, 2, 0, 8, 0, 0];
    assert_eq!(checksum(&parse(&ip6(17, &udp))), Some(false));
}

#[test]
fn a_udp_length_that_is_not_that_of_ip_is_not_checked() {
    let mut frame = udp4((1, 2), &[7; 33]);
    frame[39] -= 1;
    assert_eq!(checksum(&parse(&frame)), None);
}

#[test]
fn a_tag_is_parsed_and_taken_out() {
    let mut registers = registers();
    let plain = tcp4(&[1; 20]);
    let frame = tagged(STATION, 0x123, 0x0800, &plain[14..]);
    let packet = Packet::parse(&frame, &registers);
    assert_eq!(
        (packet.vlan, packet.inner_type),
        (Some(0x123), Some(0x0800))
    );
    assert_eq!(
        (packet.packet_type(), checksum(&packet)),
        (0x11, Some(true))
    );
    assert_eq!(
        packet.strip(&frame, &registers),
        (frame.as_slice().into(), None)
    );
    registers.set(CTRL, ctrl::VME);
    let (stripped, tag) = packet.strip(&frame, &registers);
    assert_eq!((&stripped[..], tag), (&plain[..], Some(0x123)));
}

#[test]
fn a_snap_header_is_part_of_the_ethernet_header() {
    let plain = tcp4(&[1; 20]);
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let packet = parse(&frame(STATION, 68, &[&snap, &plain[14..]].concat()));
    assert_eq!(packet.transport.unwrap().header_end, 62);
}

#[test]
fn options_and_fragments_are_recognised() {
    let mut frame = tcp4(&[1; 40]);
    frame.splice(34..34, [1; 8]);
    frame[14] = 0x47;
    frame[17] += 8;
    fix_ipv4(&mut frame);
    let packet = parse(&frame);
    assert_eq!(packet.packet_type(), 0x13);
    assert_eq!(
        (checksum(&packet), packet.transport.unwrap().header_end),
        (Some(true), 62)
    );
    let mut frame = tcp4(&[1; 40]);
    frame[20] = 0x20;
    fix_ipv4(&mut frame);
    let packet = parse(&frame);
    assert_eq!((packet.packet_type(), packet.transport), (0x01, None));
    let ip = packet.ip.unwrap();
    assert_eq!(
        (ip.fragment, ip.later_fragment, ip.checksum),
        (true, false, Some(true))
    );
}

#[test]
fn a_packet_that_ends_beyond_the_frame_has_no_transport_header() {
    let frame = tcp4(&[1; 100]);
    let packet = parse(&frame[..100]);
    assert_eq!((packet.packet_type(), packet.transport), (0x01, None));
    let mut frame = tcp4(&[1; 100]);
    frame[46] = 0x40;
    assert_eq!(parse(&frame).transport, None, "a header of 16 bytes");
}

#[test]
fn extension_headers_are_parsed_unless_that_is_off() {
    let hop = [vec![60, 0, 1, 4, 0, 0, 0, 0], vec![6, 0, 1, 4, 0, 0, 0, 0]].concat();
    let frame = ip6(0, &[hop, segment6(&[9; 10])].concat());
    let packet = parse(&frame);
    assert_eq!(
        (packet.packet_type(), checksum(&packet)),
        (0x1c, Some(true))
    );
    assert_eq!(packet.transport.unwrap().header_end, 14 + 40 + 16 + 20);
    let packet = parse_with(&frame, rfctl::IPV6_EX_DIS);
    assert_eq!((packet.packet_type(), packet.transport), (0x04, None));
    assert_eq!(parse_with(&frame, rfctl::IPV6_DIS).packet_type(), 0);
}

#[test]
fn an_ipv6_fragment_ends_before_its_fragment_header() {
    let fragment = [6, 0, 0, 1, 0, 0, 0, 9];
    let packet = parse(&ip6(44, &[&fragment[..], &segment6(&[])].concat()));
    let ip = packet.ip.as_ref().unwrap();
    assert_eq!((ip.header_end, ip.fragment), (54, true));
    assert_eq!((packet.packet_type(), packet.transport), (0x0c, None));
}

#[test]
fn home_addresses_are_found_and_no_checksum_is_claimed() {
    let mut routing = vec![60, 2, 2, 1, 0, 0, 0, 0];
    routing.extend([8; 16]);
    let mut options = vec![6, 2, 1, 2, 0, 0, 0xc9, 16];
    options.extend([9; 16]);
    let packet = parse(&ip6(43, &[routing, options, segment6(&[])].concat()));
    assert_eq!((packet.packet_type(), checksum(&packet)), (0x1c, None));
    let Addresses::V6 {
        home_source,
        home_destination,
        ..
    } = packet.ip.unwrap().addresses
    else {
        panic!("it is IPv6");
    };
    assert_eq!(
        (home_source, home_destination),
        (Some([9; 16]), Some([8; 16]))
    );
}

#[test]
fn ipv6_in_ipv4_is_a_tunnel_with_the_inner_transport_header() {
    let inner = &tcp6(&[1, 2, 3])[14..];
    let outer = etherparse::Ipv4Header::new(
        inner.len() as u16,
        64,
        etherparse::IpNumber(41),
        [10, 0, 0, 2],
        [10, 0, 0, 1],
    );
    let mut header = outer.unwrap();
    header.header_checksum = header.calc_header_checksum();
    let packet = parse(&frame(
        STATION,
        0x0800,
        &[&header.to_bytes()[..], inner].concat(),
    ));
    assert_eq!(
        (packet.packet_type(), checksum(&packet)),
        (0x15, Some(true))
    );
    assert_eq!(packet.transport.unwrap().header_end, 94);
}

#[test]
fn nfs_is_known_by_its_port_unless_that_is_off() {
    let (write, read) = (udp4((999, 2049), &[0; 20]), udp4((2049, 999), &[0; 20]));
    for (frame, bit) in [(write, rfctl::NFSW_DIS), (read, rfctl::NFSR_DIS)] {
        assert_eq!(parse(&frame).packet_type(), 0xa1);
        assert_eq!(parse_with(&frame, bit).packet_type(), 0x21);
    }
}

#[test]
fn the_crc_of_sctp_is_checked() {
    // The common header, and no chunks.
    let mut segment = [0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0];
    for right in [false, true] {
        let packet = parse(&ip6(132, &segment));
        let sctp = packet.transport.as_ref().unwrap();
        assert_eq!(
            (sctp.protocol, sctp.checksum),
            (Protocol::Sctp, Some(right))
        );
        assert_eq!(packet.packet_type(), 0x44);
        segment[8..].copy_from_slice(&SCTP_CRC.to_le_bytes());
    }
}

/// Of these twelve bytes, by an implementation in Python.
const SCTP_CRC: u32 = 0x19b3_2809;
