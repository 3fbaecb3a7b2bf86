// SPDX-License-Identifier: MIT OR Apache-2.0

//! Header split and ring sizes, changed while traffic runs.

use std::{thread, time::Duration};

use cases::{Ability, Family, Result, Station, Testbed, assert_refused, finish};
use libc::EINVAL;
use protocol::{
    Release,
    rings::{GetRings, Rings, TcpDataSplit},
};

const MIB: u64 = 1 << 20;

fn rings(bed: &Testbed, station: Station) -> Result<Rings> {
    Ok(bed.guest.call(GetRings::on(station))?)
}

#[test]
fn header_split_goes_on_and_off_under_traffic_and_loses_no_data() -> Result {
    let bed = Testbed::options()
        .needs([Ability::HeaderSplit])
        .needs_counters(["rx_split"])
        .boot("header-split-toggle")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = 0;

    assert_eq!(
        rings(&bed, bed.local)?.tcp_data_split,
        Some(TcpDataSplit::Off)
    );
    for _ in 0..2 {
        for (wanted_split, split) in [
            (TcpDataSplit::On, TcpDataSplit::On),
            (TcpDataSplit::Off, TcpDataSplit::Off),
            (TcpDataSplit::On, TcpDataSplit::On),
            // The driver prefers not to split.
            (TcpDataSplit::Auto, TcpDataSplit::Off),
        ] {
            bed.set_header_split(bed.local, wanted_split)?;
            let before = bed.statistic(bed.local, "rx_split")?;
            assert_eq!(rings(&bed, bed.local)?.tcp_data_split, Some(split));

            // Traffic goes on, and the device splits it once that is turned on. Progress reports
            // lag behind, so check more than once.
            let mut splits = false;
            for _ in 0..64 {
                wanted = sink.wait_bytes(wanted + MIB)?;
                splits = bed.statistic(bed.local, "rx_split")? > before;
                if splits || split == TcpDataSplit::Off {
                    break;
                }
            }
            assert_eq!(splits, split == TcpDataSplit::On, "split is {split:?}");
        }
    }
    finish(source, sink)?;
    bed.finish()
}

#[test]
fn what_cannot_be_split_arrives_too() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .mtu(9000)
        .header_split()
        .boot("header-split-others")?;
    for family in Family::BOTH {
        for size in [0, 100, 1000, 8000, 20_000] {
            bed.ping(bed.peer, bed.local, family, 2, size)?;
        }
        bed.transfer(bed.peer, bed.local, family, 4 * MIB)?;
    }
    bed.finish()
}

/// Together with Ethernet, IPv6 and TCP headers, more than the 256 bytes of a header buffer.
const LONG: u16 = 248;

#[test]
fn packets_with_headers_too_long_to_split_arrive_too() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .needs_counters(["rx_unsplit_dropped"])
        .header_split()
        .boot("header-split-long")?;
    let mut stream = bed.stream(bed.peer, bed.local, Family::V6);
    stream.hop_by_hop = LONG;
    stream.transfer(&bed, MIB, &[64 << 10])?;
    assert_eq!(bed.statistic(bed.local, "rx_unsplit_dropped")?, 0);
    bed.finish()
}

#[test]
fn packets_with_headers_too_long_to_split_are_dropped_and_counted_on_a_bound_queue() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .needs_counters(["rx_unsplit_dropped"])
        .header_split()
        .boot("header-split-bound")?;
    bed.steer(bed.local, &[1])?;
    let mut stream = bed.stream(bed.peer, bed.local, Family::V6);
    stream.hop_by_hop = LONG;
    let sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;

    // They are retransmitted again and again, and never get through.
    let mut dropped = 0;
    for _ in 0..600 {
        dropped = bed.statistic(bed.local, "rx_unsplit_dropped")?;
        if dropped >= 3 {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert!(
        dropped >= 3,
        "only {dropped} packets were dropped and counted"
    );
    assert!(bed.link_stats(bed.local)?.rx_dropped >= 3);
    source.stop()?;
    let report = sink.stop()?;
    assert_eq!((report.bytes, report.linear_bytes), (0, 0), "{report:?}");
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);
    bed.finish()
}

#[test]
fn ring_sizes_change_under_traffic_and_wrong_ones_are_refused() -> Result {
    let bed = Testbed::options()
        .needs([Ability::HeaderSplit, Ability::RingSizes])
        .boot("ring-sizes")?;
    let Some(limits) = bed.nic().rings else {
        unreachable!("it is said where there is this ability");
    };
    let (min, max, step) = (limits.min, limits.max, limits.multiple);
    let middle = (min + max) / 4 / step * step;
    let stream = bed.stream(bed.peer, bed.local, Family::V6);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = 0;

    let last = (2 * middle, middle);
    for (rx, tx) in [(min, min), (max, max), (min + step, 2 * min), last] {
        bed.set_rings(bed.local, rx, tx)?;
        let now = rings(&bed, bed.local)?;
        assert_eq!((now.rx, now.tx), (Some(rx), Some(tx)));
        wanted = sink.wait_bytes(wanted + MIB)?;
    }
    let small = (min - 1, min - step);
    for (rx, tx) in [
        (small.0, middle),
        (middle, small.1),
        (middle + 1, middle),
        (2 * max, middle),
    ] {
        let refused = bed.set_rings(bed.local, rx, tx);
        assert_refused(refused, EINVAL, &format!("rings of {rx} and {tx}"));
    }
    let now = rings(&bed, bed.local)?;
    assert_eq!((now.rx, now.tx), (Some(last.0), Some(last.1)));
    sink.wait_bytes(wanted + MIB)?;

    finish(source, sink)?;
    bed.finish()
}
