// SPDX-License-Identifier: MIT OR Apache-2.0

//! Changing the number of queue pairs: under traffic, alongside bindings and RSS tables, and
//! refused where it must be.

use cases::{Ability, Family, Result, Testbed, assert_refused, finish};
use libc::EINVAL;
use protocol::{
    Memory,
    netdev::{GetInterfaceQueueStats, ListNapis, ListQueues, Queue, QueueKind},
    rings::{Channels, GetChannels, TcpDataSplit},
};

const MIB: u64 = 1 << 20;
const CPUS: u32 = 4;

fn set(bed: &Testbed, combined: u32) -> Result {
    bed.set_channels(bed.local, combined)
}

#[track_caller]
fn assert_pairs_refused(bed: &Testbed, combined: u32, why: &str) {
    let what = format!("{combined} pairs: {why}");
    assert_refused(set(bed, combined), EINVAL, &what);
}

fn channels(bed: &Testbed) -> Result<Channels> {
    Ok(bed.guest.call(GetChannels::on(bed.local))?)
}

fn table(bed: &Testbed) -> Result<Vec<u32>> {
    Ok(bed.rss(bed.local)?.indirection)
}

fn queues(bed: &Testbed) -> Result<Vec<Queue>> {
    Ok(bed.guest.call(ListQueues::on(bed.local))?)
}

/// How many queue pairs the device can have.
fn most(bed: &Testbed) -> Result<u32> {
    Ok(channels(bed)?.combined_max)
}

/// The interface has `count` queue pairs, each with a NAPI, and flows are sent to all of them.
fn assert_pairs(bed: &Testbed, count: u32) -> Result {
    assert_eq!(channels(bed)?.combined, count);
    let queues = queues(bed)?;
    for kind in [QueueKind::Rx, QueueKind::Tx] {
        let of_kind = queues.iter().filter(|queue| queue.kind == kind);
        assert_eq!(of_kind.count(), count as usize, "{queues:?}");
    }
    assert!(queues.iter().all(|q| q.napi_id.is_some()), "{queues:?}");
    let table = table(bed)?;
    let spread: Vec<_> = (0..count).cycle().take(table.len()).collect();
    assert_eq!(table, spread);
    Ok(())
}

/// All counters of the interface as a whole: the sums over its queues, including those that are
/// gone.
fn assert_only_grows(bed: &Testbed, before: &mut Vec<(String, u64)>) -> Result {
    let now = bed.guest.call(GetInterfaceQueueStats::on(bed.local))?;
    for (name, old) in before.iter() {
        let new = now.get(name).copied();
        assert!(new >= Some(*old), "{name} went from {old} to {new:?}");
    }
    *before = now.into_iter().collect();
    Ok(())
}

#[test]
fn queue_pairs_come_and_go_under_traffic_and_nothing_runs_backwards() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Channels])
        .cpus(CPUS)
        .boot("channels-traffic")?;
    let mut seen = Vec::new();
    assert_pairs(&bed, CPUS)?;
    assert_only_grows(&bed, &mut seen)?;

    let streams = [
        bed.stream(bed.peer, bed.local, Family::V4),
        bed.stream(bed.local, bed.peer, Family::V6),
    ];
    let mut running = Vec::new();
    for stream in &streams {
        let sink = stream.sink(&bed)?;
        running.push((stream.source(&bed, None, &[64 << 10], 0)?, sink, 0));
    }
    let pairs = most(&bed)?;
    for count in [1, pairs, 2, 3, 1, pairs] {
        set(&bed, count)?;
        assert_pairs(&bed, count)?;
        for (_, sink, wanted) in &mut running {
            *wanted = sink.wait_bytes(*wanted + 2 * MIB)?;
        }
        assert_only_grows(&bed, &mut seen)?;
    }
    for (source, sink, _) in running {
        finish(source, sink)?;
    }

    // Each pair that was added again receives.
    for queue in 0..pairs {
        let stream = bed.stream(bed.peer, bed.local, Family::V4);
        let before = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
        stream
            .reaching(&bed, queue)?
            .transfer(&bed, MIB, &[64 << 10])?;
        let after = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
        let at = queue as usize;
        assert!(after[at] > before[at] + 100, "{before:?} then {after:?}");
    }
    bed.set_interface(bed.local, false)?;
    bed.wait_pools_gone(bed.local)?;
    bed.finish()
}

