// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the kernel never sends: any bytes as control messages and as netlink's answers. Nothing may panic.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

use crate::cmsg::{self, Message};
use crate::completion::Notice;
use crate::ethtool::Ethtool;
use crate::interface::Interface;
use crate::netdev::Netdev;
use crate::netlink::Netlink;
use crate::rx::Received;

/// Inputs of each test.
const INPUTS: u64 = 1_000_000;

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: u64) -> usize {
        (self.next() % limit) as usize
    }

    /// Adds bytes.
    fn bytes(&mut self, all: &mut Vec<u8>, len: usize) {
        for at in (0..len).step_by(8) {
            let word = self.next().to_ne_bytes();
            all.extend_from_slice(&word[..(len - at).min(8)]);
        }
    }

    /// Changes some bytes from `start` on, and cuts some off, or not.
    fn spoil(&mut self, bytes: &mut Vec<u8>, start: usize) {
        for _ in 0..self.below(4) {
            let at = self.below((bytes.len() - start).max(1) as u64);
            if let Some(byte) = bytes.get_mut(start + at) {
                *byte = self.next() as u8;
            }
        }
        if self.below(4) == 0 {
            let len = self.below((bytes.len() - start) as u64 + 1);
            bytes.truncate(start + len);
        }
    }

    /// Control messages of the kinds that are decoded, spoilt.
    fn control(&mut self) -> Vec<u8> {
        const KINDS: [(i32, i32); 4] = [
            (libc::SOL_SOCKET, libc::SCM_DEVMEM_DMABUF),
            (libc::SOL_SOCKET, libc::SCM_DEVMEM_LINEAR),
            (libc::SOL_IP, libc::IP_RECVERR),
            (libc::SOL_IPV6, libc::IPV6_RECVERR),
        ];
        let mut control = Vec::new();
        for _ in 0..self.below(5) {
            let (level, kind) = KINDS[self.below(4)];
            let len = self.below(40);
            let mut data = Vec::new();
            self.bytes(&mut data, len);
            // Lengths that may fit, and the origin of completions.
            data.iter_mut().skip(9).take(3).for_each(|byte| *byte = 0);
            data.iter_mut().skip(4).take(1).for_each(|byte| *byte = 5);
            let data = &data;
            cmsg::push(&mut control, Message { level, kind, data });
        }
        self.spoil(&mut control, 0);
        control
    }

    /// Adds attributes in attributes, spoilt.
    fn attributes(&mut self, all: &mut Vec<u8>, depth: u32) {
        let start = all.len();
        for _ in 0..self.below(6) {
            let header = all.len();
            let kinds = [6, 34][self.below(2)];
            let kind = self.below(kinds) as u16;
            all.extend_from_slice(&[0; 4]);
            match self.below(4) {
                0 if depth > 0 => self.attributes(all, depth - 1),
                1 => self.bytes(all, 4),
                2 => all.extend_from_slice(&(self.below(3) as u32).to_ne_bytes()),
                _ => {
                    let len = self.below(20);
                    self.bytes(all, len);
                }
            }
            let len = (all.len() - header) as u16;
            all[header..][..2].copy_from_slice(&len.to_ne_bytes());
            all[header + 2..][..2].copy_from_slice(&kind.to_ne_bytes());
            pad(all);
        }
        if self.below(2) == 0 {
            self.spoil(all, start);
        }
    }

    /// Adds replies to the request with this number, and their end: a datagram of netlink's.
    fn answer(&mut self, datagram: &mut Vec<u8>, sequence: u32, replies: usize) {
        const NLMSG_DONE: u16 = 3;
        for _ in 0..replies {
            message(datagram, FAMILY, sequence, |payload| {
                // struct genlmsghdr
                payload.extend_from_slice(&[0; 4]);
                self.attributes(payload, 2);
            });
        }
        message(datagram, NLMSG_DONE, sequence, |payload| {
            payload.extend_from_slice(&[0; 4]);
        });
    }
}

/// The id of the families that answer.
const FAMILY: u16 = 30;

