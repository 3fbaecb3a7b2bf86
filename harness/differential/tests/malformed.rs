// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rings and descriptors that no driver may write end neither NIC, and keep neither from starting again.

mod common;

use common::{check, frames::frames, ok};
use differential::{
    Hex, MAC, Subject, place,
    receive::{self, Settings},
    start,
    transmit::{self, Packet},
};
use i82576::{
    regs::{self, Reg, rctl, rfctl, rxdctl, srrctl, tctl, txdctl},
    tx::Data,
};
use proptest::{collection::vec, prelude::*};

/// Lengths and indices of rings: none, right ones, and others.
fn sizes() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0),
        Just(128),
        Just(1024),
        0u32..2048,
        any::<u32>().prop_map(|value| value & 0xf_ffff)
    ]
}

/// Descriptors of any type, whose buffers are in memory.
fn descriptors() -> impl Strategy<Value = Vec<[u64; 2]>> {
    let kinds = prop_oneof![Just(2u64), Just(3), 0u64..16].prop_map(|kind| kind << 20 | 1 << 29);
    let descriptor = (0u64..0x8_0000, any::<u64>(), kinds)
        .prop_map(|(at, high, kind)| [place::OUTGOING + at, high & !(0x2ff << 20) | kind]);
    vec(descriptor, 1..=64)
}

fn write(subject: &mut dyn Subject, writes: &[(Reg, u32)]) -> differential::Result<()> {
    writes
        .iter()
        .try_for_each(|(reg, value)| subject.write(*reg, *value))
}

fn put(subject: &mut dyn Subject, at: u64, raws: &[[u64; 2]]) -> differential::Result<()> {
    let bytes: Vec<u8> = raws
        .iter()
        .flatten()
        .flat_map(|half| half.to_le_bytes())
        .collect();
    subject.write_memory(at, &bytes)
}

/// Whether a NIC that is started anew receives a frame, and sends one.
fn works(subject: &mut dyn Subject) -> differential::Result<bool> {
    let mut frame = [&MAC[..], &[2; 6], &[0x88, 0xb5]].concat();
    frame.extend(0..100);
    let settings = Settings {
        ctrl: 0,
        rctl: rctl::SECRC,
        rlpml: 1518,
        rxcsum: 0,
        rfctl: rfctl::LEF,
        mrqc: 0,
        key: [0; 10],
        reta: [0; 32],
        vlans: 0,
        psrtype: [0; place::QUEUES as usize],
        srrctl: [srrctl::encode(2, 4, srrctl::DescType::OneBuffer, true); place::QUEUES as usize],
        buffers: [48; place::QUEUES as usize],
    };
    receive::set_up(subject, &settings)?;
    let received = receive::receive(subject, &frame, &mut [0; place::QUEUES as usize])?;
    let arrives =
        matches!(&received.descriptors[..], [(0, descriptor)] if descriptor.payload == frame);

    transmit::set_up(subject)?;
    let packet = Packet {
        data: Data {
            // CAST: It is short.
            paylen: frame.len() as u32,
            ..Data::default()
        },
        bytes: Hex(frame),
        parts: 1,
        context: None,
    };
    let sent = transmit::transmit(subject, &packet)?;
    Ok(arrives && sent.frames == [packet.bytes] && sent.done == [true])
}

fn send(
    subject: &mut dyn Subject,
    raws: &[[u64; 2]],
    [len, head, tail]: [u32; 3],
) -> differential::Result<()> {
    start(subject)?;
    put(subject, place::tx_ring(1), raws)?;
    write(
        subject,
        &[
            (regs::tdbal(1), place::tx_ring(1) as u32),
            (regs::tdlen(1), len),
            (regs::tdh(1), head),
            (regs::txdctl(1), txdctl::ENABLE),
            (regs::TCTL, tctl::EN | tctl::PSP),
            (regs::tdt(1), tail),
        ],
    )?;
    subject.take().map(drop)
}

#[test]
fn transmit_descriptors_of_any_kind_end_neither() {
    check(
        64,
        &(descriptors(), [sizes(), sizes(), sizes()]),
        |ours, igb, (raws, sizes)| {
            let both: [&mut dyn Subject; 2] = [ours, igb];
            for subject in both {
                ok(send(subject, &raws, sizes))?;
                prop_assert!(ok(works(subject))?, "{}", subject.name());
            }
            Ok(())
        },
    );
}

fn take_in(
    subject: &mut dyn Subject,
    frames: &[Hex<Vec<u8>>],
    [len, head, tail]: [u32; 3],
    control: u32,
) -> differential::Result<()> {
    start(subject)?;
    let ring = [[place::OUTGOING, place::header(0, 0)]; place::DESCRIPTORS as usize];
    put(subject, place::rx_ring(0), &ring)?;
    write(
        subject,
        &[
            (regs::rdbal(0), place::rx_ring(0) as u32),
            (regs::rdlen(0), len),
            (regs::rdh(0), head),
            (regs::srrctl(0), control | srrctl::DROP_EN),
            (regs::rxdctl(0), rxdctl::ENABLE),
            (regs::RCTL, rctl::EN | rctl::UPE | rctl::SECRC),
            (regs::rdt(0), tail),
        ],
    )?;
    for Hex(frame) in frames {
        subject.send(frame)?;
    }
    // QEMU keeps what found no buffer in its socket: it is to go nowhere.
    start(subject)?;
    write(
        subject,
        &[
            (regs::rdbal(0), place::rx_ring(0) as u32),
            (regs::rdlen(0), place::RING as u32),
            (regs::rxdctl(0), rxdctl::ENABLE),
            (regs::rdt(0), 63),
            (regs::RCTL, rctl::EN),
        ],
    )?;
    subject.elapse(1_000_000)?;
    subject.take().map(drop)
}

#[test]
fn rings_of_any_size_receive_or_drop() {
    let frames = vec(frames(1514), 1..4);
    let control =
        (0u32..8, 0u32..64, 0u32..4).prop_map(|(kind, header, kib)| kind << 25 | header << 8 | kib);
    check(
        64,
        &(frames, [sizes(), sizes(), sizes()], control),
        |ours, igb, (frames, sizes, control)| {
            let both: [&mut dyn Subject; 2] = [ours, igb];
            for subject in both {
                ok(take_in(subject, &frames, sizes, control))?;
                prop_assert!(ok(works(subject))?, "{}", subject.name());
            }
            Ok(())
        },
    );
}
