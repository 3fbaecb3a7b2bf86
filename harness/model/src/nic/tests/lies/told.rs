// SPDX-License-Identifier: MIT OR Apache-2.0

//! What follows from a lie of each kind: a scene that is played with it and without.

use i82576::{limits::MAX_VECTORS, tx};

use super::*;
use crate::nic::receive::fields::{
    EOP, HASH_SHIFT, HBO, HDR_LEN_MASK, HDR_LEN_SHIFT, LENGTH_SHIFT, SPH, TS, VLAN_SHIFT, VP,
};

/// Where the ring and the buffer of another receiving queue are.
const OTHER: u16 = 3;
const OTHER_RING: u64 = 0x3000;
const OTHER_BUFFER: u64 = 0x1_8000;
/// What is received, and how much of it is payload.
const FRAMES: u64 = 3;
const LEN: usize = 100;
/// Their vectors.
const RX_VECTOR: u16 = 1;
const TX_VECTOR: u16 = 2;
const VALUE: u64 = 0x1234_5678_9abc_def0;

/// What a driver has seen when the scene is over.
#[derive(Debug, PartialEq)]
struct Seen {
    /// STATUS at first.
    status: u32,
    /// Causes in ICR once frames have come.
    causes: u32,
    /// Descriptors of the receiving queue, and those that were done, in their order.
    received: Vec<[u64; 2]>,
    done: Vec<u64>,
    /// What is in header and payload buffers, without zeros at its end.
    headers: Vec<Vec<u8>>,
    payload: Vec<Vec<u8>>,
    /// Whether the other queue has received.
    elsewhere: bool,
    /// Descriptors of the transmitting queue that are done, and how many frames were sent.
    reported: Vec<u64>,
    sent: usize,
    interrupts: Vec<u16>,
    /// The system time, and whether a timestamp of a sent frame is there.
    clock: u32,
    timestamp: bool,
    /// Whether the queue rests once it was disabled, and what the model refused.
    rests: bool,
    violations: usize,
}

/// Frames are received and sent, and the queue is disabled, by a port that lies once as `value` says.
fn scene(lie: Option<(Kind, u64)>) -> Seen {
    let port = &mut Port::new();
    for (reg, value) in [
        // Not the checksum over all bytes, which a wrong byte changes.
        (regs::RXCSUM, regs::rxcsum::PCSD),
        (regs::rdbal(OTHER), OTHER_RING as u32),
        (regs::rdlen(OTHER), 8 * 16),
        (
            regs::rxdctl(OTHER),
            rxdctl::ENABLE | regs::thresholds(8, 1, 1),
        ),
    ] {
        port.write(reg, value);
    }
    port.put(OTHER_RING, &rx::rx_read(OTHER_BUFFER, 0));
    port.write(regs::rdt(OTHER), 1);
    port.read(regs::ICR);
    port.host.interrupts.clear();
    let lies = lie.map(|(kind, value)| Lie::once(kind, value));
    let lies: Vec<_> = lies.into_iter().collect();
    port.nic.lie(&Plan { lies: lies.clone() });

    let status = port.read(regs::STATUS);
    port.post(8);
    port.host.written.clear();
    for n in 0..FRAMES {
        port.nic
            .receive(&segment(&[n as u8 + 1; LEN]), &mut port.host);
        port.later(100_000);
    }
    // A link that was down is up again.
    for _ in 0..2 {
        port.later(1_000_000_000);
    }
    let causes = port.read(regs::ICR);
    let ring = RX_RING..RX_RING + 8 * 16;
    let writes = port.host.written.iter().filter(|at| ring.contains(at));
    // The part that says that it is done is written last.
    let done = writes
        .filter(|at| *at % 16 != 0)
        .map(|at| (at - RX_RING) / 16);
    let done = done.collect();
    port.send(&segment(b"hello"), Data::default());
    port.later(1_000_000);
    port.write(regs::rxdctl(1), 0);
    port.later(1_000_000);
    let seen = Seen {
        status,
        causes,
        received: (0..8)
            .map(|n| [0, 8].map(|part| port.get(RX_RING + n * 16 + part)))
            .collect(),
        done,
        headers: filled(port, HEADERS, 0x100),
        payload: filled(port, PAYLOAD, 0x1000),
        elsewhere: rx::is_done(port.get(OTHER_RING + 8)),
        reported: (0..64)
            .filter(|n| tx::is_done(port.get(TX_RING + n * 16 + 8)))
            .collect(),
        sent: port.host.frames.len(),
        interrupts: port.host.interrupts.clone(),
        clock: port.read(regs::SYSTIML),
        timestamp: port.read(regs::TSYNCTXCTL) & regs::tsynctxctl::VALID != 0,
        rests: port.read(regs::rxdctl(1)) & rxdctl::ENABLE == 0,
        violations: port.nic.violations().len(),
    };
    assert_eq!(port.nic.told(), vec![1; lies.len()], "{lies:?}");
    seen
}

/// What is in the buffers from an address on.
fn filled(port: &Port, first: u64, size: usize) -> Vec<Vec<u8>> {
    let buffers = port.host.memory[first as usize..].chunks(size).take(8);
    let filled = |buffer: &[u8]| {
        buffer
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1)
    };
    buffers
        .map(|buffer| buffer[..filled(buffer)].to_vec())
        .collect()
}

/// Has the first descriptor say something else.
fn first(seen: Seen, change: impl FnOnce(&mut u64, &mut u64)) -> Seen {
    let mut seen = seen;
    let [low, high] = &mut seen.received[0];
    change(low, high);
    seen
}

