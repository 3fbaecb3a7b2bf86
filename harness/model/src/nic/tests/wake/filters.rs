// SPDX-License-Identifier: MIT OR Apache-2.0

//! Packets that wake by what is in them.

use i82576::{
    limits::FLEXIBLE_FILTERS,
    regs::{IPAV, fhft_length, fhft_mask, fhft_value, ip4at, ip6at, ipav, wuc, wufc},
};

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

const OURS: [u8; 4] = [192, 0, 2, 1];
const ANOTHER: [u8; 4] = [192, 0, 2, 2];
const OURS_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const BROADCAST: [u8; 6] = [0xff; 6];
const MULTICAST: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
/// All filters by the destination of Ethernet.
const PLAIN: u32 = wufc::EX | wufc::MC | wufc::BC;

/// A port that sleeps lightly, and receives all groups.
fn port() -> Port {
    let mut port = Port::new();
    port.write(regs::WUC, wuc::PME_EN);
    let control = port.read(regs::RCTL);
    port.write(regs::RCTL, control | rctl::MPE);
    port
}

fn set_address(port: &mut Port, n: u16, address: [u8; 4]) {
    port.write(ip4at(n), u32::from_le_bytes(address));
}

/// Bytes as registers have them.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let word = |chunk: &[u8]| u32::from_le_bytes(chunk.try_into().unwrap());
    bytes.chunks(4).map(word)
}

/// A frame with a type and what it says, padded.
fn typed(to: [u8; 6], ether_type: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &[2; 6], &ether_type, payload].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

fn arp(operation: u8, target: [u8; 4]) -> Vec<u8> {
    let from = [2, 2, 2, 2, 2, 2, 192, 0, 2, 9];
    [
        &[0, 1, 8, 0, 6, 4, 0, operation][..],
        &from,
        &[0; 6],
        &target,
    ]
    .concat()
}

fn ipv4(destination: [u8; 4]) -> Vec<u8> {
    let header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 9];
    [&header[..], &destination].concat()
}

fn ipv6(destination: [u8; 16]) -> Vec<u8> {
    [&[0x60, 0, 0, 0, 0, 0, 59, 64][..], &[9; 16], &destination].concat()
}

/// The same behind a tag, and behind a SNAP header.
fn wrapped(frame: &[u8]) -> [Vec<u8>; 3] {
    let (addresses, rest) = frame.split_at(12);
    let snap = [&[0, 60, 0xaa, 0xaa, 3, 0, 0, 0][..], rest].concat();
    let tag = [0x81, 0, 0, 0];
    [
        [addresses, &tag, rest].concat(),
        [addresses, &snap].concat(),
        [addresses, &tag, &snap].concat(),
    ]
}

/// Which of these filters wake by a frame, if they alone are on.
fn woken_by(port: &mut Port, filters: u32, frame: &[u8]) -> Option<u32> {
    port.write(regs::WUFC, filters);
    wakes(port, frame)
}

#[test]
fn an_arp_request_for_a_valid_address_wakes_and_no_other_arp() {
    let port = &mut port();
    set_address(port, 2, OURS);
    let request = typed(BROADCAST, [8, 6], &arp(1, OURS));
    let woken = |port: &mut Port, frame: &[u8]| woken_by(port, wufc::ARP, frame);
    assert_eq!(woken(port, &request), None, "the address is not valid");
    port.write(IPAV, !ipav::v4(2));
    assert_eq!(woken(port, &request), None, "the others are, and are 0");
    port.write(IPAV, ipav::v4(2));
    assert_eq!(woken(port, &request), Some(wufc::ARP));
    for wrapped in wrapped(&request) {
        assert_eq!(woken(port, &wrapped), Some(wufc::ARP), "{wrapped:x?}");
    }
    for (what, frame) in [
        ("a reply", typed(BROADCAST, [8, 6], &arp(2, OURS))),
        (
            "for another one",
            typed(BROADCAST, [8, 6], &arp(1, ANOTHER)),
        ),
        ("no ARP", typed(BROADCAST, [8, 7], &arp(1, OURS))),
        ("to the port", typed(MAC, [8, 6], &arp(1, OURS))),
        ("to a group", typed(MULTICAST, [8, 6], &arp(1, OURS))),
        ("cut short", request[..41].to_vec()),
    ] {
        assert_eq!(woken(port, &frame), None, "{what}");
    }
    port.write(IPAV, 0xf);
    set_address(port, 0, ANOTHER);
    let another = typed(BROADCAST, [8, 6], &arp(1, ANOTHER));
    for request in [&request, &another] {
        let both = wufc::ARP | wufc::BC;
        assert_eq!(woken_by(port, PLAIN | wufc::ARP, request), Some(both));
    }
}