/// Fills up to the alignment of netlink.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Adds a netlink message: header and payload, padded.
fn message(all: &mut Vec<u8>, kind: u16, sequence: u32, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = all.len();
    all.extend_from_slice(&[0; 16]);
    payload(all);
    let len = (all.len() - start) as u32;
    all[start..][..4].copy_from_slice(&len.to_ne_bytes());
    all[start + 4..][..2].copy_from_slice(&kind.to_ne_bytes());
    all[start + 8..][..4].copy_from_slice(&sequence.to_ne_bytes());
    pad(all);
}

/// A client whose requests to `family` have these answers, one after the other; and the kernel's end.
fn answered(family: &'static [u8], answers: &[Vec<u8>; 2]) -> (Netlink, UnixDatagram) {
    let (ours, kernels) = UnixDatagram::pair().expect("sockets");
    // Whoever asks for more gets EAGAIN.
    ours.set_nonblocking(true).expect("non-blocking");
    for answer in answers {
        kernels.send(answer).expect("room");
    }
    (Netlink::over(OwnedFd::from(ours), family, FAMILY), kernels)
}

#[test]
fn a_million_garbled_control_messages_are_decoded_without_a_panic() {
    let mut random = Random(1);
    let mut received = Received::default();
    let (mut described, mut completed) = (0, 0);
    for _ in 0..INPUTS {
        let control = random.control();
        let bytes = random.below(2000);
        described += u64::from(received.fill(bytes, &control, &[0; 300]).is_ok());
        for message in cmsg::messages(&control) {
            completed += u64::from(matches!(Notice::decode(message), Ok(Some(_))));
        }
    }
    // Most of it is of a form that gets far.
    assert!(
        described > 0 && completed > INPUTS / 10,
        "{described}, {completed}"
    );
}

#[test]
fn a_million_garbled_netlink_answers_are_decoded_without_a_panic() {
    const LO: Interface = Interface::from_index(1);
    const OF_NETDEV: [fn(&mut Netdev) -> bool; 6] = [
        |netdev| netdev.queues(LO).is_ok(),
        |netdev| netdev.napis(LO).is_ok(),
        |netdev| netdev.all_page_pools().is_ok(),
        |netdev| netdev.page_pool_stats().is_ok(),
        |netdev| netdev.device_stats(LO).is_ok(),
        |netdev| netdev.queue_stats(LO).is_ok(),
    ];
    const OF_ETHTOOL: [fn(&mut Ethtool) -> bool; 8] = [
        |ethtool| ethtool.standard_stats(LO).is_ok(),
        |ethtool| ethtool.features(LO).is_ok(),
        |ethtool| ethtool.coalesce(LO).is_ok(),
        |ethtool| ethtool.rings(LO).is_ok(),
        |ethtool| ethtool.channels(LO).is_ok(),
        |ethtool| ethtool.pause(LO).is_ok(),
        |ethtool| ethtool.rss(LO).is_ok(),
        |ethtool| ethtool.link_modes(LO).is_ok(),
    ];
    let mut random = Random(2);
    let mut decoded = [0_u64; OF_NETDEV.len() + OF_ETHTOOL.len()];
    let mut inputs = 0;
    let mut answers = [Vec::new(), Vec::new()];
    for which in (0..decoded.len()).cycle() {
        // One reply, or many. Most ask once, so that the second answer is a short one.
        let count = [1, 64][random.below(2)];
        inputs += count as u64;
        for ((answer, replies), sequence) in answers.iter_mut().zip([count, 1]).zip(1..) {
            answer.clear();
            random.answer(answer, sequence, replies);
        }
        let ok = match OF_NETDEV.get(which) {
            Some(ask) => {
                let (netlink, _kernel) = answered(b"netdev", &answers);
                ask(&mut Netdev { netlink })
            }
            None => {
                let (netlink, _kernel) = answered(b"ethtool", &answers);
                OF_ETHTOOL[which - OF_NETDEV.len()](&mut Ethtool { netlink })
            }
        };
        decoded[which] += u64::from(ok);
        if inputs >= INPUTS {
            break;
        }
    }
    // Some of nearly each gets to the end.
    let some = decoded.iter().filter(|&&count| count > 0).count();
    assert!(some + 1 >= decoded.len(), "{decoded:?}");
}
