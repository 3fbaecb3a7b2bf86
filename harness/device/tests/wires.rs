// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a device sends is what another one, or a socket, gets.

mod common;

use std::{fs, num::NonZeroU64, os::unix::net::UnixDatagram, path::Path, time::Duration};

use device::{
    link::{Chance, Link},
    pcap::Capture,
    wire::{self, Half},
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
    wire::connect_socket(&board.port, near, &Link::default(), Half::Both, None).unwrap();
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

const FRAMES: usize = 500;
/// A link on which much goes wrong, differently in each direction.
fn bad() -> Link {
    Link {
        loss: chance(100_000),
        duplicate: chance(200_000),
        corrupt: chance(300_000),
        delay: Duration::from_micros(100),
        seed: 7,
        ..Link::default()
    }
}

/// How many frames arrive whole, and damaged, of those that are sent in a direction of the link.
fn arrivals(direction: usize) -> [u32; 2] {
    let (mut whole, mut damaged) = (0, 0);
    let fates = bad().fates()[direction].clone().take(FRAMES);
    for fate in fates.filter(|fate| !fate.lost) {
        damaged += u32::from(fate.damage.is_some());
        whole += u32::from(fate.damage.is_none()) + u32::from(fate.duplicated);
    }
    [whole, damaged]
}

fn send_all(board: &mut Board) {
    for _ in 0..FRAMES {
        board.send(b"frame");
    }
}

fn until_arrived(board: &mut Board, [whole, damaged]: [u32; 2]) {
    board.until(dummy::RECEIVED, whole);
    board.until(dummy::DAMAGED, damaged);
}

#[test]
fn a_link_delivers_each_frame_by_its_fate_again_and_again() {
    for _ in 0..2 {
        let [mut one, mut other] = boards();
        wire::connect([&one.port, &other.port], &bad(), None).unwrap();
        send_all(&mut one);
        until_arrived(&mut other, arrivals(0));
    }
}

#[test]
fn frames_between_two_processes_meet_the_fates_that_they_would_meet_within_one() {
    assert_ne!(arrivals(0), arrivals(1));
    let [mut one, mut other] = boards();
    let (near, far) = UnixDatagram::pair().unwrap();
    wire::connect_socket(&one.port, near, &bad(), Half::First, None).unwrap();
    wire::connect_socket(&other.port, far, &bad(), Half::Second, None).unwrap();
    send_all(&mut one);
    until_arrived(&mut other, arrivals(0));
    send_all(&mut other);
    until_arrived(&mut one, arrivals(1));
}

#[test]
fn a_socket_whose_other_end_only_carries_has_its_link_here_in_both_directions() {
    let [mut board, _] = boards();
    let (near, far) = UnixDatagram::pair().unwrap();
    far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    wire::connect_socket(&board.port, near, &bad(), Half::Both, None).unwrap();
    let [whole, _] = arrivals(0);
    let mut came = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| send_all(&mut board));
        for _ in 0..whole {
            let mut bytes = [0; 5];
            assert_eq!(far.recv(&mut bytes).unwrap(), 5);
            came.push(bytes);
        }
    });
    let are_whole = came.iter().all(|frame| frame == b"frame");
    assert!(are_whole, "no damaged frame leaves");
    far.set_nonblocking(true).unwrap();
    assert!(far.recv(&mut [0; 100]).is_err(), "nor one that is lost");
    far.set_nonblocking(false).unwrap();
    for _ in 0..FRAMES {
        far.send(b"frame").unwrap();
    }
    until_arrived(&mut board, arrivals(1));
}

#[test]
fn a_capture_at_a_socket_has_what_comes_as_it_arrives() {
    let [mut board, _] = boards();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wire.pcap");
    let capture = Capture::create(&path, 100).unwrap();
    let (near, far) = UnixDatagram::pair().unwrap();
    let link = Link {
        corrupt: chance(1_000_000),
        ..Link::default()
    };
    wire::connect_socket(&board.port, near, &link, Half::First, Some(capture)).unwrap();
    // As short as a frame may be: QEMU leaves padding to the receiver.
    let mut sent = [0; 60];
    sent[..7].copy_from_slice(b"a frame");
    far.send(b"a frame").unwrap();
    board.until(dummy::DAMAGED, 1);
    assert_eq!(flipped_bits(&path, &sent), 1);
}

/// In the only frame of a capture.
fn flipped_bits(path: &Path, sent: &[u8]) -> u32 {
    let bytes = fs::read(path).unwrap();
    assert_eq!(bytes.len(), 40 + sent.len());
    let pairs = bytes[40..].iter().zip(sent);
    pairs.map(|(one, other)| (one ^ other).count_ones()).sum()
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
    assert_eq!(flipped_bits(&path, b"a frame"), 1);
}
