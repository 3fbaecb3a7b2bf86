// SPDX-License-Identifier: MIT OR Apache-2.0

//! The proof from outside: payload that goes to the accelerator is there, and leaves no trace in the
//! guest's RAM. And that the proof can fail: the same payload received and copied does leave traces.
//!
//! The payload is made up by the host, which writes it into accelerator memory; a NIC sends it from
//! there. So any trace in RAM was left by what the case looks at.

use std::time::Duration;

use cases::{Family, Result, Stream, Testbed, place};
use protocol::rings::DataSplit;
use vm::{
    Topology,
    traces::{self, Trace},
};

const MIB: u64 = 1 << 20;
const BYTES: u64 = 16 * MIB;

/// A job that says nothing for so long has stalled.
const PAUSE: Duration = Duration::from_secs(1);

fn testbed(name: &str) -> Result<Testbed> {
    Testbed::accelerator(Topology::Switch, name)
}

fn secret(bed: &Testbed) -> Stream {
    bed.stream(bed.peer, bed.local, Family::V4)
        .in_accelerator()
        .unpredictable()
}

fn assert_none(traces: &[Trace]) {
    assert!(
        traces.is_empty(),
        "{} bytes of payload are in RAM, in {} places; the first is {:?}",
        traces::bytes(traces),
        traces.len(),
        traces[0]
    );
}

#[test]
fn payload_goes_to_the_accelerator_and_leaves_no_trace_in_ram() -> Result {
    let bed = testbed("proof")?;
    let stream = secret(&bed);

    let mut sink = stream.devmem_sink_for_host(&bed, 1, 16 * MIB)?;
    let source = stream.source_filled_by_host(&bed, BYTES)?;
    let verified = stream.verify_and_release(&bed, &mut sink, |_| ())?;

    // Both jobs still exist: what they had in memory is there.
    let traces = stream.traces_in_ram(&bed, BYTES)?;
    assert_none(&traces);
    let (sink, source) = (sink.join()?, source.join()?);
    assert_eq!(
        (verified, sink.bytes, sink.linear_bytes),
        (BYTES, BYTES, 0),
        "all bytes are where the fragments said: {sink:?}"
    );
    assert!(source.delivered && source.copied == 0, "{source:?}");
    bed.finish()?;
    Ok(())
}

#[test]
fn payload_that_is_received_and_copied_leaves_traces_in_ram() -> Result {
    let bed = testbed("counter-proof")?;
    let stream = secret(&bed);

    let mut sink = stream.copy_sink(&bed, BYTES)?;
    let ranges = sink.wait_event(place)?;
    let source = stream.source_filled_by_host(&bed, BYTES)?;
    while sink.next_event(bed.guest.call_timeout())?.is_some() {}

    let mut copied = vec![0; BYTES as usize];
    bed.guest.dmabuf(ranges)?.read(0, &mut copied)?;
    assert!(copied == stream.payload(BYTES), "the copy is complete");
    let traces = stream.traces_in_ram(&bed, BYTES)?;
    assert!(
        // The receiver's buffer alone has more, and sockets had all of it at some time.
        traces::bytes(&traces) >= 64 << 10,
        "ordinary TCP left no trace: {traces:?}"
    );
    let (sink, source) = (sink.join()?, source.join()?);
    assert!(
        sink.end_of_stream && source.delivered,
        "{sink:?} {source:?}"
    );
    bed.finish()?;
    Ok(())
}

#[test]
fn payload_is_passed_on_from_device_to_device_and_leaves_no_trace_in_ram() -> Result {
    let bed = testbed("relay")?;
    bed.set_header_split(bed.peer, DataSplit::On)?;
    for station in bed.stations() {
        bed.steer(station, &[0, 1])?;
    }
    let inward = secret(&bed).reaching_with_acknowledgements_apart(&bed, 1)?;
    let onward = Stream {
        seed: inward.seed,
        ..bed.stream(bed.local, bed.peer, Family::V4).in_accelerator()
    };
    let onward = onward.reaching_with_acknowledgements_apart(&bed, 1)?;

    // Three pieces of the accelerator's memory: sent from, passed on from, received in.
    let mut sink = onward.devmem_sink_for_host(&bed, 1, 4 * MIB)?;
    let mut relay = inward.relay(&bed, 1, 8 * MIB, &onward)?;
    let source = inward.source_filled_by_host(&bed, BYTES)?;
    // The last one is too small, and nobody empties it: the relay has to keep what it received.
    while relay.next_event(PAUSE)?.is_some() {}
    assert!(!relay.ended(), "the relay waits for its receiver");
    let verified = onward.verify_and_release(&bed, &mut sink, |_| ())?;

    let traces = inward.traces_in_ram(&bed, BYTES)?;
    assert_none(&traces);
    let (sink, relay, source) = (sink.join()?, relay.join()?, source.join()?);
    assert_eq!(
        (verified, sink.linear_bytes, source.delivered),
        (BYTES, 0, true),
        "all bytes arrived, and right: {sink:?} {relay:?} {source:?}"
    );
    assert_eq!(
        (relay.received, relay.sent, relay.linear_bytes),
        (BYTES, BYTES, 0),
        "{relay:?}"
    );
    assert_eq!(
        (relay.completions, relay.copied, relay.tokens_held),
        (relay.sends, 0, 0),
        "every send completed without a copy, and every token went back: {relay:?}"
    );
    assert!(relay.end_of_stream && relay.delivered, "{relay:?}");
    for station in bed.stations() {
        assert_eq!(bed.net_iovs_left(station)?, 0);
    }
    bed.finish()?;
    Ok(())
}
