// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counters of queues, of the interface and of the device: they agree, and never decrease.

use std::collections::BTreeMap;

use cases::{Ability, CaseError, Family, Result, Testbed};
use protocol::{
    Memory,
    ethtool::{GetStandardStats, StandardStats},
    link::LinkStats,
    netdev::{GetInterfaceQueueStats, GetQueueStats},
    rings::TcpDataSplit,
};

const MIB: u64 = 1 << 20;

/// The counters that the driver keeps for a queue pair.
const KEPT: [&str; 18] = [
    "rx-alloc-fail",
    "rx-bytes",
    "rx-csum-bad",
    "rx-csum-none",
    "rx-csum-unnecessary",
    "rx-hw-drop-overruns",
    "rx-hw-drops",
    "rx-packets",
    "tx-bytes",
    "tx-csum-none",
    "tx-hw-gso-bytes",
    "tx-hw-gso-packets",
    "tx-hw-gso-wire-bytes",
    "tx-hw-gso-wire-packets",
    "tx-needs-csum",
    "tx-packets",
    "tx-stop",
    "tx-wake",
];

type Counters = BTreeMap<String, u64>;

fn device(bed: &Testbed) -> Result<Counters> {
    Ok(bed.guest.call(GetInterfaceQueueStats::on(bed.local))?)
}

/// Sums over the queues in use.
fn queues(bed: &Testbed) -> Result<Counters> {
    let queues = bed.guest.call(GetQueueStats::on(bed.local))?;
    let mut sum = Counters::new();
    for (name, value) in queues.into_iter().flat_map(|queue| queue.counters) {
        *sum.entry(name).or_default() += value;
    }
    Ok(sum)
}

/// The counters that have decreased.
fn backwards(before: &Counters, now: &Counters) -> Vec<String> {
    let less = before
        .iter()
        .filter(|(name, value)| now.get(*name).copied() < Some(**value));
    less.map(|(name, value)| format!("{name}: {value}, then {:?}", now.get(name)))
        .collect()
}

/// The counters of the device, of its queues and of the link, read while none of them changed.
fn settled(bed: &Testbed) -> Result<(Counters, Counters, LinkStats)> {
    const TRIES: usize = 100;

    for _ in 0..TRIES {
        let counters = device(bed)?;
        let others = (queues(bed)?, bed.link_stats(bed.local)?);
        if device(bed)? == counters {
            return Ok((counters, others.0, others.1));
        }
    }
    Err(CaseError::new(format!(
        "traffic went on while the counters were read {TRIES} times"
    )))
}

#[test]
fn counters_of_queues_and_interface_agree_and_never_run_backwards() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .cpus(3)
        .header_split()
        .boot("statistics")?;
    bed.steer(bed.local, &[0, 1, 2])?;
    let mut before = device(&bed)?;
    assert!(before.keys().map(String::as_str).eq(KEPT), "{before:?}");

    let changes: [(&str, &dyn Fn() -> Result); 6] = [
        ("nothing", &|| Ok(())),
        ("down and up", &|| {
            bed.set_interface(bed.local, false)?;
            let down = device(&bed)?;
            assert_eq!(queues(&bed)?, Counters::new(), "no queue is in use");
            assert!(down["rx-packets"] > 0, "{down:?}");
            bed.set_interface(bed.local, true)?;
            bed.wait_carrier(true)
        }),
        ("a queue restarts", &|| {
            bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?.stop()?;
            Ok(())
        }),
        ("a ring", &|| bed.set_receive_ring(bed.local, 256)),
        ("header split", &|| {
            bed.set_header_split(bed.local, TcpDataSplit::Off)
        }),
        ("MTU", &|| bed.set_mtu(bed.local, 9000)),
    ];
    for (name, change) in changes {
        change()?;
        let after = device(&bed)?;
        assert_eq!(backwards(&before, &after), [""; 0], "{name}");
        bed.transfer_both_ways(MIB)?;
        let traffic = device(&bed)?;
        assert_eq!(backwards(&after, &traffic), [""; 0], "traffic after {name}");
        for moving in [
            "rx-packets",
            "rx-csum-unnecessary",
            "tx-needs-csum",
            "tx-hw-gso-packets",
        ] {
            assert!(traffic[moving] > after[moving], "{moving} after {name}");
        }
        before = traffic;
    }

    let (device, queues, link) = settled(&bed)?;
    assert_eq!(device, queues, "all queues are in use");
    assert_eq!(
        [
            link.rx_packets,
            link.rx_bytes,
            link.tx_packets,
            link.tx_bytes
        ],
        ["rx-packets", "rx-bytes", "tx-packets", "tx-bytes"].map(|name| device[name])
    );
    bed.finish()
}

