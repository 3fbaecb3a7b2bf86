// SPDX-License-Identifier: MIT OR Apache-2.0

//! One RX queue is restarted; the others do not notice.

use cases::{Family, Result, Testbed, finish};
use protocol::{Memory, UdpSink, UdpSource, net::QueueKind};

const MIB: u64 = 1 << 20;

/// Packets that the NIC under test handed up, and that its peer sent.
fn packets(bed: &Testbed) -> Result<[u64; 2]> {
    Ok([
        bed.link_stats(bed.local)?.rx_packets,
        bed.link_stats(bed.peer)?.tx_packets,
    ])
}

/// Each binding restarts its queue when it is made and when it goes.
const BINDINGS: u32 = 25;

#[test]
fn a_queue_restarts_again_and_again_and_the_others_lose_no_packet() -> Result {
    let bed = Testbed::options()
        .cpus(4)
        .header_split()
        .boot("queue-restart")?;
    let [before_came, before_went] = packets(&bed)?;
    // Queue 2 is restarted; TCP goes to 1 and 3, what is not TCP to 0.
    bed.steer(bed.local, &[1, 3])?;

    let port = bed.port();
    let datagrams = bed.guest.start(UdpSink {
        ns: bed.local.ns,
        listen: bed.local.socket(Family::V4, port),
        seed: 7,
    })?;
    let udp = bed.guest.start(UdpSource {
        ns: bed.peer.ns,
        bind: None,
        connect: bed.local.socket(Family::V4, port),
        seed: 7,
        datagrams: None,
        size: 1000,
        pause_us: 500,
    })?;
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
    let mut datagrams = datagrams;
    while datagrams
        .next_event(std::time::Duration::from_millis(500))?
        .is_some()
    {}
    let received = datagrams.stop()?;
    assert_eq!(
        (received.received, received.missing, received.corrupt),
        (sent.sent, 0, 0),
        "no datagram was lost: {sent:?} {received:?}"
    );

    // Retransmissions are no measure: a slow guest acknowledges late. The wire loses nothing, so
    // what the peer sent is what came in.
    let [came, went] = packets(&bed)?;
    assert_eq!(
        came - before_came,
        went - before_went,
        "every packet that was sent was received: {went:?} {came:?}"
    );
    bed.finish()?;
    Ok(())
}

#[test]
fn an_allocation_that_fails_leaves_the_old_queue_running() -> Result {
    let bed = Testbed::options()
        .header_split()
        .boot("queue-alloc-fails")?;
    let [before_came, before_went] = packets(&bed)?;
    // The driver allocates no device memory for queue 0: each bind to it fails there.
    bed.steer(bed.local, &[0])?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;

    for round in 1..=20 {
        let refused = bed.bind(bed.local, 0, Memory::Udmabuf, 4 * MIB);
        assert!(refused.is_err(), "queue 0 was bound");
        sink.wait_bytes(round * MIB)?;
    }
    finish(source, sink)?;
    let [came, went] = packets(&bed)?;
    assert_eq!(
        came - before_came,
        went - before_went,
        "the queue never paused: {went:?} {came:?}"
    );
    bed.finish()?;
    Ok(())
}
