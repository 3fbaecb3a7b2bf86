// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues: order, completions, interrupts, signals, and what stops them.

use engine::{
    descriptor::{Completion, Descriptor, Operation, SIZE, Status},
    fragment::Fragment,
    regs::{self, CONTROL, CONTROL_ENABLE, STATUS_BAD_RING, STATUS_RUNNING},
};

use super::{BASE, Bench, Event, MEMORY, SHARE, share};
use crate::engine::What;

/// Bytes of a fragment that takes several turns.
pub(super) const LONG: u32 = 0x1_8000;

/// Fills most of a queue's share.
pub(super) fn long() -> (Descriptor, [Fragment; 1]) {
    let task = Descriptor {
        operation: Operation::Fill,
        value: 0x0101_0101,
        destination: 0x8000,
        ..Descriptor::default()
    };
    let fragment = Fragment {
        len: LONG,
        ..Fragment::default()
    };
    (task, [fragment])
}

fn nothing() -> Descriptor {
    Descriptor {
        interrupt: true,
        signal: true,
        ..Descriptor::default()
    }
}

fn arm(bench: &mut Bench, address: u64, value: u32) {
    bench.set(0, regs::SIGNAL_LOW, address as u32);
    bench.set(0, regs::SIGNAL_HIGH, (address >> 32) as u32);
    bench.set(0, regs::SIGNAL_VALUE, value);
}

#[test]
fn the_status_is_written_last_then_the_signal_and_then_the_interrupt() {
    let mut bench = Bench::new();
    arm(&mut bench, BASE + 0x9_0000, 0x1234_5678);
    bench.execute(&nothing(), &[]);
    let completion = Completion {
        status: Status::Done,
        fragments: 0,
        bytes: 0,
    };
    let completion = completion.encode();
    let expected = [
        Event::Read(BASE, SIZE),
        Event::Write(BASE + 52, completion[4..].to_vec()),
        Event::Write(BASE + 48, completion[..4].to_vec()),
        Event::Write(BASE + 0x9_0000, vec![0x78, 0x56, 0x34, 0x12]),
        Event::Interrupt(0),
    ];
    assert_eq!(bench.memory.events, expected);
    assert_eq!(bench.head(0), 1);
}

#[test]
fn a_signal_is_sent_once_for_each_time_that_it_is_armed_and_not_after_an_error() {
    let mut bench = Bench::new();
    let place = BASE + 0x9_0000;
    let signals = |bench: &Bench| {
        let events = bench.memory.events.iter();
        events
            .filter(|event| matches!(event, Event::Write(address, _) if *address == place))
            .count()
    };
    bench.execute(&nothing(), &[]);
    assert_eq!(signals(&bench), 0);
    arm(&mut bench, place, 1);
    let quiet = Descriptor {
        signal: false,
        ..nothing()
    };
    bench.execute(&quiet, &[]);
    let wrong = Descriptor {
        operation: Operation::Copy,
        source: u64::MAX,
        ..nothing()
    };
    let done = bench.execute(&wrong, &[Fragment::default()]);
    assert_eq!(done.unwrap().status, Status::Outside);
    assert_eq!(signals(&bench), 0);
    bench.execute(&nothing(), &[]);
    bench.execute(&nothing(), &[]);
    assert_eq!(signals(&bench), 1);
    arm(&mut bench, place, 2);
    bench.set(0, CONTROL, 0);
    bench.run();
    bench.set(0, CONTROL, CONTROL_ENABLE);
    bench.tails[0] = 0;
    bench.execute(&nothing(), &[]);
    assert_eq!(signals(&bench), 1, "disabling disarms");
    assert_eq!(bench.violations(), []);
    arm(&mut bench, BASE + MEMORY as u64, 3);
    bench.execute(&nothing(), &[]);
    assert_eq!(bench.violations(), [(What::Unreachable, 0)]);
}

