// SPDX-License-Identifier: MIT OR Apache-2.0

//! The engine of an accelerator: what it does with memory, and that it reaches nothing else.

use cases::{
    ACCELERATOR, Family, Result, Stream, Testbed, assert_refused, place, symbols::entries,
};
use libc::{EBUSY, ESRCH};
use protocol::{
    DevmemGather,
    bytes::Bytes,
    engine::{Execute, Executed, Operation, Outcome, Status, Step},
    measure::{Edge, MarkWindow},
};
use vm::counter::{Accesses, Watch};

const MIB: u64 = 1 << 20;
/// All that is received and gathered.
const BYTES: u64 = 8 * MIB;
/// The queue that device memory is bound to.
const BOUND: u32 = 1;

fn execute(pieces: &[&[u8]], steps: &[Step]) -> Execute {
    Execute {
        engine: 0,
        besides: 0,
        memory: ACCELERATOR,
        timeout_ms: 60_000,
        marked: false,
        pieces: pieces.iter().map(|piece| Bytes(piece.to_vec())).collect(),
        steps: steps.to_vec(),
    }
}

/// Has all steps completed. Returns what became of them, and of the pieces of memory.
fn carry_out(bed: &Testbed, request: Execute) -> Result<(Vec<Outcome>, Vec<Bytes>)> {
    let Executed {
        outcomes,
        failure,
        pieces,
    } = bed.guest.call(request)?;
    assert_eq!(failure, None, "after {outcomes:?}");
    Ok((outcomes, pieces))
}

/// From the first piece of memory to the second.
fn step(operation: Operation, fragments: &[(u32, u32, u64)]) -> Step {
    Step {
        operation,
        source: 0,
        destination: 1,
        value: 0,
        fragments: fragments.to_vec(),
    }
}

fn outcome(status: Status, fragments: u32, bytes: u64) -> Outcome {
    Outcome {
        status,
        fragments,
        bytes,
    }
}

#[test]
fn an_engine_copies_fills_compares_and_adds() -> Result {
    let bed = Testbed::engine("engine")?;
    let numbers: Vec<u8> = (0..64_u8).collect();

    let (outcomes, pieces) = carry_out(
        &bed,
        execute(
            &[&numbers, &[0xee; 64]],
            &[
                // Out of order, of odd lengths, and next to each other at the destination.
                step(Operation::Copy, &[(40, 7, 0), (3, 9, 7), (63, 1, 16)]),
                Step {
                    value: 0x0403_0201,
                    ..step(Operation::Fill, &[(0, 6, 20), (0, 3, 30)])
                },
                step(Operation::Compare, &[(40, 7, 0), (3, 9, 7)]),
                step(Operation::Compare, &[(40, 7, 0), (3, 9, 8)]),
                step(Operation::Copy, &[]),
            ],
        ),
    )?;
    assert_eq!(
        outcomes,
        [
            outcome(Status::Done, 3, 17),
            outcome(Status::Done, 2, 9),
            outcome(Status::Done, 2, 16),
            outcome(Status::Different, 1, 7),
            outcome(Status::Done, 0, 0),
        ]
    );
    let mut expected = [0xee; 64];
    expected[..7].copy_from_slice(&numbers[40..47]);
    expected[7..16].copy_from_slice(&numbers[3..12]);
    expected[16] = 63;
    expected[20..26].copy_from_slice(&[1, 2, 3, 4, 1, 2]);
    expected[30..33].copy_from_slice(&[1, 2, 3]);
    assert_eq!(pieces[0].0, numbers, "sources stay as they are");
    assert_eq!(pieces[1].0, expected);

    // 1.5 + 2.25 and so on; bfloat16 is the upper half of a binary32.
    let floats =
        |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let halves = |values: &[f32]| -> Vec<u8> {
        let upper = values.iter().map(|v| (v.to_bits() >> 16) as u16);
        upper.flat_map(u16::to_le_bytes).collect()
    };
    let (a, b) = ([1.5, -3.0, 1e30], [2.25, 3.0, 1e30]);
    let sums = [3.75, 0.0, 2e30];
    let (outcomes, pieces) = carry_out(
        &bed,
        execute(
            &[&floats(&a), &floats(&b)],
            &[step(Operation::SumF32, &[(0, 12, 0)])],
        ),
    )?;
    assert_eq!(outcomes, [outcome(Status::Done, 1, 12)]);
    assert_eq!(pieces[1].0, floats(&sums));
    let (a, b) = ([1.5, -3.0], [2.25, 3.0]);
    let (outcomes, pieces) = carry_out(
        &bed,
        execute(
            &[&halves(&a), &halves(&b)],
            &[
                step(Operation::SumBf16, &[(0, 4, 0)]),
                step(Operation::SumBf16, &[(0, 3, 0)]),
            ],
        ),
    )?;
    assert_eq!(outcomes[0], outcome(Status::Done, 1, 4));
    assert_eq!(outcomes[1].status, Status::Malformed);
    assert_eq!(pieces[1].0, halves(&sums[..2]));
    bed.finish()
}

