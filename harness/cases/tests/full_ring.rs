// SPDX-License-Identifier: MIT OR Apache-2.0

//! A full TX ring: its queue stops, is woken, and loses nothing.

use cases::{Ability, Datagrams, Family, Result, Testbed};
use protocol::netdev::QueueKind;

/// The shortest ring. A queue stops while fewer descriptors are free than the longest frame takes.
const RING: u32 = 64;

const SENDS: u64 = 20;
const DATAGRAMS: u32 = 60;

/// The kernel hands over the datagrams of a send in one batch, and the doorbell rings only when the
/// queue stops: however fast both are, the ring fills up in the middle of each batch.
#[test]
fn a_full_ring_stops_its_queue_until_frames_are_completed() -> Result {
    let bed = Testbed::options()
        .needs([
            Ability::ByteQueueLimits,
            Ability::QueueStatistics,
            Ability::RingSizes,
        ])
        .boot("full-ring")?;
    bed.set_transmit_ring(bed.local, RING)?;
    // Byte queue limits would stop the queue before the ring is full.
    for queue in 0..2 {
        let limit = "byte_queue_limits/limit_min";
        bed.set_tx_queue(bed.local.interface, queue, limit, "100000000")?;
    }

    // Resolve the neighbours first: packets that wait for them could be dropped.
    bed.transfer_over_both(bed.local, bed.peer, 4 << 20)?;

    let count = |name| -> Result<u64> {
        let queues = bed.queue_stats(bed.local, QueueKind::Tx, name)?;
        Ok(queues.iter().sum())
    };
    let before = count("tx-stop")?;
    let dropped = bed.link_stats(bed.local)?.tx_dropped;
    let datagrams = Datagrams {
        batch: Some(DATAGRAMS),
        ..bed.datagrams(bed.local, bed.peer, Family::V4, 1000)
    };
    let sink = datagrams.sink(&bed)?;
    let source = datagrams.source(&bed, Some(SENDS * u64::from(DATAGRAMS)))?;
    assert_eq!(source.join()?.sent, SENDS * u64::from(DATAGRAMS));
    assert_eq!(sink.stop()?.corrupt, 0);

    let stops = bed.wait_until(before + SENDS, || count("tx-stop"))?;
    // Only a completion wakes a queue that is stopped, and each stop rings the doorbell for one.
    bed.wait_until(stops, || count("tx-wake"))?;
    // A frame that finds no room is dropped. And a queue that was not woken would have timed out by
    // now, which the log would show.
    assert_eq!(bed.link_stats(bed.local)?.tx_dropped, dropped);
    bed.finish()
}