#[test]
fn an_ipv4_packet_to_the_port_and_to_a_valid_address_wakes() {
    let port = &mut port();
    set_address(port, 3, OURS);
    let packet = typed(MAC, [8, 0], &ipv4(OURS));
    let woken = |port: &mut Port, frame: &[u8]| woken_by(port, wufc::IPV4, frame);
    assert_eq!(woken(port, &packet), None, "the address is not valid");
    port.write(IPAV, ipav::v4(3));
    assert_eq!(woken(port, &packet), Some(wufc::IPV4));
    for wrapped in wrapped(&packet) {
        assert_eq!(woken(port, &wrapped), Some(wufc::IPV4), "{wrapped:x?}");
    }
    let mut version = ipv4(OURS);
    version[0] = 0x65;
    for (what, frame) in [
        ("for another one", typed(MAC, [8, 0], &ipv4(ANOTHER))),
        ("to a group", typed(MULTICAST, [8, 0], &ipv4(OURS))),
        ("to all", typed(BROADCAST, [8, 0], &ipv4(OURS))),
        ("to another port", typed([2; 6], [8, 0], &ipv4(OURS))),
        ("another version", typed(MAC, [8, 0], &version)),
        ("another type", typed(MAC, [0x86, 0xdd], &ipv4(OURS))),
        ("cut short", packet[..33].to_vec()),
        ("ARP", typed(BROADCAST, [8, 6], &arp(1, OURS))),
    ] {
        assert_eq!(woken(port, &frame), None, "{what}");
    }
    let all = PLAIN | wufc::ARP | wufc::IPV4 | wufc::IPV6;
    assert_eq!(woken_by(port, all, &packet), Some(wufc::EX | wufc::IPV4));
}

#[test]
fn an_ipv6_packet_to_the_port_and_to_the_valid_address_wakes() {
    let port = &mut port();
    for (n, word) in (0..4).zip(words(&OURS_V6)) {
        port.write(ip6at(n), word);
    }
    let packet = typed(MAC, [0x86, 0xdd], &ipv6(OURS_V6));
    let woken = |port: &mut Port, frame: &[u8]| woken_by(port, wufc::IPV6, frame);
    port.write(IPAV, 0xf);
    assert_eq!(woken(port, &packet), None, "the address is not valid");
    port.write(IPAV, ipav::V6);
    assert_eq!(woken(port, &packet), Some(wufc::IPV6));
    for wrapped in wrapped(&packet) {
        assert_eq!(woken(port, &wrapped), Some(wufc::IPV6), "{wrapped:x?}");
    }
    let mut another = OURS_V6;
    another[15] = 2;
    let mut version = ipv6(OURS_V6);
    version[0] = 0x40;
    for (what, frame) in [
        ("for another one", typed(MAC, [0x86, 0xdd], &ipv6(another))),
        ("to a group", typed(MULTICAST, [0x86, 0xdd], &ipv6(OURS_V6))),
        ("another version", typed(MAC, [0x86, 0xdd], &version)),
        ("another type", typed(MAC, [8, 0], &ipv6(OURS_V6))),
        ("cut short", packet[..53].to_vec()),
    ] {
        assert_eq!(woken(port, &frame), None, "{what}");
    }
}

/// Has a flexible filter compare some bytes of a frame, and look at so many.
fn set_flexible(port: &mut Port, filter: u16, frame: &[u8], compared: &[usize], length: u32) {
    let mut bytes = [0; 128];
    bytes[..frame.len().min(128)].copy_from_slice(&frame[..frame.len().min(128)]);
    for (n, word) in (0..32).zip(words(&bytes)) {
        port.write(fhft_value(filter, n), word);
    }
    for row in 0..16 {
        let of_row = compared.iter().filter(|at| **at / 8 == usize::from(row));
        port.write(fhft_mask(filter, row), of_row.map(|at| 1 << (at % 8)).sum());
    }
    port.write(fhft_length(filter), length);
}

