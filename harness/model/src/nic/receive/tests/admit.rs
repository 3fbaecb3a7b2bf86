// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which frames are received.

use i82576::{
    filter::{Table, multicast_bit},
    regs::{CTRL, FCAH, FCAL, FCT, RFCTL, RLEC, RLPML, ROC, RUC, ctrl, fc, mta, rfctl, vfta},
};

use super::*;
use crate::nic::receive::{
    admit::{Refusal, admits, pause},
    packet::Packet,
};

const MULTICAST: [u8; 6] = [1, 0, 0x5e, 0, 0x12, 0x34];
const FLOW_CONTROL: [u8; 6] = [1, 0x80, 0xc2, 0, 0, 1];

fn verdict(frame: &[u8], registers: &Registers) -> Result<(), Refusal> {
    admits(&Packet::parse(frame, registers), frame, registers)
}

fn to(destination: [u8; 6], rctl: u32) -> Result<(), Refusal> {
    let mut registers = registers();
    registers.modify(RCTL, 0, rctl);
    verdict(&frame(destination, 0x0806, &[]), &registers)
}

#[test]
fn without_promiscuous_modes_only_the_own_address_is_received() {
    assert_eq!(to(STATION, 0), Ok(()));
    for other in [PEER, MULTICAST, [0xff; 6]] {
        assert_eq!(to(other, 0), Err(Refusal::Address));
    }
    let mut registers = registers();
    registers.set(RCTL, 0);
    assert_eq!(
        verdict(&frame(STATION, 0, &[]), &registers),
        Err(Refusal::Disabled)
    );
}

#[test]
fn each_promiscuous_mode_is_for_its_kind_of_addresses() {
    for (destination, bit) in [
        (PEER, rctl::UPE),
        (MULTICAST, rctl::MPE),
        ([0xff; 6], rctl::BAM),
    ] {
        assert_eq!(to(destination, bit), Ok(()));
        let others = (rctl::UPE | rctl::MPE | rctl::BAM) & !bit;
        assert_eq!(to(destination, others), Err(Refusal::Address));
    }
}

#[test]
fn every_valid_receive_address_counts() {
    for n in [1, 15, 16, 23] {
        let mut registers = registers();
        let (low, high) = rah::encode(PEER);
        registers.set(ral(n), low);
        registers.set(rah(n), high & !rah::AV);
        let frame = frame(PEER, 0x0806, &[]);
        assert_eq!(verdict(&frame, &registers), Err(Refusal::Address));
        registers.set(rah(n), high);
        assert_eq!(verdict(&frame, &registers), Ok(()), "entry {n}");
    }
}

#[test]
fn the_multicast_table_is_indexed_as_the_driver_fills_it() {
    let mut registers = registers();
    let mut table = Table::EMPTY;
    table.set(multicast_bit(MULTICAST), true);
    for (n, value) in (0..).zip(table.registers()) {
        registers.set(mta(n), value);
    }
    let frame = frame(MULTICAST, 0x0806, &[]);
    assert_eq!(verdict(&frame, &registers), Ok(()));
    registers.modify(RCTL, 0, rctl::MO_MASK);
    assert_eq!(verdict(&frame, &registers), Err(Refusal::Address));
    // RCTL.MO 3: bits 43 to 32 of the address, 0x412 here.
    registers.set(mta(0x412 / 32), 1 << (0x412 % 32));
    assert_eq!(verdict(&frame, &registers), Ok(()));
}

#[test]
fn vlans_are_filtered_by_their_table_when_that_is_on() {
    let mut registers = registers();
    let frame = tagged(STATION, 100, 0x0806, &[]);
    assert_eq!(verdict(&frame, &registers), Ok(()));
    registers.modify(RCTL, 0, rctl::VFE);
    assert_eq!(verdict(&frame, &registers), Err(Refusal::Vlan));
    registers.set(vfta(3), 1 << 4);
    assert_eq!(verdict(&frame, &registers), Ok(()));
    let untagged = super::frame(STATION, 0x0806, &[]);
    assert_eq!(verdict(&untagged, &registers), Ok(()));
}

#[test]
fn lengths_are_those_of_ethernet_or_of_rlpml() {
    let mut registers = registers();
    let of = |len: usize| frame(STATION, 0x0806, &vec![0; len - 14]);
    assert_eq!(verdict(&of(1514), &registers), Ok(()));
    assert_eq!(verdict(&of(1515), &registers), Err(Refusal::TooLong));
    let with_tag = tagged(STATION, 1, 0x0806, &[0; 1500]);
    assert_eq!(verdict(&with_tag, &registers), Ok(()));
    registers.set(RLPML, 9000);
    registers.modify(RCTL, 0, rctl::LPE);
    assert_eq!(verdict(&of(8996), &registers), Ok(()));
    assert_eq!(verdict(&of(8997), &registers), Err(Refusal::TooLong));
    registers.set(RLPML, u32::MAX);
    assert_eq!(verdict(&of(9724), &registers), Ok(()));
    assert_eq!(verdict(&of(9725), &registers), Err(Refusal::TooLong));
    assert_eq!(verdict(&of(60)[..59], &registers), Err(Refusal::TooShort));
    assert_eq!(verdict(&of(60)[..20], &registers), Err(Refusal::Runt));
    assert_eq!(Refusal::TooShort.counters(), [RUC, RLEC]);
    assert_eq!(Refusal::TooLong.counters(), [ROC, RLEC]);
    registers.modify(RCTL, 0, rctl::SBP);
    assert_eq!(verdict(&of(60)[..59], &registers), Ok(()));
}

#[test]
fn a_frame_shorter_than_its_length_field_is_dropped_unless_it_is_asked_for() {
    let mut registers = registers();
    let bpdu = frame(STATION, 38, &[0; 38]);
    assert_eq!(verdict(&bpdu, &registers), Ok(()));
    let cut = frame(STATION, 100, &[0; 99]);
    assert_eq!(verdict(&cut, &registers), Err(Refusal::Length));
    registers.set(RFCTL, rfctl::LEF);
    assert_eq!(verdict(&cut, &registers), Ok(()));
}

#[test]
fn pause_frames_are_for_the_device_only_with_flow_control() {
    let mut registers = registers();
    registers.set(FCAL, fc::ADDRESS_LOW);
    registers.set(FCAH, fc::ADDRESS_HIGH);
    registers.set(FCT, fc::ETHERTYPE);
    let xoff = frame(FLOW_CONTROL, 0x8808, &[0, 1, 0x12, 0x34]);
    let time = |registers: &Registers| pause(&Packet::parse(&xoff, registers), &xoff, registers);
    registers.modify(RCTL, 0, rctl::MPE);
    assert_eq!(
        (verdict(&xoff, &registers), time(&registers)),
        (Ok(()), None)
    );
    registers.modify(CTRL, 0, ctrl::RFCE);
    assert_eq!(time(&registers), Some(0x1234));
    registers.modify(RCTL, 0, rctl::DPF);
    assert_eq!(verdict(&xoff, &registers), Err(Refusal::Pause));
    let other = frame(STATION, 0x8808, &[0, 2, 0, 0]);
    assert_eq!(verdict(&other, &registers), Err(Refusal::Control));
    registers.modify(RCTL, 0, rctl::PMCF);
    assert_eq!(verdict(&other, &registers), Ok(()));
}
