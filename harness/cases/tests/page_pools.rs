// SPDX-License-Identifier: MIT OR Apache-2.0

//! How much memory page pools keep.

use cases::{Ability, Family, Result, Testbed};
use protocol::{
    MeasuredSink,
    kernel::FreeDeferred,
    measure::Path,
    netdev::{ListQueues, PagePool, QueueKind},
};

const MIB: u64 = 1 << 20;

/// The queue that receives.
const QUEUE: u32 = 1;

/// How much a queue's pool may keep, in bytes: 256 MiB for nine queues.
const MOST: u64 = 256 * MIB / 9;

/// How much a socket holds at once: more than that.
const HELD: u64 = 2 * MOST;

/// The pool that the queue receives from: one, as headers are not split.
fn pool(bed: &Testbed) -> Result<PagePool> {
    let queues = bed.guest.call(ListQueues::on(bed.local))?;
    let own = |id, kind| id == QUEUE && kind == QueueKind::Rx;
    let queue = queues.iter().find(|queue| own(queue.id, queue.kind));
    let napi = queue.and_then(|queue| queue.napi_id);
    let mut pools = bed.page_pools(bed.local)?.into_iter();
    let pool = pools.find(|pool| napi.is_some() && pool.napi_id == napi.map(u64::from));
    Ok(pool.expect("the queue has a pool"))
}

#[test]
fn what_sockets_held_is_kept_for_reuse_up_to_a_limit() -> Result {
    let bed = Testbed::options()
        .needs([Ability::PagePools])
        .mtu(9000)
        .boot("page-pool-limit")?;
    bed.steer(bed.local, &[QUEUE])?;
    // An unread socket accepts this much from the start.
    let most = format!("4096 {0} {0}", 4 * HELD);
    bed.write_file("/proc/sys/net/ipv4/tcp_rmem", most)?;
    let memory = || -> Result<u64> { Ok(pool(&bed)?.inflight_mem.unwrap_or(0)) };
    let posted = memory()?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    // It waits for a second connection before it reads.
    let sink = bed.guest.start(MeasuredSink {
        ns: bed.local.ns,
        from: bed.peer.ns,
        interface: bed.local.name(),
        listen: bed.local.socket(stream.family, stream.port),
        path: Path::Ordinary,
        flows: 2,
        token_batch: None,
        read: 64 << 10,
        skip: 0,
        window: MIB,
    })?;
    let source = stream.source(&bed, Some(HELD), &[256 << 10], 0)?;
    let held = bed.wait_until(posted + HELD, memory)?;

    // The connection ends, and everything it holds is freed at once.
    sink.stop()?;
    source.stop()?;
    let mut kept = 0;
    bed.wait_until(1, || {
        bed.guest.call(FreeDeferred {})?;
        kept = memory()?;
        Ok((kept <= MOST).into())
    })
    .map_err(|error| cases::CaseError::new(format!("{kept} of {held} bytes are kept: {error}")))?;
    println!(
        "posted {} MiB, held {} MiB, kept {} MiB",
        posted / MIB,
        held / MIB,
        kept / MIB
    );
    assert!(kept > posted, "some is kept: {kept} of {held}");
    bed.finish()
}
