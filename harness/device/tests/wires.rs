// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a device sends is what another one, or a socket, gets.

mod common;

use std::{fs, num::NonZeroU64, os::unix::net::UnixDatagram, time::Duration};

use device::{
    link::{Chance, Link},
    pcap::Capture,
    wire,
};

use common::{Board, dummy};

fn boards() -> [Board; 2] {
    let mut boards = [Board::new(), Board::new()];
    for board in &mut boards {
        board.enable();
        board.set_config(0x70, 0x8000_0000);
        board.set_register(dummy::DESTINATION, 0x800);
    }
    boards
}

#[test]
fn what_one_sends_the_other_gets_and_the_capture_has() {
    let [mut one, mut other] = boards();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wire.pcap");
    let capture = Capture::create(&path, 16).unwrap();
    wire::connect([&one.port, &other.port], &Link::default(), Some(capture)).unwrap();
    let event = other.event(1);
    one.send(b"a frame of twenty-four b");
    assert_eq!(common::wait(&event), 1);
    assert_eq!(other.read_memory(0x800, 7), b"a frame");
    let event = one.event(1);
    other.send(b"an answer");
    assert_eq!(common::wait(&event), 1);
    assert_eq!(one.read_memory(0x800, 9), b"an answer");
    // Each has its own only.
    for board in [&mut one, &mut other] {
        assert_eq!(board.register(dummy::RECEIVED), 1);
    }
    let bytes = fs::read(path).unwrap();
    assert_eq!(bytes.len(), 24 + 16 + 16 + 16 + 9);
    assert_eq!(&bytes[40..56], b"a frame of twent");
    assert!(bytes.ends_with(b"an answer"));
}

#[test]
fn what_is_sent_at_once_comes_at_once_up_to_a_burst() {
    let [mut one, mut other] = boards();
    wire::connect([&one.port, &other.port], &Link::default(), None).unwrap();
    one.set_register(dummy::MORE, 39);
    one.send(b"frame");
    other.until(dummy::RECEIVED, 40);
    assert_eq!(other.register(dummy::BURSTS), 2);
}

#[test]
fn devices_that_send_to_each_other_at_once_do_not_lock_up() {
    let [mut one, mut other] = boards();
    wire::connect([&one.port, &other.port], &Link::default(), None).unwrap();
    std::thread::scope(|scope| {
        for board in [&mut one, &mut other] {
            scope.spawn(move || {
                for _ in 0..500 {
                    board.send(b"frame");
                    board.register(0);
                }
            });
        }
    });
    for board in [&mut one, &mut other] {
        board.until(dummy::RECEIVED, 500);
    }
}

#[test]
fn a_device_has_one_wire_with_two_ends() {
    let [one, other] = [Board::new(), Board::new()];
    assert!(wire::connect([&one.port, &one.port], &Link::default(), None).is_err());
    wire::connect([&one.port, &other.port], &Link::default(), None).unwrap();
    assert!(wire::connect([&other.port, &one.port], &Link::default(), None).is_err());
}

#[test]
fn frames_to_and_from_a_socket_are_datagrams() {
    let [mut board, _] = boards();
    let (near, far) = UnixDatagram::pair().unwrap();
    far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    wire::connect_socket(&board.port, near, None).unwrap();
    board.send(b"to the socket");
    let mut bytes = [0; 100];
    let len = far.recv(&mut bytes).unwrap();
    assert_eq!(&bytes[..len], b"to the socket");
    let event = board.event(1);
    far.send(b"").unwrap();
    far.send(b"from the socket").unwrap();
    assert_eq!(common::wait(&event), 1);
    assert_eq!(board.read_memory(0x800, 15), b"from the socket");
}

fn chance(parts: u32) -> Chance {
    Chance::per_million(parts).unwrap()
}

#[test]
fn what_a_link_delays_or_holds_arrives_without_any_help() {
    let [mut one, mut other] = boards();
    let link = Link {
        rate: NonZeroU64::new(1_000_000_000),
        delay: Duration::from_millis(2),
        reorder: chance(1_000_000),
        ..Link::default()
    };
    wire::connect([&one.port, &other.port], &link, None).unwrap();
    let event = other.event(1);
    one.send(b"a late frame");
    assert_eq!(common::wait(&event), 1);
    assert_eq!(other.read_memory(0x800, 12), b"a late frame");
    let event = one.event(1);
    other.send(b"an answer");
    assert_eq!(common::wait(&event), 1);
    assert_eq!(one.read_memory(0x800, 9), b"an answer");
}

#[test]
fn a_link_delivers_each_frame_by_its_fate_again_and_again() {
    const FRAMES: usize = 500;
    let link = Link {
        loss: chance(100_000),
        duplicate: chance(200_000),
        corrupt: chance(300_000),
        delay: Duration::from_micros(100),
        seed: 7,
        ..Link::default()
    };
    for _ in 0..2 {
        let [mut one, mut other] = boards();
        wire::connect([&one.port, &other.port], &link, None).unwrap();
        let [fates, _] = link.fates();
        let (mut whole, mut damaged) = (0, 0);
        for fate in fates.take(FRAMES).filter(|fate| !fate.lost) {
            damaged += u32::from(fate.damage.is_some());
            whole += u32::from(fate.damage.is_none()) + u32::from(fate.duplicated);
        }
        for _ in 0..FRAMES {
            one.send(b"frame");
        }
        other.until(dummy::RECEIVED, whole);
        other.until(dummy::DAMAGED, damaged);
    }
}

#[test]
fn a_damaged_frame_is_captured_with_the_wrong_bit() {
    let [mut one, mut other] = boards();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wire.pcap");
    let capture = Capture::create(&path, 16).unwrap();
    let link = Link {
        corrupt: chance(1_000_000),
        ..Link::default()
    };
    wire::connect([&one.port, &other.port], &link, Some(capture)).unwrap();
    one.send(b"a frame");
    other.until(dummy::DAMAGED, 1);
    assert_eq!(other.register(dummy::RECEIVED), 0);
    let bytes = fs::read(path).unwrap();
    let pairs = bytes[40..].iter().zip(b"a frame");
    let flipped: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
    assert_eq!((bytes.len(), flipped), (47, 1));
}