/// What is seen in place of the truth.
fn expected(kind: Kind, value: u64, truth: Seen) -> Seen {
    let field = |raw: &mut u64, mask: u64, shift: u32, value: u64| {
        *raw = *raw & !(mask << shift) | (value & mask) << shift;
    };
    match kind {
        Kind::Length => first(truth, |_, high| field(high, 0xffff, LENGTH_SHIFT, 0)),
        Kind::HeaderLength => first(truth, |low, _| {
            field(low, HDR_LEN_MASK, HDR_LEN_SHIFT, value)
        }),
        Kind::SplitFlag => first(truth, |low, high| {
            *low ^= SPH;
            *high ^= HBO;
        }),
        // DD and EOP stay.
        Kind::Status => first(truth, |_, high| *high ^= value & 0xffff_fffc),
        Kind::PacketType => first(truth, |low, _| *low ^= value & 0x1_ffff),
        Kind::Hash => first(truth, |low, _| *low ^= value >> HASH_SHIFT << HASH_SHIFT),
        Kind::Vlan => first(truth, |_, high| {
            *high |= VP;
            field(high, 0xffff, VLAN_SHIFT, value);
        }),
        Kind::EndOfPacket => first(truth, |_, high| *high ^= EOP),
        Kind::Timestamp => first(truth, |_, high| *high |= TS),
        Kind::SpuriousCause => Seen {
            causes: truth.causes | value as u32,
            ..truth
        },
        Kind::Ones => Seen {
            status: u32::MAX,
            ..truth
        },
        Kind::Garbage => Seen {
            status: truth.status ^ value as u32,
            ..truth
        },
        Kind::Clock => Seen {
            clock: value as u32,
            timestamp: true,
            ..truth
        },
        Kind::Stuck => Seen {
            rests: false,
            ..truth
        },
        Kind::AfterStop => Seen {
            violations: 1,
            ..truth
        },
        Kind::LostInterrupt => {
            let mut seen = truth;
            seen.interrupts.remove(0);
            seen
        }
        Kind::SpuriousInterrupt => {
            let mut seen = truth;
            seen.interrupts
                .insert(0, (value % u64::from(MAX_VECTORS)) as u16);
            seen
        }
        Kind::Unsent => Seen { sent: 0, ..truth },
        Kind::NoReport => Seen {
            reported: vec![],
            ..truth
        },
        Kind::StrayReport => {
            let mut seen = truth;
            // One of the 32 that were or would have been before it.
            seen.reported.push(64 - value % 32);
            seen
        }
        Kind::Unsplit => {
            let mut seen = truth;
            let frame = segment(&[1; LEN]);
            seen.headers[0].clear();
            seen.payload[0].clone_from(&frame);
            first(seen, |low, high| {
                *low &= !SPH;
                // The header buffer's size, as for any that can't be split.
                field(low, HDR_LEN_MASK, HDR_LEN_SHIFT, 0x100);
                field(high, 0xffff, LENGTH_SHIFT, frame.len() as u64);
            })
        }
        Kind::Corrupt => {
            let mut seen = truth;
            seen.payload[0][value as usize % LEN] ^= 1;
            seen
        }
        Kind::NoData => {
            let mut seen = truth;
            seen.headers[0].clear();
            seen.payload[0].clear();
            seen
        }
        Kind::Missing => Seen {
            done: vec![1, 2],
            ..first(truth, |low, high| [*low, *high] = posted(0))
        },
        Kind::Late => Seen {
            done: vec![1, 0, 2],
            ..truth
        },
        Kind::Repeated => Seen {
            done: vec![0, 0, 1, 2],
            ..truth
        },
        Kind::Hang => Seen {
            sent: 0,
            reported: vec![],
            interrupts: vec![RX_VECTOR; 3],
            ..truth
        },
        Kind::LinkFlap => {
            // What came meanwhile is lost.
            let mut seen = truth;
            for n in 1..FRAMES {
                seen.received[n as usize] = posted(n);
                seen.headers[n as usize].clear();
                seen.payload[n as usize].clear();
            }
            Seen {
                causes: seen.causes | icr::LSC,
                done: vec![0],
                interrupts: vec![RX_VECTOR, TX_VECTOR],
                ..seen
            }
        }
        Kind::Lost | Kind::Queue => {
            // The others move up.
            let mut seen = truth;
            seen.received[FRAMES as usize - 1] = posted(FRAMES - 1);
            seen.done.pop();
            seen.interrupts.remove(0);
            for buffers in [&mut seen.headers, &mut seen.payload] {
                buffers.remove(0);
                buffers.push(vec![]);
            }
            seen.elsewhere = kind == Kind::Queue;
            seen
        }
        Kind::Premature | Kind::LostWrite => unreachable!("they have tests of their own"),
    }
}

#[test]
fn what_a_driver_sees_differs_as_the_lie_says_and_nothing_else_does() {
    for kind in Kind::ALL.into_iter().chain([Kind::AfterStop]) {
        if matches!(kind, Kind::Premature | Kind::LostWrite) {
            continue;
        }
        let seen = scene(Some((kind, VALUE)));
        assert_eq!(seen, expected(kind, VALUE, scene(None)), "{kind}");
    }
}

#[test]
fn a_descriptor_is_done_that_nothing_was_received_for_and_the_device_passes_over_it() {
    let seen = scene(Some((Kind::Premature, VALUE)));
    let made_up: Vec<_> = seen.done.iter().filter(|n| **n >= FRAMES).collect();
    assert!(
        made_up.len() == 1 && seen.done[..2] == [0, *made_up[0]],
        "{seen:?}"
    );
}

#[test]
fn buffers_whose_tail_was_lost_are_not_used() {
    let seen = scene(Some((Kind::LostWrite, VALUE)));
    assert_eq!((seen.done, seen.sent), (vec![], 1));
}
