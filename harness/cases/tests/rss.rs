// SPDX-License-Identifier: MIT OR Apache-2.0

//! RSS: a flow reaches the queue that key and indirection table select.

use cases::{Ability, Family, Frame, PATIENCE_MS, Result, Testbed, assert_refused};
use libc::{EINVAL, EOPNOTSUPP};
use protocol::{
    netdev::QueueKind,
    rss::{Flow, FlowQueue, HashFields, Indirection, RssChange},
    traffic::ExchangeFrames,
};

const MIB: u64 = 1 << 20;

/// Roughly the number of 1500-byte frames in a MiB; far fewer others arrive meanwhile.
const FRAMES: u64 = 600;

/// A key by which these flows are spread over several queues.
fn spreading_key(bytes: usize) -> Vec<u8> {
    let byte = |i: usize| (i as u8).wrapping_mul(37).wrapping_add(11);
    (0..bytes).map(byte).collect()
}

#[test]
fn flows_reach_the_queues_that_key_and_table_say() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .hashes([Flow::Tcp4, Flow::Tcp6])
        .cpus(4)
        .boot("rss-flows")?;
    let rss = |key: Option<Vec<u8>>, table: Option<Vec<u32>>| {
        let change = RssChange {
            indirection: table.map(Indirection::Queues),
            key,
            ..RssChange::default()
        };
        bed.set_rss(bed.local, change)
    };
    let read = || bed.rss(bed.local);
    let spread = read()?;
    assert!(
        (0..4).all(|queue| spread.indirection.contains(&queue)),
        "flows are spread over all queues at first: {spread:?}"
    );
    let keys = [spread.key.clone(), spreading_key(spread.key.len())];
    let mut reached = [false; 4];

    for key in keys {
        rss(Some(key.clone()), Some(spread.indirection.clone()))?;
        assert_eq!(
            (read()?.key, read()?.indirection),
            (key, spread.indirection.clone())
        );

        for family in Family::BOTH {
            for _ in 0..4 {
                let mut stream = bed.stream(bed.peer, bed.local, family);
                let source = bed.peer.socket(family, bed.port());
                let place = stream.queue_from(&bed, source)? as usize;
                stream.bind = Some(source);
                let before = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
                stream.transfer(&bed, MIB, &[64 << 10])?;
                let after = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;

                for queue in 0..4 {
                    let frames = after[queue] - before[queue];
                    assert_eq!(
                        frames > FRAMES,
                        queue == place,
                        "{source} should reach queue {place}: {before:?} then {after:?}"
                    );
                }
                reached[place] = true;
            }
        }
    }
    assert!(
        reached.iter().filter(|&&queue| queue).count() > 1,
        "16 flows reached one queue only"
    );

    // The table survives taking the interface down.
    let table: Vec<u32> = (0..3).cycle().take(spread.indirection.len()).collect();
    rss(None, Some(table.clone()))?;
    bed.down_and_up(bed.local)?;
    assert_eq!(read()?.indirection, table);
    bed.finish()
}

#[test]
fn the_kernel_is_given_the_hash_that_key_and_addresses_say_unless_the_user_wants_none() -> Result {
    let bed = Testbed::options()
        .needs([Ability::RxHash])
        .hashes([Flow::Tcp4, Flow::Tcp6])
        .boot("rss-hash")?;
    for hashing in [true, false] {
        bed.set_features(bed.local, &[("rx-hashing", hashing)])?;
        for family in Family::BOTH {
            let port = bed.port();
            let place = bed.guest.call(FlowQueue::on(
                bed.local,
                bed.peer.socket(family, port),
                bed.local.socket(family, port),
            ))?;
            let frame = Frame::tcp(bed.peer, bed.local, family, port, b"any")?;
            bed.guest.call(ExchangeFrames {
                from: bed.peer.ns,
                through: bed.peer.name(),
                frames: vec![frame.into_bytes()],
                to: bed.local.ns,
                at: bed.local.name(),
                ethertype: match family {
                    Family::V4 => 0x0800,
                    Family::V6 => 0x86dd,
                },
                hash: Some(if hashing { place.hash } else { 0 }),
                count: 1,
                timeout_ms: PATIENCE_MS,
            })?;
        }
    }
    bed.finish()
}