#[test]
fn a_work_queue_reaches_nothing_but_what_was_imported_into_it() -> Result {
    let bed = Testbed::engine("engine-windows")?;
    // What others have: it must stay as it is.
    let other = bed.bind(bed.local, BOUND, ACCELERATOR, 4 * MIB)?;

    let page = [0x5a; 4096];
    let beyond = [
        (0, 1, 4096),
        (4096, 1, 0),
        (1, 4096, 0),
        (0, 4096, 1),
        (0, u32::MAX, 0),
        (u32::MAX, 1, 0),
        (0, 1, u64::MAX),
        (0, 2, u64::MAX),
    ];
    let steps: Vec<_> = beyond
        .iter()
        .map(|fragment| step(Operation::Copy, &[*fragment]))
        .chain([2, 14, 15, 250].map(|piece| Step {
            destination: piece,
            ..step(Operation::Copy, &[(0, 64, 0)])
        }))
        .chain([2, 14, 15, 250].map(|piece| Step {
            source: piece,
            ..step(Operation::Copy, &[(0, 64, 0)])
        }))
        .collect();
    let (outcomes, pieces) = carry_out(&bed, execute(&[&page, &page], &steps))?;
    for (step, outcome) in steps.iter().zip(&outcomes) {
        assert_eq!(
            (outcome.status, outcome.fragments),
            (Status::Outside, 0),
            "{step:?}"
        );
    }
    assert_eq!(outcomes.len(), steps.len());
    assert!(pieces.iter().all(|piece| piece.0 == page));

    // As many queues as there are, and no more; they are free again when they are closed.
    let all = Execute {
        besides: 7,
        ..execute(&[&page, &page], &[step(Operation::Copy, &[(0, 64, 0)])])
    };
    let (outcomes, _) = carry_out(&bed, all.clone())?;
    assert_eq!(outcomes, [outcome(Status::Done, 1, 64)]);
    let more = Execute { besides: 8, ..all };
    assert_refused(bed.guest.call(more), EBUSY, "a ninth work queue");
    other.stop()?;
    bed.finish()
}

/// A stream that only the host knows, which goes from accelerator memory into accelerator memory.
fn secret(bed: &Testbed) -> Stream {
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    stream.in_accelerator().unpredictable()
}

fn gather(stream: &Stream) -> DevmemGather {
    DevmemGather {
        ns: stream.to.ns,
        interface: stream.to.name(),
        queues: vec![BOUND],
        memory: ACCELERATOR,
        engine: 0,
        dmabuf_bytes: 4 * MIB,
        gathered_bytes: BYTES,
        listen: stream.to.socket(stream.family, stream.port),
    }
}

