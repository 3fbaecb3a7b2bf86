// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the guest's processor does with payload: the counter in QEMU sees each load and store.

use cases::{Family, Result, Stream, Testbed};
use protocol::{
    CopySink, DevmemSink, Event, JobSpec, Memory, Release,
    request::{Edge, MarkWindow},
};
use vm::{
    JobHandle,
    counter::{Accesses, Watch, Window},
};

const MIB: u64 = 1 << 20;
const BYTES: u64 = 8 * MIB;
const DMABUF: &str = "dma-buf";

fn boot(name: &str) -> Result<Testbed> {
    let bed = Testbed::options().counted().mtu(9000).header_split();
    let bed = bed.boot(name)?;
    bed.steer(bed.local, &[1])?;
    Ok(bed)
}

fn mark(bed: &Testbed, edge: Edge) -> Result {
    Ok(bed.guest.call(MarkWindow { edge })?)
}

/// Watches the dma-buf of a job that has just been set up.
fn watch<J: JobSpec>(bed: &Testbed, job: &mut JobHandle<'_, J>) -> Result {
    let ranges = job.wait_event(|event| match event {
        Event::DmaBuf { ranges } => Some(ranges),
        _ => None,
    })?;
    let watches: Vec<_> = ranges
        .iter()
        .map(|range| Watch {
            label: DMABUF.to_owned(),
            start: range.address,
            len: range.len,
        })
        .collect();
    Ok(bed.guest.watch(&watches)?)
}

/// Receives in a dma-buf; returns what the processor did between the binding and the end.
fn received(bed: &Testbed, stream: &Stream, verify: bool) -> Result<Window> {
    let mut sink = bed.guest.start(DevmemSink {
        ns: stream.to.ns,
        interface: stream.to.name(),
        queues: vec![1],
        memory: Memory::Udmabuf,
        dmabuf_bytes: 4 * MIB,
        listen: stream.to.socket(stream.family, stream.port),
        seed: stream.seed,
        verify,
        report: false,
        release: Release::Immediate,
    })?;
    watch(bed, &mut sink)?;

    mark(bed, Edge::Start)?;
    let source = stream.source(bed, Some(BYTES), &[256 << 10], 0)?;
    let (sink, source) = (sink.join()?, source.join()?);
    mark(bed, Edge::End)?;
    assert_eq!(
        (sink.bytes, sink.linear_bytes, sink.mismatch, &sink.error),
        (BYTES, 0, None, &None),
        "{sink:?}"
    );
    assert!(source.delivered, "{source:?}");
    Ok(bed.guest.window(0)?)
}

#[test]
fn no_processor_touches_payload_that_is_received_in_a_dma_buf() -> Result {
    let bed = boot("counters-devmem-rx")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let window = received(&bed, &stream, false)?;
    assert_eq!(window.ranges[DMABUF], Accesses::default());
    assert!(
        window.total().instructions > BYTES / 10,
        "the processor did the rest: {:?}",
        window.total()
    );
    bed.finish()?;
    Ok(())
}

#[test]
fn a_reader_of_the_payload_is_seen() -> Result {
    let bed = boot("counters-devmem-rx-read")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let window = received(&bed, &stream, true)?;
    let seen = window.ranges[DMABUF];
    // It reads every byte once, some twice at the end of a copy, and writes none.
    assert!(
        seen.loaded >= BYTES && seen.loaded < BYTES + BYTES / 20,
        "{seen:?}"
    );
    assert_eq!(seen.stored, 0, "{seen:?}");
    bed.finish()?;
    Ok(())
}

#[test]
fn a_copy_of_the_payload_is_seen() -> Result {
    let bed = boot("counters-copy")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = bed.guest.start(CopySink {
        ns: stream.to.ns,
        memory: Memory::Udmabuf,
        dmabuf_bytes: 4 * MIB,
        listen: stream.to.socket(stream.family, stream.port),
    })?;
    watch(&bed, &mut sink)?;

    mark(&bed, Edge::Start)?;
    let source = stream.source(&bed, Some(BYTES), &[256 << 10], 0)?;
    let (sink, source) = (sink.join()?, source.join()?);
    mark(&bed, Edge::End)?;
    assert!(
        sink.bytes == BYTES && source.delivered,
        "{sink:?} {source:?}"
    );

    let window = bed.guest.window(0)?;
    let seen = window.ranges[DMABUF];
    assert!(
        seen.stored >= BYTES && seen.stored < BYTES + BYTES / 20,
        "{seen:?}"
    );
    assert_eq!(seen.loaded, 0, "{seen:?}");
    bed.finish()?;
    Ok(())
}
