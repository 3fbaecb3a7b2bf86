// SPDX-License-Identifier: MIT OR Apache-2.0

//! How the guest's processor touches payload: the counter in QEMU sees each load and store.
//!
//! It does not see accesses by devices. Here it shows that only devices touch payload in device
//! memory, and that it would notice any other access.

use cases::{ACCELERATOR, Family, Result, Stream, Testbed, place, symbols::entries};
use protocol::{
    Command, DevmemSink, JobSpec, Memory, Release,
    kernel::{ListFunctions, Symbol},
    measure::{Edge, MarkWindow},
};
use vm::{
    JobHandle, Topology,
    counter::{Accesses, Watch, Window},
};

const MIB: u64 = 1 << 20;
const BYTES: u64 = 8 * MIB;
/// Smaller than [`BYTES`], so buffers are recycled to the NIC meanwhile.
const RX_DMABUF: u64 = 4 * MIB;

/// Labels.
const RX: &str = "received into";
const TX: &str = "sent from";

fn boot(name: &str) -> Result<Testbed> {
    let bed = Testbed::options()
        .counted()
        .mtu(9000)
        .header_split()
        .accelerator(Topology::Switch)
        .boot(name)?;
    bed.steer(bed.local, &[1])?;
    Ok(bed)
}

/// The watches for a job's dma-buf.
fn watches<J: JobSpec>(job: &mut JobHandle<'_, J>, label: &str) -> Result<Vec<Watch>> {
    Ok(Watch::dmabuf(label, &job.wait_event(place)?))
}

fn mark(bed: &Testbed, edge: Edge) -> Result {
    Ok(bed.guest.call(MarkWindow { edge })?)
}

fn devmem_sink<'g>(
    bed: &'g Testbed,
    stream: &Stream,
    memory: Memory,
    verify: bool,
) -> Result<JobHandle<'g, DevmemSink>> {
    Ok(bed.guest.start(DevmemSink {
        memory,
        verify,
        ..stream.devmem_sink_spec(1, RX_DMABUF, Release::Immediate)
    })?)
}

/// Receives in a dma-buf; returns what the processor did from the binding to the end of the stream.
fn received(bed: &Testbed, stream: &Stream, memory: Memory, verify: bool) -> Result<Window> {
    let mut sink = devmem_sink(bed, stream, memory, verify)?;
    bed.guest.watch(&watches(&mut sink, RX)?)?;

    mark(bed, Edge::Start)?;
    let source = stream.source(bed, Some(BYTES), &[256 << 10], 0)?;
    // Joining the sink frees its memory, which others may then use.
    sink.wait_end()?;
    let source = source.join()?;
    mark(bed, Edge::End)?;
    let sink = sink.join()?;
    assert_eq!(
        (sink.bytes, sink.linear_bytes, sink.mismatch, &sink.error),
        (BYTES, 0, None, &None),
        "{sink:?}"
    );
    assert!(source.delivered, "{source:?}");
    Ok(bed.guest.window(0)?)
}

/// How often Rust code allocated memory: all its allocations go through these functions.
fn allocations(window: &Window) -> Result<u64> {
    entries(window, |name| {
        name.starts_with("rust_helper_") && name.ends_with("realloc_node_align")
    })
}

fn nobody_touches_what_is_received(memory: Memory, name: &str) -> Result {
    let bed = boot(name)?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let window = received(&bed, &stream, memory, false)?;
    assert_eq!(window.ranges[RX], Accesses::default());
    assert!(
        window.total().instructions > BYTES / 10,
        "the processor did the rest: {:?}",
        window.total()
    );
    // A thousand packets, and the binding's ring.
    let allocations = allocations(&window)?;
    assert!(
        allocations < 16,
        "the driver allocated {allocations} times, beside its page pools"
    );
    bed.finish()
}

#[test]
fn no_processor_touches_payload_that_is_received_in_a_udmabuf() -> Result {
    nobody_touches_what_is_received(Memory::Udmabuf, "counters-rx-udmabuf")
}

