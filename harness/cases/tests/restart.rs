// SPDX-License-Identifier: MIT OR Apache-2.0

//! One RX queue is restarted without affecting the others.

use cases::{Ability, CaseError, Datagrams, Family, Result, Testbed, finish};
use protocol::{Memory, UdpSink, UdpSource, netdev::QueueKind};
use vm::JobHandle;

const MIB: u64 = 1 << 20;

/// Each binding restarts its queue when it is made and when it is closed.
const BINDINGS: u32 = 25;

#[test]
fn a_queue_restarts_again_and_again_and_the_others_lose_no_packet() -> Result {
    let bed = Testbed::options()
        .binds([2])
        .cpus(4)
        .header_split()
        .boot("queue-restart")?;
    bed.receive_all_multicast(bed.local)?;
    // Everything in flight fits, whenever the guest's processors get to run.
    bed.set_receive_ring(bed.local, 4096)?;
    let packets_before = bed.packets_when_quiet()?;
    // Queue 2 is restarted; TCP goes to 1 and 3, everything else to 0.
    bed.steer(bed.local, &[1, 3])?;

    let mut flows = Vec::new();
    for (family, queue) in [
        (Family::V4, 1),
        (Family::V6, 1),
        (Family::V4, 3),
        (Family::V6, 3),
    ] {
        let stream = bed
            .stream(bed.peer, bed.local, family)
            .reaching(&bed, queue)?;
        let mut sink = stream.sink(&bed)?;
        let source = stream.source(&bed, None, &[4 << 10], 1000)?;
        sink.wait_bytes(16 << 10)?;
        flows.push((source, sink));
    }
    // The neighbour is resolved by now: only a few datagrams can wait for that.
    let udp = Datagrams {
        pause_us: 500,
        ..bed.datagrams(bed.peer, bed.local, Family::V4, 1000)
    };
    let mut datagrams = udp.sink(&bed)?;
    let read_before = bed.datagrams_read(bed.local.ns)?;
    let udp = udp.source(&bed, None)?;
    datagrams.wait_bytes(1)?;
    let before = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;

    for _ in 0..BINDINGS {
        bed.bind(bed.local, 2, Memory::Udmabuf, 4 * MIB)?.stop()?;
    }

    let after = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
    assert!(
        [0, 1, 3].iter().all(|&queue| after[queue] > before[queue]),
        "traffic ran on all the other queues meanwhile: {before:?} then {after:?}"
    );
    for (source, sink) in flows {
        finish(source, sink)?;
    }
    let sent = udp.finish()?;
    // The last datagrams may still be on their way.
    bed.wait_until(read_before + sent.sent, || bed.datagrams_read(bed.local.ns))?;
    let received = datagrams.stop()?;
    assert_eq!(
        (received.received, received.missing, received.corrupt),
        (sent.sent, 0, 0),
        "no datagram was lost: {sent:?} {received:?}"
    );

    // Retransmissions are no measure: a slow guest acknowledges late. The wire loses nothing, so
    // what the peer sent is what came in.
    bed.wait_all_came(packets_before)?;
    bed.finish()
}

/// Starts flows of datagrams to the peer until one leaves through `queue`; ends the others.
fn flood(
    bed: &Testbed,
    queue: usize,
) -> Result<(JobHandle<'_, UdpSource>, JobHandle<'_, UdpSink>)> {
    let sent = || bed.queue_stats(bed.local, QueueKind::Tx, "tx-packets");
    for _ in 0..64 {
        let datagrams = bed.datagrams(bed.local, bed.peer, Family::V4, 200);
        let mut sink = datagrams.sink(bed)?;
        let before = sent()?[queue];
        let source = datagrams.source(bed, None)?;
        sink.wait_bytes(100_000)?;
        if sent()?[queue] > before + 100 {
            return Ok((source, sink));
        }
        source.stop()?;
        sink.stop()?;
    }
    Err(CaseError::new(format!(
        "no flow leaves through queue {queue}"
    )))
}

#[test]
fn what_is_sent_while_its_queue_pair_restarts_is_completed() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .header_split()
        .boot("queue-restart-tx")?;
    // Only completions raise the pair's interrupt.
    bed.steer(bed.local, &[0])?;
    let sent = || Ok(bed.queue_stats(bed.local, QueueKind::Tx, "tx-packets")?[1]);
    let (source, sink) = flood(&bed, 1)?;

    // The interrupt of a frame that is completed while the pair's NAPI is disabled is lost. Not
    // every restart hits one, but most do.
    for round in 1..=BINDINGS {
        let bound = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?;
        bound.stop()?;
        // New completions, beyond the earlier ones.
        let now = sent()?;
        bed.wait_until(now + 1, sent).map_err(|error| {
            CaseError::new(format!(
                "queue 1 does not send after restart {round}: {error}"
            ))
        })?;
    }
    source.stop()?;
    sink.stop()?;
    bed.finish()
}
