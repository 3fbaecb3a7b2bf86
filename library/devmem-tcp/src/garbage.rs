// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the kernel never sends: any bytes as control messages, netlink's answers, and rules. Nothing may panic.
//!
//! Netlink's headers and its refusals are decoded by [`crate::netlink`]. The generic header behind them and the
//! attributes are by `netlink-bindings`, through whatever here takes what that returns.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use crate::cmsg::{self, Message};
use crate::completion::Notice;
use crate::ethtool::{Ethtool, flow_rules::wire};
use crate::interface::Interface;
use crate::link;
use crate::netdev::{Netdev, RxBinding};
use crate::netlink::{Answer, HEADER, Netlink, answers};
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
        for _ in 0..replies {
            message(datagram, FAMILY, 0, sequence, |payload| {
                // struct genlmsghdr
                payload.extend_from_slice(&[0; 4]);
                self.attributes(payload, 2);
            });
        }
        if self.below(8) == 0 {
            self.refusal(datagram, sequence);
        }
        message(datagram, NLMSG_DONE, 0, sequence, |payload| {
            payload.extend_from_slice(&[0; 4]);
        });
    }

    /// Adds a refusal with an extended acknowledgement, of which any part may be spoilt.
    fn refusal(&mut self, datagram: &mut Vec<u8>, sequence: u32) {
        const ERRNOS: [i32; 6] = [1, 2, 19, 22, 34, 95];
        let kind = [NLMSG_ERROR, NLMSG_DONE][self.below(2)];
        // NLM_F_CAPPED and NLM_F_ACK_TLVS, mostly.
        let flags = [0x300, 0x300, 0x200, self.next() as u16][self.below(4)];
        let start = datagram.len();
        message(datagram, kind, flags, sequence, |payload| {
            payload.extend_from_slice(&(-ERRNOS[self.below(6)]).to_ne_bytes());
            if kind == NLMSG_ERROR {
                // The request's header, and the request.
                let len = [HEADER, HEADER, 40, self.below(100)][self.below(4)];
                payload.extend_from_slice(&(len as u32).to_ne_bytes());
                let repeated = [HEADER, len][self.below(2)];
                self.bytes(payload, repeated.saturating_sub(4));
                pad(payload);
            }
            // NLMSGERR_ATTR_MSG and NLMSGERR_ATTR_OFFS
            attribute(payload, 1, b"queue has a memory provider\0");
            attribute(payload, 2, &(self.below(100) as u32).to_ne_bytes());
            self.attributes(payload, 1);
        });
        if self.below(2) == 0 {
            self.spoil(datagram, start);
            pad(datagram);
        }
    }
}

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// The id of the families that answer.
const FAMILY: u16 = 30;

/// Fills up to the alignment of netlink.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Adds an attribute.
fn attribute(all: &mut Vec<u8>, kind: u16, value: &[u8]) {
    all.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    all.extend_from_slice(&kind.to_ne_bytes());
    all.extend_from_slice(value);
    pad(all);
}

/// Adds a netlink message: header and payload, padded.
fn message(
    all: &mut Vec<u8>,
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: impl FnOnce(&mut Vec<u8>),
) {
    let start = all.len();
    all.extend_from_slice(&[0; HEADER]);
    payload(all);
    let len = (all.len() - start) as u32;
    all[start..][..4].copy_from_slice(&len.to_ne_bytes());
    all[start + 4..][..2].copy_from_slice(&kind.to_ne_bytes());
    all[start + 6..][..2].copy_from_slice(&flags.to_ne_bytes());
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
        described += u64::from(received.fill(1, bytes, &control, &[0; 300]).is_ok());
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
fn a_million_garbled_links_and_rules_are_decoded_without_a_panic() {
    let mut random = Random(3);
    let (mut links, mut rules) = (0, 0);
    let mut bytes = Vec::new();
    for _ in 0..INPUTS {
        bytes.clear();
        // struct ifinfomsg
        random.bytes(&mut bytes, 16);
        random.attributes(&mut bytes, 1);
        random.spoil(&mut bytes, 0);
        links += u64::from(link::decode(&bytes).is_some());

        bytes.clear();
        // struct ethtool_rxnfc, in which the flow's type is mostly one that is known, and the action small.
        random.bytes(&mut bytes, 16);
        let flags = [0, 0x8000_0000, 0x2000_0000][random.below(3)];
        bytes.extend_from_slice(&(random.below(9) as u32 | flags).to_ne_bytes());
        random.bytes(&mut bytes, 148);
        bytes.extend_from_slice(&(random.below(3) as u64).to_ne_bytes());
        random.bytes(&mut bytes, 20);
        random.spoil(&mut bytes, 0);
        rules += u64::from(wire::parse(&bytes).is_some());
    }
    assert!(links > 0 && rules > INPUTS / 10, "{links}, {rules}");
}

#[test]
fn a_million_garbled_netlink_messages_and_refusals_are_decoded_without_a_panic() {
    let mut random = Random(4);
    let mut datagram = Vec::new();
    let (mut replies, mut refusals, mut worded, mut pointed) = (0, 0, 0, 0);
    let mut inputs = 0;
    while inputs < INPUTS {
        datagram.clear();
        for _ in 0..8 {
            match random.below(4) {
                // Any type and flags, and no room for a generic header, or some.
                0 => {
                    let (kind, flags) = (random.below(40) as u16, random.next() as u16);
                    message(&mut datagram, kind, flags, 7, |payload| {
                        let len = random.below(8);
                        random.bytes(payload, len);
                    });
                }
                _ => random.refusal(&mut datagram, 7),
            }
        }
        if random.below(4) == 0 {
            random.spoil(&mut datagram, 0);
        }
        inputs += 8;
        let mut count = 0;
        for answer in answers(&datagram, 7) {
            count += 1;
            match answer {
                Answer::Reply { .. } => replies += 1,
                Answer::Finished { .. } => {}
                Answer::Refused(refusal) => {
                    assert!(!refusal.to_string().is_empty());
                    refusals += 1;
                    worded += u64::from(refusal.extack.is_some());
                    pointed += u64::from(refusal.bad_attribute.is_some());
                }
            }
        }
        assert!(count <= datagram.len() / HEADER, "it goes on: {datagram:?}");
    }
    let counts = [replies, refusals, worded, pointed];
    assert!(counts.iter().all(|&it| it > INPUTS / 20), "{counts:?}");
}

#[test]
fn a_million_garbled_netlink_answers_are_decoded_without_a_panic() {
    const LO: Interface = Interface::from_index(1);
    const OF_NETDEV: [fn(&mut Netdev) -> bool; 7] = [
        // Whose refusals are looked into for what does not hold.
        |netdev| {
            let nothing = std::io::stdin();
            let binder = RxBinding::to(LO).queue(1).rx_page_size(8192);
            let netlink = mem::take(&mut netdev.netlink);
            binder.bind_over(netlink, nothing.as_fd()).is_ok()
        },
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