#[test]
fn a_signal_is_sent_or_disarmed_and_the_device_says_which() {
    let mut bench = Bench::new();
    let status = |bench: &mut Bench| bench.get(0, regs::SIGNAL_STATUS);
    assert_eq!(status(&mut bench), 0);
    arm(&mut bench, BASE + 0x9_0000, 1);
    assert_eq!(status(&mut bench), regs::SIGNAL_ARMED);
    bench.set(0, regs::SIGNAL_STATUS, 0);
    assert_eq!(status(&mut bench), 0);
    bench.execute(&nothing(), &[]);
    assert_eq!(status(&mut bench), 0, "it was disarmed in time");

    arm(&mut bench, BASE + 0x9_0000, 1);
    bench.execute(&nothing(), &[]);
    assert_eq!(status(&mut bench), regs::SIGNAL_SENT);
    bench.set(0, regs::SIGNAL_STATUS, 0);
    assert_eq!(status(&mut bench), regs::SIGNAL_SENT, "it was too late");
    arm(&mut bench, BASE + 0x9_0000, 1);
    assert_eq!(status(&mut bench), regs::SIGNAL_ARMED);
}

#[test]
fn descriptors_are_executed_in_order_and_around_the_end_of_the_ring() {
    let mut bench = Bench::new();
    for round in 0..3 {
        for value in 0..3 {
            let task = Descriptor {
                operation: Operation::Fill,
                value,
                destination: 0x8000,
                ..Descriptor::default()
            };
            let fragment = Fragment {
                len: 4,
                ..Fragment::default()
            };
            bench.put(0, &task, &[fragment]);
        }
        bench.ring(0);
        bench.run();
        assert_eq!(bench.head(0), 3 * (round + 1));
        assert_eq!(bench.bytes(0, 0x8000, 4), [2, 0, 0, 0]);
    }
}

#[test]
fn long_work_is_done_in_turns() {
    let mut bench = Bench::new();
    let (task, fragments) = long();
    for queue in [1, 4] {
        bench.put(queue, &task, &fragments);
        bench.ring(queue);
    }
    let mut turns = Vec::new();
    while bench.elapse() == Some(bench.now) {
        let writes = bench.memory.events.drain(..);
        let bytes = writes.filter_map(|event| match event {
            Event::Write(address, bytes) => Some(((address - BASE) / SHARE, bytes.len())),
            _ => None,
        });
        let bytes: Vec<_> = bytes.collect();
        let total: usize = bytes.iter().map(|(_, len)| len).sum();
        assert!(total <= 0x2_0000, "{total}");
        turns.extend(bytes.first().map(|(queue, _)| *queue));
    }
    assert!(
        turns.starts_with(&[1, 4, 1, 4]) || turns == [1, 4, 1],
        "{turns:?}"
    );
    for queue in [1, 4] {
        let done = bench.completion(queue).unwrap();
        assert_eq!((done.status, done.bytes), (Status::Done, LONG.into()));
    }
}

#[test]
fn many_small_descriptors_take_several_turns() {
    let mut bench = Bench::new();
    let fragments = [Fragment::default(); 0x1000];
    let task = Descriptor {
        operation: Operation::Fill,
        destination: 0x1_8000,
        ..Descriptor::default()
    };
    bench.put(0, &task, &fragments);
    bench.ring(0);
    assert_eq!(bench.elapse(), Some(bench.now));
    assert!(bench.memory.events.len() <= 1024);
    bench.run();
    assert_eq!(bench.completion(0).unwrap().fragments, 0x1000);
}