#[test]
fn no_processor_touches_payload_that_is_received_in_an_accelerator() -> Result {
    nobody_touches_what_is_received(ACCELERATOR, "counters-rx-accelerator")
}

#[test]
fn no_processor_touches_payload_that_is_sent_from_an_accelerator() -> Result {
    let bed = boot("counters-tx-accelerator")?;
    let stream = bed.stream(bed.local, bed.peer, Family::V4).unpredictable();
    let stream = stream.in_accelerator();
    let sink = stream.sink(&bed)?;
    let (source, ranges) = stream.source_ready(&bed, BYTES)?;
    bed.guest.watch(&Watch::dmabuf(TX, &ranges))?;

    mark(&bed, Edge::Start)?;
    source.tell(Command::Go)?;
    let (sink, source) = (sink.join()?, source.join()?);
    mark(&bed, Edge::End)?;
    assert_eq!((sink.bytes, sink.mismatch), (BYTES, None), "{sink:?}");
    assert!(source.delivered && source.copied == 0, "{source:?}");
    assert_eq!(bed.guest.window(0)?.ranges[TX], Accesses::default());
    bed.finish()
}

/// Some bytes, at the ends of copies, are accessed twice.
fn once_each(bytes: u64) -> bool {
    (BYTES..BYTES + BYTES / 20).contains(&bytes)
}

#[test]
fn a_reader_of_received_payload_is_seen() -> Result {
    let bed = boot("counters-rx-read")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let seen = received(&bed, &stream, ACCELERATOR, true)?.ranges[RX];
    assert!(once_each(seen.loaded) && seen.stored == 0, "{seen:?}");
    bed.finish()
}

#[test]
fn a_copy_into_an_accelerator_is_seen() -> Result {
    let bed = boot("counters-copy")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4).in_accelerator();
    let mut sink = stream.copy_sink(&bed, RX_DMABUF)?;
    bed.guest.watch(&watches(&mut sink, RX)?)?;

    mark(&bed, Edge::Start)?;
    let source = stream.source(&bed, Some(BYTES), &[256 << 10], 0)?;
    let (sink, source) = (sink.join()?, source.join()?);
    mark(&bed, Edge::End)?;
    assert!(
        sink.bytes == BYTES && source.delivered,
        "{sink:?} {source:?}"
    );
    let seen = bed.guest.window(0)?.ranges[RX];
    assert!(once_each(seen.stored) && seen.loaded == 0, "{seen:?}");
    bed.finish()
}

/// Addresses of the driver's queue operations: the core has it stop a queue, start it on other
/// memory, and then free the old memory.
fn operation(symbols: &[Symbol], name: &str) -> u64 {
    let of_queues = |symbol: &&Symbol| {
        symbol.name.contains("3net5queue") && symbol.name.contains(&format!("{}{name}", name.len()))
    };
    let mut found = symbols.iter().filter(of_queues);
    let first = found.next().expect("rigb has the operation");
    assert!(found.next().is_none(), "{name} is not unique");
    first.address
}

#[test]
fn a_window_lies_between_two_functions() -> Result {
    let bed = boot("counters-functions")?;
    let symbols = bed.guest.call(ListFunctions::default())?;
    let (stop, free) = (operation(&symbols, "stop"), operation(&symbols, "free"));
    let restart = || bed.bind(bed.local, 1, Memory::Udmabuf, RX_DMABUF)?.stop();

    bed.guest.windows_between(Some((stop, free)))?;
    restart()?;
    for number in 0..2 {
        let window = bed.guest.window(number)?;
        let at = |address| window.blocks.iter().find(|block| block.address == address);
        // The first block began one instruction before the window.
        assert!(at(stop).is_some_and(|block| block.counts.instructions > 0));
        assert!(at(free).is_some_and(|block| block.entries == 1));
    }
    bed.guest.windows_between(None)?;
    restart()?;
    let none = bed.guest.window(2);
    assert!(
        matches!(none, Err(vm::Error::Counter { .. })),
        "nothing is marked any more: {none:?}"
    );
    bed.finish()
}