#[test]
fn segmentation_and_checksums_are_counted_as_they_leave() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .boot("statistics-segments")?;
    let counters = || device(&bed);
    let moved = |before: &Counters, after: &Counters, name: &str| after[name] - before[name];

    // Segments of a full MTU: 1448 bytes of payload each, with headers of 66.
    let before = counters()?;
    bed.transfer(bed.local, bed.peer, Family::V4, 4 * MIB)?;
    let after = counters()?;
    let [frames, bytes, packets, wire] = [
        "tx-hw-gso-packets",
        "tx-hw-gso-bytes",
        "tx-hw-gso-wire-packets",
        "tx-hw-gso-wire-bytes",
    ]
    .map(|name| moved(&before, &after, name));
    assert!(frames > 0 && packets > frames, "{frames} {packets}");
    assert_eq!(wire - bytes, (packets - frames) * 66, "headers");
    let segmented = |packets: u64| packets >= 4 * MIB * 9 / 10 / 1500;
    assert!(segmented(packets), "{packets}");
    assert!(moved(&before, &after, "tx-needs-csum") >= packets);
    // Packets are counted as sent later than they are queued.
    for (name, segments) in [("tx-packets", packets), ("tx-bytes", wire)] {
        bed.wait_until(before[name] + segments, || Ok(counters()?[name]))?;
    }

    let features = ["tx-tcp-segmentation", "tx-tcp6-segmentation"];
    bed.set_features(bed.local, &features.map(|name| (name, false)))?;
    let before = counters()?;
    bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
    let after = counters()?;
    assert_eq!(moved(&before, &after, "tx-hw-gso-packets"), 0);
    assert_eq!(moved(&before, &after, "tx-hw-gso-wire-packets"), 0);

    // The stack computes ICMP checksums.
    let before = counters()?;
    bed.ping(bed.local, bed.peer, Family::V4, 3, 64)?;
    let after = counters()?;
    assert!(moved(&before, &after, "tx-csum-none") > 0, "{after:?}");
    bed.finish()
}

// `ETHTOOL_A_STATS_ETH_MAC_*`
const TX_FRAMES: u16 = 0;
const RX_FRAMES: u16 = 3;
const TX_OCTETS: u16 = 6;
const RX_OCTETS: u16 = 12;

fn standard_stats(bed: &Testbed) -> Result<StandardStats> {
    Ok(bed.guest.call(GetStandardStats::on(bed.local))?)
}

/// Statistics that agree with each other: registers are read one after the other, with no frame
/// in between.
fn settled_stats(bed: &Testbed) -> Result<StandardStats> {
    const TRIES: usize = 100;

    let frames = |stats: &StandardStats| count(stats, "eth-mac", RX_FRAMES);
    let mut stats = standard_stats(bed)?;
    for _ in 0..TRIES {
        let again = standard_stats(bed)?;
        if frames(&stats) == frames(&again) {
            return Ok(stats);
        }
        stats = again;
    }
    Err(CaseError::new(format!(
        "frames kept coming while the counters were read {TRIES} times: {stats:?}"
    )))
}

/// The count of a standard statistic.
fn count(stats: &StandardStats, group: &str, id: u16) -> u64 {
    let mut counters = stats.counters.iter();
    let found = counters.find(|(of, number, _)| (of.as_str(), *number) == (group, id));
    found.expect("it is counted").2
}

#[test]
fn the_device_counts_frames_by_the_standards() -> Result {
    let bed = Testbed::options()
        .needs([Ability::StandardStatistics])
        .boot("device-standard")?;
    let sizes = |sizes: &[(u32, u32, u64)]| sizes.iter().map(|(_, _, n)| *n).sum::<u64>();
    let before = standard_stats(&bed)?;
    let (source, _) = bed.transfer(bed.peer, bed.local, Family::V4, 4 * MIB)?;
    let packets = bed.link_stats(bed.local)?;
    let after = settled_stats(&bed)?;

    let grown = |id| count(&after, "eth-mac", id) - count(&before, "eth-mac", id);
    assert!(grown(RX_FRAMES) > 2800, "4 MiB in frames of 1500 bytes");
    let again = u64::from(source.retransmits) * 1518;
    assert!(grown(RX_OCTETS) > 4 * MIB && grown(RX_OCTETS) < 5 * MIB + again);
    assert!(grown(TX_FRAMES) > 0, "acknowledgements");
    assert!(grown(TX_OCTETS) >= 64 * grown(TX_FRAMES));
    // Every frame is in one size bin, and the driver saw it.
    let [rx, tx] = [RX_FRAMES, TX_FRAMES].map(|id| count(&after, "eth-mac", id));
    assert!(
        rx >= packets.rx_packets && tx >= packets.tx_packets,
        "{after:?}, {packets:?}"
    );
    // QEMU's wire carries frames that silicon would have padded; they are too short for the bins.
    let undersize = count(&after, "rmon", 0);
    assert_eq!(sizes(&after.rx_sizes) + undersize, rx, "{after:?}");
    assert_eq!(after.rx_sizes[0].0, 64);
    assert_eq!(after.rx_sizes.len(), 6);
    let large = after.rx_sizes[5].2 - before.rx_sizes[5].2;
    assert!(large > 2700, "segments: {after:?}");
    assert!(count(&after, "rmon", 3) == 0, "no jabbers");
    assert_eq!(count(&after, "eth-ctrl", 0), 0, "no pause frames");

    // They survive taking the interface down.
    bed.down_and_up(bed.local)?;
    let later = standard_stats(&bed)?;
    for ((group, id, count), (.., now)) in after.counters.iter().zip(&later.counters) {
        assert!(now >= count, "{group} {id} went from {count} to {now}");
    }
    bed.finish()
}
