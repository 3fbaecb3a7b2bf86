// SPDX-License-Identifier: MIT OR Apache-2.0

//! An accelerator's engine, and NICs that it writes to.

mod common;

use std::{sync::Arc, thread};

use common::{Board, PAGE, dummy};
use device::peers;
use engine::{
    descriptor::{COMPLETION, Completion, Descriptor, Operation, SIZE, Status},
    fragment::Fragment,
    pci, regs,
};
use i82576::regs::{rdlen, rdt, rxdctl};
use model::{engine::Engine, nic::Nic};

/// Where the NIC's registers are.
const NIC: u32 = 0xfe00_0000;
const QUEUE: u32 = 5;
/// Where the list of fragments, sources and destinations are in memory. The ring is at 0.
const LIST: u64 = 0x400;
const SOURCE: u64 = 0x600;
const DESTINATION: u64 = 0x800;

fn queue(register: u32) -> u32 {
    regs::queue(QUEUE) + register
}

/// An engine of which a queue runs, in a window of all memory.
fn engine() -> Board {
    let mut board = Board::of(Engine::default());
    board.enable();
    board.set_config(0x70, 0x8000_0000);
    board.set_register(regs::window(QUEUE, 0) + regs::WINDOW_SIZE_LOW, PAGE);
    board.set_register(queue(regs::RING_SIZE), 2);
    board.set_register(queue(regs::CONTROL), regs::CONTROL_ENABLE);
    board
}

/// Executes the first descriptor, which sends an interrupt.
fn execute(board: &mut Board, descriptor: Descriptor, fragments: &[Fragment]) -> Completion {
    let event = board.event(QUEUE);
    let list: Vec<u8> = fragments.iter().flat_map(|one| one.encode()).collect();
    board.write_memory(LIST, &list);
    let descriptor = Descriptor {
        interrupt: true,
        fragments: fragments.len() as u32,
        list: LIST,
        ..descriptor
    };
    board.write_memory(0, &descriptor.encode());
    board.set_register(regs::portal(QUEUE) + regs::TAIL, 1);
    assert_eq!(common::wait(&event), 1);
    let completion = board.read_memory(COMPLETION as u64, SIZE - COMPLETION);
    Completion::decode(completion.try_into().unwrap()).unwrap()
}

#[test]
fn an_engine_shows_as_one() {
    let mut board = Board::of(Engine::default());
    let id = u32::from(pci::DEVICE) << 16 | u32::from(pci::VENDOR);
    assert_eq!(board.config(0), id);
    assert_eq!(board.config(8) >> 8, pci::CLASS);
    let size = |board: &Board, bar| board.client.region(bar).unwrap().size;
    assert_eq!(size(&board, pci::BAR_REGISTERS), regs::BAR_SIZE as u64);
    assert_eq!(size(&board, pci::BAR_MSIX), 16 * 1024);
    assert_eq!(size(&board, 3), 0);
    assert_eq!(board.client.get_irq_info(2).unwrap().count, regs::QUEUES);
    assert_eq!(board.config(0x70) >> 16, regs::QUEUES - 1);
    board.enable();
    assert_eq!(board.register(regs::ID), regs::ID_VALUE);
    assert_eq!(board.register(regs::BAR_SIZE as u32), u32::MAX);
}

#[test]
fn an_engine_gathers_what_is_scattered_in_memory() {
    let mut board = engine();
    board.write_memory(SOURCE, b"memory?device");
    let fragment = |source, len, destination| Fragment {
        source,
        len,
        destination,
    };
    let fragments = [fragment(7, 6, 0), fragment(0, 6, 7)];
    let copy = Descriptor {
        operation: Operation::Copy,
        source: SOURCE,
        destination: DESTINATION,
        ..Descriptor::default()
    };
    let completion = execute(&mut board, copy, &fragments);
    assert_eq!((completion.status, completion.bytes), (Status::Done, 12));
    assert_eq!(board.read_memory(DESTINATION, 13), b"device\0memory");
    assert_eq!(board.register(regs::portal(QUEUE) + regs::HEAD), 1);
}

#[test]
fn a_reset_of_the_bus_stops_an_engines_queues() {
    let mut board = engine();
    assert_eq!(board.register(queue(regs::STATUS)), regs::STATUS_RUNNING);
    board.client.reset().unwrap();
    board.enable();
    assert_eq!(board.register(queue(regs::STATUS)), 0);
}

#[test]
fn a_signal_rings_the_tail_of_a_nics_queue() {
    let mut nic = Board::of(Nic::new([0x52, 0x54, 0, 0, 0, 1]));
    let mut board = engine();
    peers::introduce(&[Arc::clone(&nic.port), Arc::clone(&board.port)]);
    nic.set_config(0x10, NIC);
    nic.enable();
    nic.set_register(rdlen(3).0, 64 * 16);
    nic.set_register(rxdctl(3).0, rxdctl::ENABLE);
    let tail = rdt(3).0;
    board.set_register(queue(regs::SIGNAL_LOW), NIC + tail);
    board.set_register(queue(regs::SIGNAL_VALUE), 42);
    let signal = Descriptor {
        signal: true,
        ..Descriptor::default()
    };
    execute(&mut board, signal, &[]);
    nic.until(tail, 42);
}

#[test]
fn only_registers_that_answer_are_written_and_none_are_read() {
    let (mut one, mut other) = (Board::new(), Board::new());
    peers::introduce(&[Arc::clone(&one.port), Arc::clone(&other.port)]);
    one.enable();
    one.write_memory(0, &[7; 8]);
    other.set_config(0x10, NIC);
    let size = 128 * 1024;
    let mut faults = 0;
    let mut write = |one: &mut Board, to| {
        one.copy(0, to, 4);
        let before = std::mem::replace(&mut faults, one.register(dummy::FAULTS));
        faults == before
    };
    assert!(!write(&mut one, NIC + 0x1000), "memory space is off");
    other.enable();
    assert!(write(&mut one, NIC + 0x1000));
    assert_eq!(other.register(0x1000), 0x0707_0707);
    assert!(write(&mut one, NIC + size - 4));
    assert!(!write(&mut one, NIC + size - 3), "not all of it is there");
    assert!(!write(&mut one, NIC - 4));
    other.client.reset().unwrap();
    assert!(!write(&mut one, NIC + 0x1000), "the BAR is nowhere");
    other.set_config(0x10, NIC);
    other.enable();
    let before = one.register(dummy::FAULTS);
    one.copy(NIC + 0x1000, 0, 4);
    assert_eq!(one.register(dummy::FAULTS), before + 1);
}

#[test]
fn devices_that_write_to_each_other_at_once_do_not_lock_up() {
    let [mut one, mut other] = [Board::new(), Board::new()];
    peers::introduce(&[Arc::clone(&one.port), Arc::clone(&other.port)]);
    for (board, at) in [(&mut one, NIC), (&mut other, NIC + 0x10_0000)] {
        board.set_config(0x10, at);
        board.enable();
    }
    thread::scope(|scope| {
        for (board, to) in [(&mut one, NIC + 0x10_0000), (&mut other, NIC)] {
            scope.spawn(move || {
                for value in 0..500u32 {
                    board.write_memory(0, &value.to_le_bytes());
                    board.copy(0, to + 0x1000, 4);
                }
                // Behind all that was written, by whichever thread.
                board.register(0);
            });
        }
    });
    for board in [&mut one, &mut other] {
        board.until(0x1000, 499);
    }
}
