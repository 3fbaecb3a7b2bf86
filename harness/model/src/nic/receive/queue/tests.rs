// SPDX-License-Identifier: MIT OR Apache-2.0

//! Descriptors of a queue, and the memory that they point to.

use super::*;
use crate::{
    lies::{Lie, Plan},
    nic::{
        lent::{Lent, Of},
        tests::Recorder,
    },
};
use i82576::{
    limits::MAX_FRAME,
    regs::{srrctl::DescType, thresholds},
};

const BASE: u64 = 0x1000;

/// A queue with so many buffers: descriptor `n` has payload at `0x10000 + n * 0x1000` and headers at
/// `0x8000 + n * 0x100`.
fn posted(count: u32) -> (Queue, Registers, Recorder, Lent) {
    let mut registers = Registers::default();
    let mut host = Recorder::with_memory(0x80000);
    registers.set(rdbal(1), BASE as u32);
    registers.set(rdlen(1), 64 * 16);
    registers.set(srrctl(1), srrctl::encode(1, 2, DescType::HeaderSplit, true));
    registers.set(rxdctl(1), thresholds(8, 4, 1));
    let ring = ring(1, &registers);
    for n in 0..count {
        let raw = [
            0x10000 + u64::from(n) * 0x1000,
            0x8000 + u64::from(n) * 0x100,
        ];
        ring.write(n, raw, &mut host).unwrap();
    }
    let mut queue = Queue::default();
    queue.start(1, &registers);
    registers.set(rdt(1), count);
    let mut lent = Lent::default();
    lent.enable(Of::Receive(1), [ring.range()]);
    (queue, registers, host, lent)
}

/// All memory there.
fn memory<'a>(host: &'a mut Recorder, lent: &'a mut Lent) -> Memory<'a> {
    Memory { host, lent }
}

fn describe(piece: Piece) -> [u64; 2] {
    [u64::from(piece.last), u64::from(piece.len)]
}

#[test]
fn headers_and_payload_go_to_their_buffers_and_payload_goes_on_in_the_next() {
    let (mut queue, mut registers, mut host, mut lent) = posted(4);
    let memory = &mut memory(&mut host, &mut lent);
    let packet: Vec<u8> = (0..2500u32).map(|n| n as u8).collect();
    let room = queue.has_room((&packet, 54), 1, &registers, memory);
    assert_eq!(room, Ok(true));
    let filled = queue.fill((&packet, 54), 1, &registers, memory, describe);
    assert_eq!(filled, Ok(()));
    assert!(queue.is_due(1, &registers));
    queue
        .write_back(1, &mut registers, &mut Lies::default(), memory)
        .unwrap();
    assert_eq!(host.memory[0x8000..0x8036], packet[..54]);
    for (n, piece) in packet[54..].chunks(1024).enumerate() {
        let at = 0x10000 + n * 0x1000;
        assert_eq!(host.memory[at..at + piece.len()], *piece);
    }
    let ring = ring(1, &registers);
    let raws = [0, 1, 2].map(|n| ring.read(n, &mut host).unwrap());
    assert_eq!(raws, [[0, 1024], [0, 1024], [1, 398]]);
    assert_eq!(registers.get(rdh(1)), 3);
}

#[test]
fn a_packet_has_room_only_with_enough_buffers() {
    let (mut queue, registers, mut host, mut lent) = posted(2);
    let memory = &mut memory(&mut host, &mut lent);
    let room = queue.has_room((&[0; 3000], 0), 1, &registers, memory);
    assert_eq!(room, Ok(false));
    let room = queue.has_room((&[0; 2000], 0), 1, &registers, memory);
    assert_eq!(room, Ok(true));
}

#[test]
fn what_is_prefetched_is_not_read_again() {
    let (mut queue, registers, mut host, mut lent) = posted(8);
    let memory = &mut memory(&mut host, &mut lent);
    queue.prefetch(1, &registers, memory).unwrap();
    // The driver writes to descriptors that it has given away.
    ring(1, &registers).write(0, [0; 2], memory).unwrap();
    queue
        .fill((&[7; 60], 0), 1, &registers, memory, describe)
        .unwrap();
    assert_eq!(host.memory[0x10000..0x1003c], [7; 60]);
}

/// A plan that writes back once more whatever is looked at next.
fn repeats() -> Lies {
    let mut lies = Lies::default();
    let lie = Lie {
        times: u32::MAX,
        ..Lie::once(Kind::Repeated, 0)
    };
    lies.begin(&Plan { lies: vec![lie] });
    lies
}

#[test]
fn what_is_written_back_once_more_is_done_and_its_buffers_are_not_the_devices() {
    let (mut queue, mut registers, mut host, mut lent) = posted(3);
    let memory = &mut memory(&mut host, &mut lent);
    let ring = ring(1, &registers);
    let receive =
        |queue: &mut Queue, registers: &mut Registers, lies: &mut Lies, memory: &mut Memory<'_>| {
            assert_eq!(
                queue.has_room((&[7; 60], 0), 1, registers, memory),
                Ok(true)
            );
            queue
                .fill((&[7; 60], 0), 1, registers, memory, describe)
                .unwrap();
            queue.write_back(1, registers, lies, memory).unwrap();
        };
    for _ in 0..3 {
        receive(&mut queue, &mut registers, &mut Lies::default(), memory);
    }
    // The driver posts them all again, the first at another place, and is written over before it says so.
    for n in 0..3 {
        ring.write(n, [0x20000 + u64::from(n) * 0x1000, 0x9000], memory)
            .unwrap();
    }
    let again = queue.repeat(&mut repeats()).unwrap();
    assert_eq!(again, (0, [1, 60]));
    ring.write(again.0, again.1, memory).unwrap();
    registers.set(rdlen(1), 8 * 16);
    queue.next = 0;
    receive(&mut queue, &mut registers, &mut Lies::default(), memory);
    assert_eq!(ring.read(0, memory), Ok([1, 60]), "it was left alone");
    assert_eq!(host.memory[0x21000..0x2103c], [7; 60]);
}

#[test]
fn few_descriptors_are_not_prefetched() {
    let (mut queue, registers, mut host, mut lent) = posted(3);
    let memory = &mut memory(&mut host, &mut lent);
    queue.prefetch(1, &registers, memory).unwrap();
    assert!(queue.fetched.is_empty(), "the host threshold is 4");
}

/// Every size of a payload buffer, by every length of a packet.
#[test]
fn every_packet_is_cut_into_as_many_pieces_as_hold_it() {
    let packet = vec![0; MAX_FRAME as usize];
    let mut registers = Registers::default();
    for kib in 0..=BSIZEPACKET {
        registers.set(srrctl(1), kib);
        for len in 0..=packet.len() {
            let Pieces { size, count, .. } = pieces((&packet[..len], 0), 1, &registers);
            let kib = if kib == 0 { 2 } else { kib };
            assert_eq!(size, kib as usize * 1024);
            assert!(count * size >= len && (count - 1) * size < len.max(1));
        }
    }
}