#[test]
fn each_flexible_filter_compares_the_bytes_that_its_mask_names() {
    let port = &mut port();
    let pattern = typed(MAC, [0x81, 0x37], &(0..150).collect::<Vec<_>>());
    let compared = [12, 13, 17, 63, 64, 127];
    for filter in 0..FLEXIBLE_FILTERS {
        let cause = wufc::flx(filter);
        set_flexible(port, filter, &pattern, &compared, 128);
        assert_eq!(woken_by(port, cause, &pattern), Some(cause));
        for at in 12..pattern.len() {
            let mut other = pattern.clone();
            other[at] ^= 0x10;
            let expected = (!compared.contains(&at)).then_some(cause);
            assert_eq!(woken_by(port, cause, &other), expected, "{filter}: {at}");
        }
        let elsewhere = [&[2; 6], &pattern[6..]].concat();
        assert_eq!(woken_by(port, cause, &elsewhere), None, "to another port");
        for other in (0..FLEXIBLE_FILTERS).filter(|other| *other != filter) {
            assert_eq!(woken_by(port, wufc::flx(other), &pattern), None);
        }
        // What looks at nothing passes nothing.
        port.write(fhft_length(filter), 0);
    }
    assert_eq!(woken_by(port, 0x3f << 16, &pattern), None);
}

#[test]
fn a_flexible_filter_looks_at_as_many_bytes_as_it_says_and_wants_them_to_be_there() {
    let port = &mut port();
    let pattern = typed(MULTICAST, [8, 0x42], &[7; 120]);
    let woken = |port: &mut Port, frame: &[u8]| woken_by(port, wufc::flx(5), frame);
    set_flexible(port, 5, &pattern, &[14, 70, 71, 72], 72);
    assert!(woken(port, &pattern).is_some());
    let mut behind = pattern.clone();
    behind[72] = 1;
    assert!(
        woken(port, &behind).is_some(),
        "the mask goes on behind its length"
    );
    behind[71] = 1;
    assert!(woken(port, &behind).is_none());
    assert!(woken(port, &pattern[..72]).is_some());
    assert!(
        woken(port, &pattern[..71]).is_none(),
        "the frame is shorter"
    );
    for (length, passes) in [(0, false), (1, false), (2, true), (128, true), (129, false)] {
        port.write(fhft_length(5), length);
        assert_eq!(woken(port, &pattern).is_some(), passes, "{length}");
    }
}

#[test]
fn filters_outlive_a_reset() {
    let port = &mut port();
    set_address(port, 1, OURS);
    port.write(IPAV, ipav::v4(1));
    let pattern = typed(MAC, [8, 0], &ipv4(OURS));
    set_flexible(port, 4, &pattern, &[12, 33], 40);
    port.write(regs::WUFC, wufc::IPV4 | wufc::flx(4));
    port.write(regs::CTRL, ctrl::RST);
    assert_eq!(port.read(ip4at(1)), u32::from_le_bytes(OURS));
    assert_eq!(port.read(IPAV), ipav::v4(1));
    assert_eq!(port.read(fhft_mask(4, 1)), 1 << 4);
    assert_eq!(port.read(fhft_value(4, 3)), 0x0045_0008);
    assert_eq!(port.read(fhft_length(4)), 40);
}

proptest! {
    #[test]
    fn no_frame_and_no_filter_does_harm(
        frame in vec(any::<u8>(), 0..200),
        network in prop::option::of(select(&[[8, 6], [8, 0], [0x86, 0xdd], [0, 60]])),
        lengths in vec(any::<u32>(), 6),
        filters: u32,
    ) {
        let port = &mut port();
        let control = port.read(regs::RCTL);
        port.write(regs::RCTL, control | rctl::UPE);
        port.write(IPAV, u32::MAX);
        for (filter, length) in (0..).zip(lengths) {
            port.write(fhft_length(filter), length);
        }
        let mut frame = frame;
        if let (Some(network), Some(place)) = (network, frame.get_mut(12..14)) {
            place.copy_from_slice(&network);
        }
        let causes = woken_by(port, filters, &frame).unwrap_or(0);
        prop_assert_eq!(causes & !filters, 0);
    }
}
