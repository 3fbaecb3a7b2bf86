// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames, made by `etherparse`, and registers for the tests of each part.

mod admit;
mod any_bytes;
mod hash;
mod packet;
mod split;
mod steer;
mod write_back;

use etherparse::{Ethernet2Header, PacketBuilder, PacketBuilderStep, SingleVlanHeader, VlanId};
use i82576::regs::{RCTL, VET, rah, ral, rctl};

use crate::nic::registers::Registers;

pub(super) const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(super) const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// As after a reset, with the receiver on.
pub(super) fn registers() -> Registers {
    let mut registers = Registers::default();
    let (low, high) = rah::encode(STATION);
    registers.set(ral(0), low);
    registers.set(rah(0), high);
    registers.set(VET, 0x8100_8100);
    registers.set(RCTL, rctl::EN);
    registers
}

pub(super) fn ethernet() -> PacketBuilderStep<Ethernet2Header> {
    PacketBuilder::ethernet2(PEER, STATION)
}

/// A frame of anything, padded.
pub(super) fn frame(destination: [u8; 6], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let header = Ethernet2Header {
        source: PEER,
        destination,
        ether_type: ether_type.into(),
    };
    padded([&header.to_bytes()[..], payload].concat())
}

/// A frame with a tag.
pub(super) fn tagged(destination: [u8; 6], vlan: u16, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let tag = SingleVlanHeader {
        vlan_id: VlanId::try_new(vlan).unwrap(),
        ether_type: ether_type.into(),
        ..SingleVlanHeader::default()
    };
    frame(
        destination,
        0x8100,
        &[&tag.to_bytes()[..], payload].concat(),
    )
}

pub(super) fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(60), 0);
    frame
}

pub(super) fn tcp4(payload: &[u8]) -> Vec<u8> {
    let builder = ethernet()
        .ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
        .tcp(1000, 2000, 1, 512);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    padded(frame)
}

pub(super) fn udp4(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let builder = ethernet()
        .ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
        .udp(ports.0, ports.1);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    padded(frame)
}

pub(super) fn tcp6(payload: &[u8]) -> Vec<u8> {
    let builder = ethernet()
        .ipv6([2; 16], [1; 16], 64)
        .tcp(1000, 2000, 1, 512);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// An IPv6 frame whose header is followed by these bytes.
pub(super) fn ip6(next: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame(STATION, 0x86dd, &[]);
    frame.truncate(14);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((bytes.len() as u16).to_be_bytes());
    frame.extend([next, 64]);
    frame.extend([2; 16]);
    frame.extend([1; 16]);
    frame.extend(bytes);
    padded(frame)
}

/// What follows the IP header of a TCP frame over IPv6.
pub(super) fn segment6(payload: &[u8]) -> Vec<u8> {
    tcp6(payload)[54..].to_vec()
}

/// Makes the IPv4 header of an untagged frame consistent after a change.
pub(super) fn fix_ipv4(frame: &mut [u8]) {
    let end = 14 + usize::from(frame[14] & 0xf) * 4;
    frame[24..26].fill(0);
    let sum = crate::nic::checksum::fold(crate::nic::checksum::sum(&frame[14..end]));
    frame[24..26].copy_from_slice(&(!sum).to_be_bytes());
}