#[test]
fn a_tail_beyond_the_ring_stops_the_queue_until_it_is_enabled_again() {
    for tail in [5, u32::MAX] {
        let mut bench = Bench::new();
        bench.write(regs::portal(3) + regs::TAIL, tail);
        bench.run();
        assert_eq!(bench.status(3), STATUS_BAD_RING);
        assert_eq!(bench.memory.events, [Event::Interrupt(3)]);
        bench.put(3, &nothing(), &[]);
        bench.ring(3);
        bench.run();
        assert_eq!(bench.completion(3), None);
        bench.set(3, CONTROL, 0);
        bench.set(3, CONTROL, CONTROL_ENABLE);
        assert_eq!(bench.status(3), STATUS_RUNNING);
        bench.ring(3);
        bench.run();
        assert_eq!(bench.completion(3).unwrap().status, Status::Done);
        assert_eq!(bench.violations(), []);
    }
}

#[test]
fn a_ring_that_is_not_in_its_window_is_none() {
    let bad = [
        (regs::RING_SIZE, 11),
        (regs::RING_WINDOW, 1),
        (regs::RING_WINDOW, 16),
        (regs::RING_WINDOW, 256),
        (regs::RING_OFFSET_LOW, 32),
        (regs::RING_OFFSET_LOW, SHARE as u32 - 192),
        (regs::RING_OFFSET_HIGH, u32::MAX),
    ];
    for (register, value) in bad {
        let mut bench = Bench::new();
        bench.set(0, CONTROL, 0);
        bench.run();
        bench.set(0, register, value);
        bench.set(0, CONTROL, CONTROL_ENABLE);
        assert_eq!(bench.status(0), STATUS_BAD_RING, "{register:#x} {value:#x}");
        assert_eq!(bench.memory.events, [Event::Interrupt(0)]);
    }
    let mut bench = Bench::new();
    bench.put(0, &nothing(), &[]);
    bench.open(0, 0, BASE, 0);
    bench.ring(0);
    bench.run();
    assert_eq!(bench.status(0), STATUS_BAD_RING);
    assert_eq!(bench.violations(), [(What::Closed, 0)]);
}

#[test]
fn where_nothing_answers_there_is_a_fault_of_the_driver() {
    let mut bench = Bench::new();
    let (task, fragments) = long();
    let task = Descriptor {
        destination_window: 1,
        ..task
    };
    for base in [BASE + MEMORY as u64, u64::MAX - 0x1000] {
        bench.open(0, 1, base, 1 << 32);
        let done = bench.execute(&task, &fragments).unwrap();
        assert_eq!((done.status, done.fragments), (Status::Fault, 0));
        assert!(bench.violations().contains(&(What::Unreachable, 0)));
    }
    bench.set(1, CONTROL, 0);
    bench.run();
    bench.open(1, 0, BASE + MEMORY as u64, 0x1000);
    bench.set(1, CONTROL, CONTROL_ENABLE);
    bench.ring(1);
    assert_eq!(bench.status(1), STATUS_RUNNING);
    bench.write(regs::portal(1) + regs::TAIL, 1);
    bench.run();
    assert_eq!(bench.status(1), STATUS_BAD_RING);
    assert_eq!(bench.violations(), [(What::Unreachable, 1)]);
}

#[test]
fn what_makes_no_sense_is_completed_with_its_interrupt() {
    let mut bench = Bench::new();
    bench.put(0, &nothing(), &[]);
    bench.bytes(0, 0, 1)[0] = 0xff;
    bench.ring(0);
    bench.run();
    assert_eq!(bench.completion(0).unwrap().status, Status::Malformed);
    assert_eq!(bench.memory.events.last(), Some(&Event::Interrupt(0)));
    assert_eq!((bench.head(0), bench.status(0)), (1, STATUS_RUNNING));
}

