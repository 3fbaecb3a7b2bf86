// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counters of queues and of the interface: they agree, and never run backwards.

use std::collections::BTreeMap;

use cases::{Family, Result, Testbed};
use protocol::{
    Memory,
    netdev::{GetInterfaceQueueStats, GetQueueStats},
    rings::DataSplit,
    traffic::Ping,
};

const MIB: u64 = 1 << 20;

/// What the driver keeps of a queue pair.
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
    Ok(bed.guest.call(GetInterfaceQueueStats {
        ns: bed.local.ns,
        interface: bed.local.name(),
    })?)
}

/// Sums over the queues in use.
fn queues(bed: &Testbed) -> Result<Counters> {
    let queues = bed.guest.call(GetQueueStats {
        ns: bed.local.ns,
        interface: bed.local.name(),
    })?;
    let mut sum = Counters::new();
    for (name, value) in queues.into_iter().flat_map(|queue| queue.stats) {
        *sum.entry(name).or_default() += value;
    }
    Ok(sum)
}

/// What is less now than it was.
fn backwards(before: &Counters, now: &Counters) -> Vec<String> {
    let less = before
        .iter()
        .filter(|(name, value)| now.get(*name).copied() < Some(**value));
    less.map(|(name, value)| format!("{name}: {value}, then {:?}", now.get(name)))
        .collect()
}

#[test]
fn counters_of_queues_and_interface_agree_and_never_run_backwards() -> Result {
    let bed = Testbed::options()
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
            bed.set_header_split(bed.local, DataSplit::Off)
        }),
        ("MTU", &|| bed.set_mtu(bed.local, 9000)),
    ];
    for (name, change) in changes {
        change()?;
        let after = device(&bed)?;
        assert_eq!(backwards(&before, &after), [""; 0], "{name}");
        for (from, to) in [(bed.local, bed.peer), (bed.peer, bed.local)] {
            for family in Family::BOTH {
                bed.stream(from, to, family)
                    .transfer(&bed, MIB, &[64 << 10])?;
            }
        }
        bed.packets_when_quiet()?;
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

    let (device, queues) = (device(&bed)?, queues(&bed)?);
    assert_eq!(device, queues, "all queues are in use");
    let link = bed.link_stats(bed.local)?;
    assert_eq!(
        [
            link.rx_packets,
            link.rx_bytes,
            link.tx_packets,
            link.tx_bytes
        ],
        ["rx-packets", "rx-bytes", "tx-packets", "tx-bytes"].map(|name| device[name])
    );
    bed.finish()?;
    Ok(())
}

#[test]
fn segmentation_and_checksums_are_counted_as_they_leave() -> Result {
    let bed = Testbed::options().boot("statistics-segments")?;
    let tx = || -> Result<_> {
        bed.packets_when_quiet()?;
        device(&bed)
    };
    let moved = |before: &Counters, after: &Counters, name: &str| after[name] - before[name];

    // Segments of a full MTU: 1448 bytes of payload each, with headers of 66.
    let before = tx()?;
    bed.stream(bed.local, bed.peer, Family::V4)
        .transfer(&bed, 4 * MIB, &[64 << 10])?;
    let after = tx()?;
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
    assert!(moved(&before, &after, "tx-packets") >= packets);
    assert!(moved(&before, &after, "tx-bytes") >= wire);
    assert!(moved(&before, &after, "tx-needs-csum") >= packets);

    let features = ["tx-tcp-segmentation", "tx-tcp6-segmentation"];
    bed.set_features(bed.local, &features.map(|name| (name, false)))?;
    let before = tx()?;
    bed.stream(bed.local, bed.peer, Family::V4)
        .transfer(&bed, MIB, &[64 << 10])?;
    let after = tx()?;
    assert_eq!(moved(&before, &after, "tx-hw-gso-packets"), 0);
    assert_eq!(moved(&before, &after, "tx-hw-gso-wire-packets"), 0);

    // ICMP has its checksum from the stack.
    let before = tx()?;
    bed.guest.call(Ping {
        ns: bed.local.ns,
        to: bed.peer.address(Family::V4),
        count: 3,
        size: 64,
        timeout_ms: 20_000,
    })?;
    let after = tx()?;
    assert!(moved(&before, &after, "tx-csum-none") > 0, "{after:?}");
    bed.finish()?;
    Ok(())
}
