// SPDX-License-Identifier: MIT OR Apache-2.0

//! Whatever comes, and however registers are set, nothing panics.

use i82576::{
    limits::FIVE_TUPLE_FILTERS,
    regs::{self, CTRL, FCT, MRQC, RFCTL, RXCSUM},
    rx::WriteBack,
};
use proptest::prelude::*;

use super::*;
use crate::nic::receive::{
    admit::{admits, pause},
    packet::Packet,
    queue::Piece,
    split::{header_len, layout},
    steer::steer,
    write_back::{Received, write_back},
};

fn receive(frame: &[u8], settings: [u32; 8]) {
    let mut registers = registers();
    let [ctrl, rctl, rfctl, rxcsum, mrqc, psrtype, srrctl, filter] = settings;
    for (reg, value) in [
        (CTRL, ctrl),
        (RCTL, rctl),
        (RFCTL, rfctl),
        (RXCSUM, rxcsum),
        (MRQC, mrqc),
        (FCT, 0x8808),
        (regs::psrtype(0), psrtype),
        (regs::etqf(0), filter),
    ] {
        registers.set(reg, value);
    }
    for n in 0..FIVE_TUPLE_FILTERS {
        registers.set(regs::ftqf(n), filter.rotate_left(n.into()));
        registers.set(regs::imir(n), filter.rotate_right(n.into()));
    }
    let packet = Packet::parse(frame, &registers);
    let _ = admits(&packet, frame, &registers);
    let _ = pause(&packet, frame, &registers);
    let destination = steer(&packet, &registers);
    assert!(destination.queue < 16);
    let (bytes, vlan) = packet.strip(frame, &registers);
    let header = header_len(&packet, 0, &registers);
    assert!(header.is_none_or(|len| usize::from(len) <= bytes.len()));
    let layout = layout(header, bytes.len(), srrctl);
    assert!(layout.header <= bytes.len());
    let received = Received {
        packet: &packet,
        bytes: &bytes,
        destination: &destination,
        layout,
        vlan,
        timestamp: false,
        damaged: false,
    };
    let piece = Piece {
        len: (bytes.len() - layout.header) as u16,
        last: true,
    };
    let [lo, hi] = write_back(&received, piece, &registers);
    assert!(WriteBack::from_raw(lo, hi).done());
}

proptest! {
    #[test]
    fn any_bytes_are_received(
        frame in prop::collection::vec(any::<u8>(), 0..200), settings: [u32; 8],
    ) {
        receive(&frame, settings);
    }

    #[test]
    fn frames_that_are_damaged_are_received(
        which in 0usize..5, changes in prop::collection::vec((0usize..120, any::<u8>()), 0..6),
        len in 0usize..200, settings: [u32; 8],
    ) {
        let mut frame = [
            tcp4(&[1; 60]),
            tcp6(&[1; 60]),
            udp4((2049, 1), &[1; 60]),
            ip6(0, &[60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 44, 0, 2, 0, 0, 0, 0, 0]),
            tagged(STATION, 1, 0x0800, &tcp4(&[1; 60])[14..]),
        ][which].clone();
        for (at, value) in changes {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        frame.truncate(len);
        receive(&frame, settings);
    }
}