#[test]
fn a_queue_that_is_disabled_rests_some_time_later_and_completes_nothing_more() {
    let mut bench = Bench::new();
    let (task, fragments) = long();
    bench.put(0, &task, &fragments);
    bench.ring(0);
    bench.elapse();
    bench.set(0, CONTROL, 0);
    assert_eq!(bench.status(0), STATUS_RUNNING);
    let deadline = bench.elapse().unwrap();
    bench.now = deadline - 2;
    bench.elapse();
    assert_eq!(bench.status(0), STATUS_RUNNING);
    bench.elapse();
    assert_eq!(bench.status(0), 0);
    bench.run();
    assert_eq!((bench.completion(0), bench.head(0)), (None, 0));
    bench.set(0, CONTROL, CONTROL_ENABLE);
    bench.ring(0);
    bench.run();
    assert_eq!(bench.completion(0).unwrap().bytes, LONG.into());
    assert_eq!(bench.violations(), []);
    bench.set(0, CONTROL, 0);
    bench.set(0, CONTROL, CONTROL_ENABLE);
    assert_eq!(bench.violations(), [(What::Early, 0)]);
}

#[test]
fn a_window_is_closed_or_moved_only_while_its_queue_rests() {
    let mut bench = Bench::new();
    bench.open(0, 1, BASE, 0x1000);
    bench.open(0, 1, BASE, 0x1000);
    assert_eq!(bench.violations(), []);
    bench.open(0, 1, BASE + 0x1000, 0x1000);
    bench.open(0, 1, 0, 0);
    assert_eq!(bench.violations(), [(What::Closed, 0); 2]);
    bench.open(0, 1, BASE, 0x1000);
    bench.set(0, CONTROL, 0);
    bench.run();
    bench.open(0, 1, 0, 0);
    assert_eq!(bench.violations(), []);
}

#[test]
fn a_reset_stops_all_at_once_and_closes_all_windows() {
    let mut bench = Bench::new();
    let (task, fragments) = long();
    bench.put(0, &task, &fragments);
    bench.ring(0);
    bench.elapse();
    bench.write(regs::RESET, 0);
    assert_eq!(bench.status(0), STATUS_RUNNING);
    bench.write(regs::RESET, 1);
    let events = bench.memory.events.len();
    assert_eq!(bench.elapse(), None);
    assert_eq!(bench.memory.events.len(), events);
    assert_eq!(bench.engine.read(regs::RESET), 0);
    for queue in 0..regs::QUEUES {
        assert_eq!((bench.status(queue), bench.get(queue, CONTROL)), (0, 0));
        bench.set(queue, CONTROL, CONTROL_ENABLE);
        assert_eq!(bench.status(queue), STATUS_BAD_RING, "window 0 is closed");
    }
}

#[test]
fn no_queue_reaches_what_is_anothers() {
    let mut bench = Bench::new();
    let task = Descriptor {
        operation: Operation::Copy,
        source: SHARE - 16,
        destination: 0x8000,
        ..Descriptor::default()
    };
    let fragment = |len| Fragment {
        len,
        ..Fragment::default()
    };
    bench.bytes(1, 0, 16).fill(7);
    let done = bench.execute(&task, &[fragment(16), fragment(17)]).unwrap();
    let expected = (Status::Outside, 1, 16);
    assert_eq!((done.status, done.fragments, done.bytes), expected);
    assert_eq!(bench.bytes(0, 0x8000, 17), [0; 17]);
    assert_eq!(share(1), BASE + SHARE);
}

#[test]
fn a_fragment_is_looked_at_as_a_whole_before_any_of_it_is_done() {
    let mut bench = Bench::new();
    let (task, _) = long();
    let fragment = Fragment {
        len: LONG + 1,
        ..Fragment::default()
    };
    let expected = Completion {
        status: Status::Outside,
        fragments: 0,
        bytes: 0,
    };
    assert_eq!(bench.execute(&task, &[fragment]), Some(expected));
    assert_eq!(bench.bytes(0, 0x8000, 1), [0]);
    let closed = Descriptor {
        destination_window: 1,
        destination: 0,
        ..task
    };
    let done = bench.execute(&closed, &[Fragment::default()]);
    assert_eq!(
        done,
        Some(expected),
        "not even no bytes are in a closed window"
    );
}
