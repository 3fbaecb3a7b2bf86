// SPDX-License-Identifier: MIT OR Apache-2.0

//! What QEMU sees of a device.

mod common;

use std::time::{Duration, Instant};

use common::{Board, PAGE, dummy};

#[test]
fn configuration_space_is_an_82576s() {
    let mut board = Board::new();
    assert_eq!(board.config(0), 0x10c9_8086);
    assert_eq!(board.client.region(0).unwrap().size, 128 * 1024);
    assert_eq!(board.client.region(3).unwrap().size, 16 * 1024);
    assert_eq!(board.client.get_irq_info(2).unwrap().count, 10);
}

#[test]
fn registers_answer_while_memory_space_is_enabled() {
    let mut board = Board::new();
    assert_eq!(board.register(dummy::MAC), u32::MAX);
    board.enable();
    assert_eq!(board.register(dummy::MAC), 0x0000_5452);
    board.set_register(0x1000, 5);
    assert_eq!(board.register(0x1000), 5);
}

#[test]
fn a_device_copies_memory_only_as_bus_master() {
    let mut board = Board::new();
    board.write_memory(0x10, b"payload");
    board.set_config(4, 2);
    board.copy(0x10, 0x800, 7);
    assert_eq!(board.register(dummy::FAULTS), 1);
    board.enable();
    board.copy(0x10, 0x800, 7);
    assert_eq!(board.register(dummy::FAULTS), 1);
    assert_eq!(board.read_memory(0x800, 7), b"payload");
    board.copy(0x10, PAGE - 3, 7);
    assert_eq!(board.register(dummy::FAULTS), 2);
}

#[test]
fn memory_that_qemu_took_away_is_not_reached() {
    let mut board = Board::new();
    board.enable();
    board.client.dma_unmap(1 << 40, PAGE.into()).unwrap();
    board.client.dma_unmap(0, PAGE.into()).unwrap();
    board.copy(0, 0x800, 7);
    assert_eq!(board.register(dummy::FAULTS), 1);
    board.map();
    board.copy(0, 0x800, 7);
    assert_eq!(board.register(dummy::FAULTS), 1);
}

#[test]
fn interrupts_signal_events_and_wait_for_them() {
    let mut board = Board::new();
    board.enable();
    board.set_register(dummy::INTERRUPT, 2);
    let event = board.event(2);
    assert_eq!(common::signals(&event), 0, "MSI-X was disabled");
    board.set_config(0x70, 0x8000_0000);
    board.set_register(dummy::INTERRUPT, 2);
    assert_eq!(common::wait(&event), 1);
    // QEMU takes all of them back for a moment.
    board.take_events();
    board.set_register(dummy::INTERRUPT, 2);
    assert_eq!(board.pending(), 1 << 2);
    assert_eq!(common::signals(&event), 0);
    let event = board.event(2);
    assert_eq!(common::signals(&event), 1);
    assert_eq!(board.pending(), 0);
}

#[test]
fn a_device_is_woken_at_its_deadline() {
    let mut board = Board::new();
    board.enable();
    board.set_config(0x70, 0x8000_0000);
    let event = board.event(0);
    for milliseconds in [50, 5] {
        let start = Instant::now();
        board.set_register(dummy::TIMER, milliseconds * 1_000_000);
        assert_eq!(common::wait(&event), 1);
        assert!(start.elapsed() >= Duration::from_millis(milliseconds.into()));
    }
    // One that is earlier than what is waited for.
    board.set_register(dummy::TIMER, u32::MAX);
    board.register(0);
    board.set_register(dummy::TIMER, 1);
    assert_eq!(common::wait(&event), 1);
}

#[test]
fn resets_reset_the_device() {
    let mut board = Board::new();
    board.enable();
    let before = board.register(dummy::RESETS);
    board.client.reset().unwrap();
    board.enable();
    // Function level, and by way of D3hot.
    board.set_config(0xa8, 0x8000);
    assert_eq!(board.register(0), u32::MAX);
    board.enable();
    board.set_config(0x44, 3);
    assert_eq!(board.register(0), u32::MAX);
    board.set_config(0x44, 0);
    board.enable();
    assert_eq!(board.register(dummy::RESETS), before + 3);
}

#[test]
fn a_device_that_qemu_left_is_reset_and_can_be_connected_again() {
    let mut board = Board::new();
    board.enable();
    board.set_register(0x1000, 5);
    let before = board.register(dummy::RESETS);
    board.reconnect();
    assert_eq!(board.config(4) & 0xffff, 0);
    board.enable();
    assert_eq!(board.register(dummy::RESETS), before + 1);
    assert_eq!(board.register(0x1000), 0);
    board.copy(0, 0x800, 7);
    assert_eq!(board.register(dummy::FAULTS), 1, "memory is mapped anew");
}

#[test]
fn accesses_that_make_no_sense_are_answered() {
    let mut board = Board::new();
    board.enable();
    for region in 0..9 {
        for offset in [0, 1, 0x1ffff, 0xfff, u64::MAX] {
            let mut bytes = [0; 8];
            board
                .client
                .region_read(region, offset, &mut bytes[..])
                .unwrap();
            board.client.region_write(region, offset, &[]).unwrap();
        }
    }
    for flags in [0, 1, 2 << 3, 0x21, 0x24, 0x3f & !2] {
        for (start, count) in [(0, 0), (u32::MAX, u32::MAX), (9, 5)] {
            board.client.set_irqs(2, flags, start, count, &[]).unwrap();
        }
    }
    board.enable();
    assert_eq!(board.register(dummy::MAC), 0x0000_5452);
}
