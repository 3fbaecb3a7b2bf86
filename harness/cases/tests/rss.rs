// SPDX-License-Identifier: MIT OR Apache-2.0

//! RSS: a flow reaches the queue that key and indirection table say.

use cases::{Family, Result, Testbed};
use protocol::{
    Memory, UdpSink, UdpSource,
    net::QueueKind,
    request::{GetRss, SetRss},
};

const MIB: u64 = 1 << 20;

/// Frames of 1500 bytes that a MiB takes, about; what else arrives meanwhile is far less.
const FRAMES: u64 = 600;

#[test]
fn flows_reach_the_queues_that_key_and_table_say() -> Result {
    let bed = Testbed::options().cpus(4).boot("rss-flows")?;
    let rss = |key: Option<Vec<u8>>, table: Option<Vec<u32>>| {
        bed.guest.call(SetRss {
            ns: bed.local.ns,
            interface: bed.local.name(),
            table,
            key,
        })
    };
    let read = || {
        bed.guest.call(GetRss {
            ns: bed.local.ns,
            interface: bed.local.name(),
        })
    };
    let spread = read()?;
    assert!(
        (0..4).all(|queue| spread.table.contains(&queue)),
        "flows are spread over all queues at first: {spread:?}"
    );
    let keys = [
        spread.key.clone(),
        (0..40)
            .map(|i: u8| i.wrapping_mul(37).wrapping_add(11))
            .collect(),
    ];
    let mut reached = [false; 4];

    for key in keys {
        rss(Some(key.clone()), Some(spread.table.clone()))?;
        assert_eq!((read()?.key, read()?.table), (key, spread.table.clone()));

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

    // The table outlives the interface's going down.
    let table: Vec<u32> = (0..128).map(|i| i % 3).collect();
    rss(None, Some(table.clone()))?;
    bed.set_interface(bed.local, false)?;
    bed.set_interface(bed.local, true)?;
    assert_eq!(read()?.table, table);
    bed.finish()?;
    Ok(())
}

#[test]
fn a_table_with_a_queue_that_does_not_exist_is_refused() -> Result {
    let bed = Testbed::options().boot("rss-refused")?;
    let error = bed.steer(bed.local, &[0, 2]);
    assert!(error.is_err(), "two processors make two queues");
    bed.stream(bed.peer, bed.local, Family::V4)
        .transfer(&bed, MIB, &[64 << 10])?;
    bed.finish()?;
    Ok(())
}

#[test]
fn what_is_not_tcp_stays_on_queue_0_when_all_tcp_goes_to_a_bound_queue() -> Result {
    let bed = Testbed::devmem("rss-not-tcp")?;
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?;
    let packets = || bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets");

    for family in Family::BOTH {
        // Whole datagrams, and such as come in fragments.
        for size in [200, 8000, 20_000] {
            let before = packets()?;
            let listen = bed.local.socket(family, bed.port());
            let sink = bed.guest.start(UdpSink {
                ns: bed.local.ns,
                listen,
                seed: 3,
            })?;
            let source = bed.guest.start(UdpSource {
                ns: bed.peer.ns,
                bind: None,
                connect: listen,
                seed: 3,
                datagrams: Some(20),
                size,
                batch: None,
                pause_us: 1000,
            })?;
            assert_eq!(source.join()?.sent, 20);
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
    bed.finish()?;
    Ok(())
}