#[test]
fn descriptors_are_submitted_without_a_system_call() -> Result {
    let bed = Testbed::engine_options()
        .counted()
        .boot_steered("engine-portal")?;
    bed.load_engine()?;
    let steps = [(); 3].map(|()| step(Operation::Copy, &[(0, 64, 0), (64, 64, 128)]));
    let (outcomes, _) = carry_out(
        &bed,
        Execute {
            marked: true,
            ..execute(&[&[0x5a; 4096], &[0; 4096]], &steps)
        },
    )?;
    assert_eq!(outcomes, [outcome(Status::Done, 2, 128); 3]);
    for number in 0..3 {
        let calls = |window| {
            let window = bed.guest.window(window)?;
            entries(&window, |name| name == "entry_SYSCALL_64")
        };
        assert_eq!(calls(2 * number)?, 0, "step {number} is submitted");
        assert_ne!(calls(2 * number + 1)?, 0, "step {number} is waited for");
    }
    bed.finish()
}

#[test]
fn what_is_received_is_gathered_untouched_by_the_processor_and_leaves_no_trace_in_ram() -> Result {
    let options = Testbed::engine_options().counted();
    let bed = options.boot_steered("engine-gather")?;
    bed.load_engine()?;
    let stream = secret(&bed);
    let mut sink = bed.guest.start(gather(&stream))?;
    let received = sink.wait_event(place)?;
    let gathered = sink.wait_event(place)?;
    let mut watches = Watch::dmabuf("received into", &received);
    watches.extend(Watch::dmabuf("gathered in", &gathered));
    bed.guest.watch(&watches)?;

    bed.guest.call(MarkWindow { edge: Edge::Start })?;
    let source = stream.source_filled_by_host(&bed, BYTES)?;
    while sink.next_event(bed.guest.call_timeout())?.is_some() {}
    bed.guest.call(MarkWindow { edge: Edge::End })?;
    let window = bed.guest.window(0)?;
    assert_eq!(window.ranges.len(), 2);
    for (label, accesses) in &window.ranges {
        assert_eq!(*accesses, Accesses::default(), "{label}");
    }
    assert!(window.total().instructions > BYTES / 10, "it did the rest");

    // The memory is there as long as the job is.
    let mut bytes = vec![0; BYTES as usize];
    bed.guest.dmabuf(gathered)?.read(0, &mut bytes)?;
    assert!(
        bytes == stream.payload(BYTES),
        "the stream is in one piece, in order"
    );
    let traces = stream.traces_in_ram(&bed, BYTES)?;
    assert!(traces.is_empty(), "payload is in RAM: {traces:?}");
    let (sink, source) = (sink.join()?, source.join()?);
    assert_eq!(
        (sink.bytes, sink.linear_bytes, sink.end_of_stream),
        (BYTES, 0, true),
        "{sink:?}"
    );
    assert!(sink.descriptors > 0 && sink.fragments > 1, "{sink:?}");
    assert!(source.delivered && source.copied == 0, "{source:?}");
    bed.finish()
}

#[test]
fn an_engine_that_is_unbound_ends_its_users_and_works_when_it_is_bound_again() -> Result {
    let bed = Testbed::engine("engine-unbind")?;
    let address = bed.pci_address("engine")?;
    let tell = |what| bed.tell_driver("copy_engine", what, &address);
    bed.steer(bed.local, &[BOUND])?;
    let stream = secret(&bed);
    // Who rings the doorbell of a device that is gone gets a SIGBUS.
    let sink = bed.guest.start_process(gather(&stream))?;
    let (source, _) = stream.source_ready(&bed, BYTES)?;

    tell("unbind")?;
    source.tell(protocol::Command::Go)?;
    assert_refused(sink.join(), ESRCH, "what a process that has ended reports");
    source.stop()?;
    let page = [0x5a; 64];
    let steps = [step(Operation::Copy, &[(0, 64, 0)])];
    assert!(
        bed.guest.call(execute(&[&page, &[0; 64]], &steps)).is_err(),
        "there is no engine"
    );

    tell("bind")?;
    let (outcomes, pieces) = carry_out(&bed, execute(&[&page, &[0; 64]], &steps))?;
    assert_eq!(outcomes, [outcome(Status::Done, 1, 64)]);
    assert_eq!(pieces[1].0, page);
    bed.finish()
}
