// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where packets are split, and how they lie in their buffers.

use i82576::regs::{self, CTRL, RFCTL, ctrl, psrtype, rfctl, srrctl, srrctl::DescType};

use super::*;
use crate::nic::receive::{
    packet::Packet,
    split::{Layout, header_len, layout},
};

const QUEUE: u16 = 5;

fn splitting(kinds: u32) -> Registers {
    let mut registers = registers();
    registers.set(regs::psrtype(QUEUE), kinds);
    registers
}

fn len(frame: &[u8], registers: &Registers) -> Option<u16> {
    header_len(&Packet::parse(frame, registers), QUEUE, registers)
}

#[test]
fn a_packet_is_split_behind_its_headers_if_its_type_is() {
    let frames = [
        (tcp4(&[0; 9]), psrtype::IPV4_TCP, 54),
        (udp4((1, 2), &[0; 9]), psrtype::IPV4_UDP, 42),
        (tcp6(&[0; 9]), psrtype::IPV6_TCP, 74),
        (ip6(58, &[0; 20]), psrtype::IPV6, 54),
    ];
    for (frame, kind, wanted) in frames {
        assert_eq!(len(&frame, &splitting(kind)), Some(wanted));
        assert_eq!(len(&frame, &splitting(!kind)), None);
    }
    assert_eq!(len(&frame(STATION, 0x0806, &[]), &splitting(!0)), None);
}

#[test]
fn a_tag_is_a_header_unless_it_is_taken_out() {
    let frame = tagged(STATION, 5, 0x0800, &tcp4(&[0; 9])[14..]);
    let mut registers = splitting(psrtype::TCP);
    assert_eq!(len(&frame, &registers), Some(58));
    registers.set(CTRL, ctrl::VME);
    assert_eq!(len(&frame, &registers), Some(54));
}

#[test]
fn fragments_are_split_behind_ip_unless_that_is_off() {
    let mut frame = tcp4(&[1; 40]);
    frame[20] = 0x20;
    fix_ipv4(&mut frame);
    let mut registers = splitting(psrtype::IPV4);
    assert_eq!(len(&frame, &registers), Some(34));
    registers.set(RFCTL, rfctl::IPFRSP_DIS);
    assert_eq!(len(&frame, &registers), None);
}

#[test]
fn nfs_is_not_split_unless_it_is_as_any_other() {
    let frame = udp4((999, 2049), &[0; 20]);
    let mut registers = splitting(!0);
    assert_eq!(len(&frame, &registers), None);
    registers.set(RFCTL, rfctl::NFSW_DIS | rfctl::NFSR_DIS);
    assert_eq!(len(&frame, &registers), Some(42));
}

#[test]
fn a_damaged_tcp_header_is_not_split() {
    let mut frame = tcp4(&[1; 40]);
    frame[46] = 0x40;
    assert_eq!(len(&frame, &splitting(!0)), None);
    frame[46] = 0xf0;
    assert_eq!(len(&frame, &splitting(!0)), Some(94));
    assert_eq!(len(&tcp4(&[1; 40])[..80], &splitting(!0)), None);
}

fn laid(header: Option<u16>, packet: usize, kind: DescType) -> (usize, bool, bool, u16) {
    let Layout {
        header,
        sph,
        hbo,
        hdr_len,
    } = layout(header, packet, srrctl::encode(4, 2, kind, true));
    (header, sph, hbo, hdr_len)
}

#[test]
fn a_split_packet_has_its_headers_in_the_header_buffer_or_is_whole() {
    use DescType::HeaderSplit;
    assert_eq!(laid(Some(54), 60, HeaderSplit), (54, true, false, 54));
    assert_eq!(laid(Some(128), 1500, HeaderSplit), (128, true, false, 128));
    assert_eq!(laid(Some(129), 1500, HeaderSplit), (0, true, true, 129));
    assert_eq!(laid(None, 60, HeaderSplit), (0, false, false, 128));
}

#[test]
fn every_packet_begins_in_the_header_buffer_when_that_is_always_used() {
    use DescType::HeaderSplitAlways;
    assert_eq!(
        laid(Some(54), 128, HeaderSplitAlways),
        (128, false, false, 128)
    );
    assert_eq!(laid(None, 60, HeaderSplitAlways), (60, false, false, 60));
    assert_eq!(
        laid(Some(54), 129, HeaderSplitAlways),
        (54, true, false, 54)
    );
    assert_eq!(
        laid(Some(129), 1500, HeaderSplitAlways),
        (128, true, true, 129)
    );
    assert_eq!(
        laid(None, 1500, HeaderSplitAlways),
        (128, false, false, 128)
    );
}

#[test]
fn without_header_split_there_is_one_buffer() {
    assert_eq!(
        laid(Some(54), 1500, DescType::OneBuffer),
        (0, false, false, 0)
    );
}