/// Each ring takes its time to change, above all on the debug kernel: the core's watchdog must not
/// take queues that wait for others for hung ones.
#[test]
fn the_rings_of_all_pairs_change_under_traffic() -> Result {
    let bed = Testbed::options()
        .needs([Ability::ByteQueueLimits, Ability::Channels])
        .cpus(CPUS)
        .boot("channels-rings")?;
    let pairs = most(&bed)?;
    set(&bed, pairs)?;
    let stream = bed.stream(bed.local, bed.peer, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = sink.wait_bytes(MIB)?;
    for descriptors in [4096, 2048, 4096] {
        bed.set_receive_ring(bed.local, descriptors)?;
        wanted = sink.wait_bytes(wanted + MIB)?;
    }
    set(&bed, 1)?;
    sink.wait_bytes(wanted + MIB)?;
    finish(source, sink)?;
    // Frames on a ring that is gone are not waited for.
    set(&bed, pairs)?;
    bed.wait_all_sent(bed.local.interface, 0..pairs)?;
    bed.finish()
}

#[test]
fn what_the_device_cannot_do_and_what_is_in_use_is_refused() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Channels])
        .binds([1, 3])
        .cpus(CPUS)
        .header_split()
        .boot("channels-refused")?;
    for count in [0, most(&bed)? + 1, 1000] {
        assert_pairs_refused(&bed, count, "the device cannot have them");
    }
    assert_pairs(&bed, CPUS)?;

    // A table set by the user keeps its queues in use, and is kept itself.
    bed.steer(bed.local, &[0, 2])?;
    for count in [1, 2] {
        assert_pairs_refused(&bed, count, "queue 2 is in the table");
    }
    set(&bed, 3)?;
    let steered = table(&bed)?;
    assert!(
        steered.iter().eq([0, 2].iter().cycle().take(steered.len())),
        "{steered:?}"
    );
    set(&bed, CPUS)?;
    assert_eq!(table(&bed)?, steered);

    // So does a binding, and Linux 7.3 keeps one queue more (`dev_get_min_mp_channel_count()` is a
    // count, and is compared as if it were a queue index). Traffic to it goes on while other
    // queues come and go.
    bed.steer(bed.local, &[1])?;
    let mut changes = [3, 4, 3, 4, 3].into_iter();
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let received = stream.receive_devmem(&bed, 1, 8 * MIB, 8 * MIB, |_| {
        if let Some(count) = changes.next() {
            assert_pairs_refused(&bed, 1, "queue 1 is bound");
            set(&bed, count).expect("the bound queue stays");
        }
    })?;
    assert_eq!(received.verified, 8 * MIB);
    assert_eq!(channels(&bed)?.combined, 3, "all were made meanwhile");
    set(&bed, CPUS)?;
    let bound = bed.bind(bed.local, 3, Memory::Udmabuf, 4 * MIB)?;
    assert_pairs_refused(&bed, 3, "queue 3 is bound");
    assert_eq!(channels(&bed)?.combined, CPUS);
    bound.stop()?;
    set(&bed, 3)?;
    let bind = bed.bind(bed.local, 3, Memory::Udmabuf, 4 * MIB);
    assert_refused(bind, EINVAL, "a bind to a queue that is not there");
    bed.finish()
}

#[test]
fn the_number_of_pairs_and_their_interrupts_affinity_outlive_what_else_changes() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Channels])
        .cpus(CPUS)
        .boot("channels-kept")?;
    let napis = bed.guest.call(ListNapis::on(bed.local))?;
    let irqs: Vec<_> = napis.iter().filter_map(|napi| napi.irq).collect();
    assert_eq!(irqs.len(), CPUS as usize, "{napis:?}");
    let affinity = |irq: u32| format!("/proc/irq/{irq}/smp_affinity");
    for (cpus, irq) in ["3", "5", "9", "6"].into_iter().zip(&irqs) {
        bed.write_file(affinity(*irq), cpus)?;
    }
    let affinities = || -> Result<Vec<String>> {
        let files = irqs.iter().map(|irq| affinity(*irq));
        files.map(|file| bed.read_file(file)).collect()
    };
    let chosen = affinities()?;

    for count in [1, CPUS, 2] {
        set(&bed, count)?;
        assert_eq!(affinities()?, chosen, "after {count} pairs");
    }
    bed.set_receive_ring(bed.local, 256)?;
    assert_pairs(&bed, 2)?;
    bed.set_mtu(bed.local, 9000)?;
    assert_pairs(&bed, 2)?;
    bed.set_header_split(bed.local, TcpDataSplit::On)?;
    assert_pairs(&bed, 2)?;
    bed.set_interface(bed.local, false)?;
    assert_eq!(channels(&bed)?.combined, 2);
    bed.set_interface(bed.local, true)?;
    assert_pairs(&bed, 2)?;
    assert_eq!(affinities()?, chosen);

    // Also while the interface is down.
    bed.set_interface(bed.local, false)?;
    set(&bed, 3)?;
    bed.set_interface(bed.local, true)?;
    assert_pairs(&bed, 3)?;
    bed.wait_carrier_of(bed.local, true)?;
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.finish()
}