#[test]
fn a_flow_is_answered_on_the_queue_that_it_comes_in_on_if_the_user_says_so() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics, Ability::Rss])
        .boot("rss-answers")?;
    for queue in 0..2 {
        let queues = format!("{:x}", 1 << queue);
        bed.set_tx_queue(bed.local.interface, queue, "xps_rxqs", queues)?;
    }
    for queue in [1, 0] {
        bed.steer(bed.local, &[queue])?;
        // Without the recorded queue, each flow's hash would choose.
        for _ in 0..5 {
            let before = bed.queue_stats(bed.local, QueueKind::Tx, "tx-packets")?;
            bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
            let after = bed.queue_stats(bed.local, QueueKind::Tx, "tx-packets")?;
            for (other, (before, after)) in (0..).zip(before.into_iter().zip(after)) {
                let frames = after - before;
                assert_eq!(
                    frames > FRAMES,
                    other == queue,
                    "{frames} on queue {other} of a flow that is answered on queue {queue}"
                );
            }
        }
    }
    bed.finish()
}

#[test]
fn a_table_with_a_queue_that_does_not_exist_is_refused() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Rss])
        .boot("rss-refused")?;
    let error = bed.steer(bed.local, &[0, 2]);
    // Two processors make two queues.
    assert_refused(error, EINVAL, "a table with queue 2");
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn what_is_hashed_follows_the_user() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .hashes(Flow::ALL)
        .cpus(4)
        .boot("rss-fields")?;
    let fields = |flow| bed.hash_fields(bed.local, flow);
    let set = |flow, fields| {
        let set = bed.set_hash_fields(bed.local, flow, fields);
        set.err().map(|error| error.errno())
    };

    for flow in Flow::ALL {
        assert_eq!(fields(flow)?, HashFields::PORTS, "{flow:?} at first");
    }
    let key = bed.rss(bed.local)?.key.len();
    bed.set_rss(
        bed.local,
        RssChange {
            key: Some(spreading_key(key)),
            ..RssChange::default()
        },
    )?;
    for family in Family::BOTH {
        let places = bed.udp_places(family)?;
        assert!(places.iter().all(|(wanted, is)| wanted == is), "{places:?}");
        assert!(
            places.iter().any(|(_, is)| *is != places[0].1),
            "{places:?}"
        );
    }

    // Each kind of flow is set independently of the others.
    for flow in Flow::ALL {
        assert_eq!(set(flow, HashFields::ADDRESSES), None);
        for other in Flow::ALL {
            let wanted = if other == flow {
                HashFields::ADDRESSES
            } else {
                HashFields::PORTS
            };
            assert_eq!(fields(other)?, wanted, "{other:?} after {flow:?}");
        }
        assert_eq!(set(flow, HashFields::PORTS), None);
    }
    assert_eq!(set(Flow::Udp4, HashFields::ADDRESSES), None);
    let places = bed.udp_places(Family::V4)?;
    assert!(
        places.iter().all(|(_, is)| *is == places[0].1),
        "{places:?}"
    );
    let places = bed.udp_places(Family::V6)?;
    assert!(places.iter().all(|(wanted, is)| wanted == is), "{places:?}");

    // Unsupported settings are refused and change nothing.
    let source = HashFields {
        ip_src: true,
        ..HashFields::NONE
    };
    let port = HashFields {
        l4_src: true,
        ..HashFields::ADDRESSES
    };
    for wrong in [HashFields::NONE, source, port] {
        assert_eq!(set(Flow::Tcp4, wrong), Some(Some(EOPNOTSUPP)), "{wrong:?}");
    }
    for transformation in [1, 2] {
        let refused = bed.set_rss(
            bed.local,
            RssChange {
                input_transformation: Some(transformation),
                ..RssChange::default()
            },
        );
        let what = format!("transformation {transformation}");
        assert_refused(refused, EOPNOTSUPP, &what);
    }
    assert_eq!(fields(Flow::Tcp4)?, HashFields::PORTS);

    // It outlasts the interface's going down.
    assert_eq!(set(Flow::Udp4, HashFields::ADDRESSES), None);
    bed.down_and_up(bed.local)?;
    bed.wait_carrier(true)?;
    assert_eq!(fields(Flow::Udp4)?, HashFields::ADDRESSES);
    assert_eq!(fields(Flow::Udp6)?, HashFields::PORTS);
    bed.finish()
}
