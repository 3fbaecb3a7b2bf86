// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rings and descriptors that no driver may write do the same to both NICs, but for what is known to differ, and
//! keep neither from starting again.

mod common;

use common::{check, frames::frames, ok};
use differential::{
    Hex, Igb, MAC, Ours, Subject, known, place,
    receive::{self, Settings},
    ring::{self, Chain, Fate, Ring},
    transmit::{self, Packet},
};
use i82576::{
    regs::{rctl, rfctl, srrctl},
    tx::Data,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};

/// Rings of any length, with any indices.
fn rings() -> impl Strategy<Value = Ring> {
    let lens = prop_oneof![
        1 => Just(0u32),
        4 => Just(128),
        6 => Just(1024),
        2 => 0u32..2048,
        1 => any::<u32>(),
    ];
    let index = || prop_oneof![6 => 0u32..8, 6 => 0u32..64, 1 => 0u32..0x1_0000, 1 => any::<u32>()];
    (lens, index(), index()).prop_map(|(len, head, tail)| Ring { len, head, tail })
}

/// The descriptors of a packet: with its right length or another, and reports of any of them.
fn packet() -> impl Strategy<Value = Vec<[u64; 2]>> {
    let lens = prop_oneof![4 => 17u16..700, 1 => 0u16..30, 1 => 0u16..9800];
    let wrong = prop_oneof![5 => Just(0u32), 1 => 1u32..100];
    let start = 0..ring::OUTGOING_BYTES / 2;
    let ends = prop::bool::weighted(0.9);
    (start, vec(lens, 1..4), wrong, any::<u8>(), ends).prop_map(
        |(start, lens, wrong, reports, ends)| {
            let paylen = lens.iter().copied().map(u32::from).sum::<u32>() + wrong;
            let part = |(n, len): (usize, &u16)| {
                let data = Data {
                    address: place::OUTGOING + start + n as u64 * 1000,
                    len: *len,
                    paylen,
                    end_of_packet: ends && n + 1 == lens.len(),
                    report_status: reports >> n & 1 != 0,
                    ..Data::default()
                };
                data.encode()
            };
            lens.iter().enumerate().map(part).collect()
        },
    )
}

/// A descriptor of any kind, whose buffer is in memory, and which isn't done.
fn descriptor() -> impl Strategy<Value = [u64; 2]> {
    let kinds = prop_oneof![4 => Just(2u64), 4 => Just(3), 1 => 0u64..16];
    let start = 0..ring::OUTGOING_BYTES / 2;
    (start, any::<u64>(), kinds, prop::bool::weighted(0.9)).prop_map(
        |(start, high, kind, extended)| {
            let high = high & !(1 << 32 | 1 << 29 | 0xf << 20);
            let kind = u64::from(extended) << 29 | kind << 20;
            [place::OUTGOING + start, high | kind]
        },
    )
}

fn descriptors() -> impl Strategy<Value = Vec<[u64; 2]>> {
    let some = prop_oneof![4 => packet(), 1 => descriptor().prop_map(|raw| vec![raw])];
    vec(some, 1..24).prop_map(|all| {
        let mut raws = all.concat();
        raws.truncate(place::DESCRIPTORS.into());
        raws
    })
}

/// Settings of a NIC that takes whole frames.
fn plain() -> Settings {
    Settings {
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
    }
}

/// Whether a NIC that is started anew receives a frame, and sends one.
fn works(subject: &mut dyn Subject) -> differential::Result<bool> {
    let mut frame = [&MAC[..], &[2; 6], &[0x88, 0xb5]].concat();
    frame.extend(0..100);
    receive::set_up(subject, &plain())?;
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

fn both_work(ours: &mut Ours, igb: &mut Igb) -> Result<(), TestCaseError> {
    let both: [&mut dyn Subject; 2] = [ours, igb];
    for subject in both {
        prop_assert!(ok(works(subject))?, "{}", subject.name());
    }
    Ok(())
}

#[test]
fn transmit_rings_and_descriptors_of_any_kind_do_what_they_do_with_qemus_nic() {
    check(64, &(rings(), descriptors()), |ours, igb, (ring, raws)| {
        prop_assume!(ring.head() < ring::THERE || ring.head() >= ring.size());
        ok(ring::set_up_transmit(ours, &ring, &raws))?;
        ok(ring::set_up_transmit(igb, &ring, &raws))?;
        let before = ok(ring::memory(ours))?;
        let (mut left, mut is_special) = (ring, false);
        loop {
            let chain = Chain::next(&left, &raws);
            let mut mine = ok(ring::transmit(ours, &chain))?;
            let mut theirs = ok(ring::transmit(igb, &chain))?;
            known::sent_chain(&chain, &mut mine, &mut theirs);
            prop_assert_eq!(&mine, &theirs, "of {:?}", chain);
            is_special |= matches!(chain.fate, Fate::Special | Fate::Senseless);
            left.head = chain.end();
            if ring.is_odd() || !chain.is_whole() {
                break;
            }
        }
        prop_assert_eq!(ok(ring::registers(ours))?, ok(ring::registers(igb))?);
        prop_assert!(ok(ring::memory(ours))? == before);
        // QEMU's fills in headers and checksums where the driver has them, also of what is behind the ring.
        let may_fill_in = is_special || ring.is_odd() || ring.begins_outside();
        prop_assert!(may_fill_in || ok(ring::memory(igb))? == before);
        both_work(ours, igb)
    });
}

#[test]
fn receive_rings_of_any_kind_are_filled_as_by_qemus_nic() {
    let frames = vec(frames(1514), 1..6);
    let control =
        (0u32..8, 0u32..16, 0u32..4).prop_map(|(kind, header, kib)| kind << 25 | header << 8 | kib);
    check(
        64,
        &(rings(), frames, control),
        |ours, igb, (ring, frames, control)| {
            // What lies behind the descriptors that there are is no address of a buffer.
            let there = u32::from(place::DESCRIPTORS) - 16;
            prop_assume!(ring.head() < there || ring.head() >= ring.size());
            let mut settings = plain();
            settings.rctl |= rctl::UPE | rctl::BAM | rctl::MPE | rctl::LPE;
            settings.psrtype.fill(known::ALL_TYPES);
            settings.srrctl[0] = control | srrctl::DROP_EN;
            settings.buffers[0] = 0;
            ok(ring::set_up_receive(ours, &settings, &ring))?;
            ok(ring::set_up_receive(igb, &settings, &ring))?;
            let mut heads = [[ring.head(), 0, 0, 0]; 2];
            let mut is_laid_alike = true;
            for Hex(frame) in &frames {
                let mut mine = ok(ring::receive(ours, frame, &mut heads[0], &ring))?;
                let mut theirs = ok(ring::receive(igb, frame, &mut heads[1], &ring))?;
                is_laid_alike &= mine.layout() == theirs.layout();
                known::received_on(&ring, &settings, frame, &mut mine, &mut theirs);
                prop_assert_eq!(&mine, &theirs, "of {:?}", Hex(frame));
            }
            prop_assert_eq!(ok(ring::registers(ours))?, ok(ring::registers(igb))?);
            let mine = ok(ring::memory(ours))?;
            if ring.begins_outside() {
                prop_assert_eq!(mine, vec![]);
            } else if is_laid_alike && !ring.is_odd() {
                prop_assert_eq!(mine, ok(ring::memory(igb))?);
            }
            both_work(ours, igb)
        },
    );
}
