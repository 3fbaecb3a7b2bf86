// SPDX-License-Identifier: MIT OR Apache-2.0

//! While headers are split, all that is not TCP goes to queue 0, which device memory is never bound to.

use cases::{Ability, Datagrams, Family, Result, Testbed, assert_refused, finish};
use libc::EOPNOTSUPP;
use protocol::{
    Memory,
    netdev::QueueKind,
    rings::TcpDataSplit,
    rss::{Flow, HashFields},
};

const MIB: u64 = 1 << 20;

#[test]
fn a_bind_to_queue_0_is_refused_because_unsplit_packets_go_there() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .header_split()
        .boot("bind-queue-0")?;
    let refused = bed.bind(bed.local, 0, Memory::Udmabuf, 4 * MIB);
    assert_refused(refused, EOPNOTSUPP, "a bind to queue 0");
    // The queue still works.
    bed.steer(bed.local, &[0])?;
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn a_bind_that_the_driver_refuses_leaves_the_old_queue_running() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .header_split()
        .boot("queue-alloc-refused")?;
    bed.receive_all_multicast(bed.local)?;
    let packets_before = bed.packets_when_quiet()?;
    // The driver does not accept device memory for queue 0: each bind to it fails in
    // `queue_alloc`.
    bed.steer(bed.local, &[0])?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.sink(&bed)?;
    // Paced, so that everything in flight fits the ring whenever the guest's processors get to run.
    let source = stream.source(&bed, None, &[4 << 10], 1000)?;

    for round in 1..=20 {
        let refused = bed.bind(bed.local, 0, Memory::Udmabuf, 4 * MIB);
        assert_refused(refused, EOPNOTSUPP, "a bind to queue 0");
        sink.wait_bytes(round * (64 << 10))?;
    }
    finish(source, sink)?;
    // The queue never paused.
    bed.wait_all_came(packets_before)?;
    bed.finish()
}

#[test]
fn what_is_not_tcp_stays_on_queue_0_when_all_tcp_goes_to_a_bound_queue() -> Result {
    let bed = Testbed::devmem("rss-not-tcp")?;
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?;
    let packets = || bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets");

    for family in Family::BOTH {
        // Whole datagrams, and fragmented ones.
        for size in [200, 8000, 20_000] {
            let before = packets()?;
            let datagrams = Datagrams {
                pause_us: 1000,
                ..bed.datagrams(bed.peer, bed.local, family, size)
            };
            let sink = datagrams.sink(&bed)?;
            assert_eq!(datagrams.source(&bed, Some(20))?.join()?.sent, 20);
            bed.wait_until(before[0] + 20, || Ok(packets()?[0]))?;
            let received = sink.stop()?;
            let after = packets()?;
            assert!(
                after[0] - before[0] >= 20 && after[1] == before[1],
                "{family:?}, {size} bytes: {before:?} then {after:?}"
            );
            assert_eq!(received.corrupt, 0, "{received:?}");
        }
    }
    bound.stop()?;
    bed.finish()
}

#[test]
fn only_tcp_is_hashed_while_headers_are_split() -> Result {
    let bed = Testbed::options().cpus(4).boot("rss-split")?;
    let fields = |flow| bed.hash_fields(bed.local, flow);
    bed.set_hash_fields(bed.local, Flow::Udp4, HashFields::ADDRESSES)?;

    // Everything else goes to queue 0, as reported.
    bed.set_header_split(bed.local, TcpDataSplit::On)?;
    for (flow, wanted) in [
        (Flow::Tcp4, HashFields::PORTS),
        (Flow::Tcp6, HashFields::PORTS),
        (Flow::Udp4, HashFields::NONE),
        (Flow::Udp6, HashFields::NONE),
    ] {
        assert_eq!(fields(flow)?, wanted, "{flow:?} with header split");
        let refused = bed.set_hash_fields(bed.local, flow, HashFields::ADDRESSES);
        assert_refused(refused, EOPNOTSUPP, "fields with header split");
    }
    for family in Family::BOTH {
        let places = bed.udp_places(family)?;
        assert!(places.iter().all(|(_, is)| *is == 0), "{places:?}");
    }

    // The user's choice is restored afterwards.
    bed.set_header_split(bed.local, TcpDataSplit::Off)?;
    assert_eq!(fields(Flow::Udp4)?, HashFields::ADDRESSES);
    assert_eq!(fields(Flow::Udp6)?, HashFields::PORTS);
    bed.finish()
}
