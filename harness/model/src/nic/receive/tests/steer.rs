// SPDX-License-Identifier: MIT OR Apache-2.0

//! To which queue packets go.

use i82576::{
    five_tuple::{Filter, Protocol},
    regs::{self, MRQC, RFCTL, Reg, etqf, imirext},
    rss::HashFields,
};

use super::{
    hash::{hashing, suite4},
    *,
};
use crate::nic::receive::{
    packet::Packet,
    steer::{Destination, steer},
};

const SYNQF: Reg = Reg(0x55fc);
const SYNQFP: u32 = 1 << 19;

fn to(frame: &[u8], registers: &Registers) -> Destination {
    steer(&Packet::parse(frame, registers), registers)
}

fn add(registers: &mut Registers, n: u16, filter: Filter) {
    for (reg, value) in filter.registers(n).writes(n) {
        registers.set(reg, value);
    }
}

/// For packets of the suite.
fn filter(queue: u8) -> Filter {
    Filter {
        protocol: Protocol::Tcp,
        source: Some([66, 9, 149, 187]),
        destination: Some([161, 142, 100, 80]),
        source_port: Some(2794),
        destination_port: Some(1766),
        queue,
    }
}

fn syn() -> Vec<u8> {
    let mut frame = suite4(false);
    frame[47] |= 2;
    frame
}

#[test]
fn packets_without_a_hash_or_a_filter_go_to_the_default_queue() {
    let mut registers = registers();
    assert_eq!(to(&suite4(false), &registers).queue, 0);
    registers.set(MRQC, HashFields::TCP.mrqc() | 9 << 3);
    assert_eq!(to(&suite4(true), &registers).queue, 9);
}

#[test]
fn a_filter_that_matches_overrides_the_hash_which_is_still_reported() {
    let mut registers = hashing(HashFields::ALL.mrqc());
    let before = to(&suite4(false), &registers);
    add(&mut registers, 2, filter(15));
    assert_eq!(
        to(&suite4(false), &registers),
        Destination {
            queue: 15,
            ..before
        }
    );
    assert_eq!(
        to(&suite4(true), &registers).queue,
        8,
        "UDP goes by its hash"
    );
}

#[test]
fn every_field_of_a_filter_is_compared() {
    let other = [
        Filter {
            protocol: Protocol::Udp,
            ..filter(3)
        },
        Filter {
            source: Some([66, 9, 149, 188]),
            ..filter(3)
        },
        Filter {
            destination: Some([1, 2, 3, 4]),
            ..filter(3)
        },
        Filter {
            source_port: Some(2795),
            ..filter(3)
        },
        Filter {
            destination_port: Some(2794),
            ..filter(3)
        },
    ];
    for filter in other {
        let mut registers = registers();
        add(&mut registers, 0, filter);
        assert_eq!(to(&suite4(false), &registers).queue, 0, "{filter:?}");
    }
    let any = Filter {
        source: None,
        destination: None,
        source_port: None,
        destination_port: None,
        ..filter(3)
    };
    let mut registers = registers();
    add(&mut registers, 0, any);
    assert_eq!(to(&suite4(false), &registers).queue, 3);
    assert_eq!(to(&tcp6(&[]), &registers).queue, 3);
    let source = Filter {
        source: filter(3).source,
        ..any
    };
    add(&mut registers, 0, source);
    assert_eq!(to(&tcp6(&[]), &registers).queue, 0, "an address of IPv4");
}

#[test]
fn the_first_filter_of_the_highest_priority_counts() {
    for (places, queue) in [([1, 4], 1), ([4, 1], 2), ([6, 7], 1), ([7, 6], 2)] {
        let mut registers = registers();
        add(&mut registers, places[0], filter(1));
        add(&mut registers, places[1], filter(2));
        assert_eq!(to(&suite4(false), &registers).queue, queue, "{places:?}");
    }
}

#[test]
fn sizes_and_flags_are_compared_where_they_are_not_bypassed() {
    let mut registers = registers();
    add(&mut registers, 0, filter(3));
    registers.set(regs::imirext(0), imirext::CONTROL_BP | 60);
    assert_eq!(to(&suite4(false), &registers).queue, 0);
    registers.set(regs::imirext(0), imirext::CONTROL_BP | 61);
    assert_eq!(to(&suite4(false), &registers).queue, 3);
    registers.set(regs::imirext(0), imirext::SIZE_BP | 1 << 17);
    assert_eq!(to(&suite4(false), &registers).queue, 0);
    assert_eq!(to(&syn(), &registers).queue, 3);
}

#[test]
fn an_immediate_interrupt_is_asked_for_by_a_filter() {
    let mut registers = registers();
    add(&mut registers, 0, filter(3));
    assert!(!to(&suite4(false), &registers).immediate);
    registers.modify(regs::imir(0), 0, 1 << 16);
    assert!(to(&suite4(false), &registers).immediate);
    assert!(!to(&suite4(true), &registers).immediate);
}

#[test]
fn the_syn_filter_comes_before_or_after_the_five_tuple_filters() {
    let mut registers = registers();
    registers.set(SYNQF, 1 | 12 << 1);
    assert_eq!(to(&syn(), &registers).queue, 12);
    assert_eq!(to(&suite4(false), &registers).queue, 0);
    add(&mut registers, 0, filter(3));
    assert_eq!(to(&syn(), &registers).queue, 3);
    registers.set(RFCTL, SYNQFP);
    assert_eq!(to(&syn(), &registers).queue, 12);
}

#[test]
fn an_ethertype_filter_comes_first_and_is_reported() {
    let mut registers = hashing(HashFields::ALL.mrqc());
    add(&mut registers, 0, filter(3));
    registers.set(regs::etqf(5), 0x0800 | etqf::ENABLE | 7 << 16 | 1 << 31);
    let found = to(&suite4(false), &registers);
    assert_eq!((found.queue, found.ethertype_filter), (7, Some(5)));
    registers.set(
        regs::etqf(5),
        0x0800 | etqf::ENABLE | etqf::TIMESTAMP | 1 << 29,
    );
    let found = to(&suite4(false), &registers);
    assert_eq!((found.queue, found.ethertype_filter), (3, Some(5)));
    assert!(found.timestamp && found.immediate);
    registers.set(regs::etqf(5), 0x0800);
    assert_eq!(to(&suite4(false), &registers).ethertype_filter, None);
}
