// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queue pairs, their interrupts and page pools: by default a pair for each processor, a vector
//! for each pair that the device has, and one for the link.

use std::collections::BTreeSet;

use cases::{CaseError, Family, Result, Testbed};
use protocol::{
    netdev::{ListNapis, ListQueues, QueueKind},
    rings::{GetChannels, TcpDataSplit},
};

const MIB: u64 = 1 << 20;
const CPUS: u32 = 3;
/// As many as there are vectors, without the link's.
const PAIRS: u32 = 9;

/// The counts of the interrupts with a matching line in `/proc/interrupts`.
fn interrupts(bed: &Testbed, matches: impl Fn(&str) -> bool) -> Result<Vec<u64>> {
    let text = bed.read_file("/proc/interrupts")?;
    let counts = |line: &str| {
        let numbers = line.split_whitespace().skip(1);
        numbers.map_while(|word| word.parse::<u64>().ok()).sum()
    };
    Ok(text
        .lines()
        .filter(|line| matches(line))
        .map(counts)
        .collect())
}

#[test]
fn each_processor_has_a_queue_pair_with_pools_and_a_vector_and_the_link_a_vector() -> Result {
    let bed = Testbed::options().cpus(CPUS).boot("vectors")?;
    let channels = bed.guest.call(GetChannels::on(bed.local))?;
    assert_eq!((channels.combined, channels.combined_max), (CPUS, PAIRS));

    let queues = bed.guest.call(ListQueues::on(bed.local))?;
    let napis = bed.guest.call(ListNapis::on(bed.local))?;
    let irq = |kind, id| {
        let mut queues = queues.iter();
        let queue = queues.find(|queue| (queue.kind, queue.id) == (kind, id));
        let napi = queue.and_then(|queue| napis.iter().find(|napi| Some(napi.id) == queue.napi_id));
        napi.and_then(|napi| napi.irq)
            .ok_or_else(|| CaseError::new(format!("no interrupt of {kind:?} {id}: {queues:?}")))
    };
    let mut irqs = BTreeSet::new();
    for queue in 0..CPUS {
        let receive = irq(QueueKind::Rx, queue)?;
        assert_eq!(receive, irq(QueueKind::Tx, queue)?, "queue pair {queue}");
        irqs.insert(receive);
    }
    assert_eq!(irqs.len(), CPUS as usize, "{irqs:?}");
    // Of both NICs.
    let named = |name: &'static str| interrupts(&bed, move |line| line.ends_with(name));
    let handlers = (named("rigb-queue")?.len(), named("rigb-link")?.len());
    assert_eq!(handlers, (2 * PAIRS as usize, 2));

    // The pools of each queue's buffers: one for whole frames, or one each for headers and payload.
    for (split, wanted) in [(TcpDataSplit::Off, 1), (TcpDataSplit::On, 2)] {
        bed.set_header_split(bed.local, split)?;
        let pools = bed.page_pools(bed.local)?;
        for napi in &napis {
            let own = pools
                .iter()
                .filter(|pool| pool.napi_id == Some(napi.id.into()));
            assert_eq!(own.count(), wanted, "split is {split:?}: {pools:?}");
        }
    }

    for queue in 0..CPUS {
        let prefix = format!("{}:", irq(QueueKind::Rx, queue)?);
        let came = || interrupts(&bed, |line| line.trim_start().starts_with(&prefix));
        bed.steer(bed.local, &[queue])?;
        let before = came()?;
        bed.transfer(bed.peer, bed.local, Family::V4, 2 * MIB)?;
        let after = came()?;
        assert!(after > before, "queue {queue}: {before:?} then {after:?}");
    }

    let link = || -> Result<u64> { Ok(named("rigb-link")?.iter().sum()) };
    for up in [false, true] {
        let before = link()?;
        bed.set_link(bed.local, up)?;
        bed.wait_carrier_of(bed.local, up)?;
        assert!(link()? > before, "the link went up or down unasked: {up}");
    }
    bed.finish()
}
