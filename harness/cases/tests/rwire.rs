// SPDX-License-Identifier: MIT OR Apache-2.0

//! The second driver based on `net`: a pair of software NICs, without a bus, DMA or interrupts.

use cases::{Driver, Family, Result, Station, Testbed, assert_refused};
use libc::EOPNOTSUPP;
use protocol::{
    ethtool::{GetDriverStats, GetPause, GetTimestamping},
    kernel::{ReadFile, UnloadModule},
    link::ListInterfaces,
    netdev::{ListNapis, ListQueues, QueueKind},
    rings::GetChannels,
    snmp,
    timestamp::{TimestampDatagrams, TimestampSource},
};

const MIB: u64 = 1 << 20;
const BYTES: u64 = 16 * MIB;

/// `SOF_TIMESTAMPING_*`: TX_SOFTWARE, RX_SOFTWARE and SOFTWARE.
const SOFTWARE_TIMESTAMPS: u32 = 1 << 1 | 1 << 3 | 1 << 4;

fn pair(mtu: u32, name: &str) -> Result<Testbed> {
    Testbed::options().driver(Driver::Rwire).mtu(mtu).boot(name)
}

/// Packets that a station's namespace has received, where each of merged segments counts.
fn segments(bed: &Testbed, station: Station, family: Family) -> Result<u64> {
    let read = |file: &str| {
        bed.guest.call(ReadFile::new(
            station.ns,
            format!("/proc/thread-self/net/{file}"),
        ))
    };
    let count = match family {
        Family::V4 => snmp::value(&read("netstat")?, "IpExt", "InNoECTPkts"),
        Family::V6 => read("snmp6")?
            .lines()
            .find_map(|line| line.strip_prefix("Ip6InNoECTPkts")?.trim().parse().ok()),
    };
    Ok(count.expect("the kernel counts them"))
}

fn passes_traffic(mtu: u32, name: &str) -> Result {
    let bed = pair(mtu, name)?;
    let [local, peer] = bed.stations();
    let before = [bed.link_stats(local)?, bed.link_stats(peer)?];

    for family in Family::BOTH {
        for (from, to) in [(local, peer), (peer, local)] {
            // The last size is fragmented.
            for size in [0, 1, 18, 64, mtu - 60, 2 * mtu] {
                bed.ping(from, to, family, 3, size)?;
            }
            // More than a wire holds, so that queues stop and are woken.
            let before = (bed.link_stats(to)?.rx_packets, segments(&bed, to, family)?);
            bed.transfer(from, to, family, BYTES)?;
            // What would be cut on a real wire arrives as it is, and says what it is.
            let frames = bed.link_stats(to)?.rx_packets - before.0;
            let segments = segments(&bed, to, family)? - before.1;
            assert!(
                frames < BYTES / 2000,
                "{frames} frames over {family:?} at MTU {mtu}"
            );
            assert!(
                segments >= BYTES / u64::from(mtu),
                "{segments} segments over {family:?} at MTU {mtu}"
            );
        }
    }

    // Everything one has sent since it was loaded, the other has received; the kernel may send
    // something between two readings.
    bed.wait_until(1, || {
        let (received, sent) = (bed.link_stats(peer)?, bed.link_stats(local)?);
        let (received, sent) = (
            (received.rx_packets, received.rx_bytes),
            (sent.tx_packets, sent.tx_bytes),
        );
        Ok(u64::from(received == sent))
    })?;
    for (station, before) in bed.stations().into_iter().zip(before) {
        let after = bed.link_stats(station)?;
        assert_eq!(
            (after.tx_dropped, after.rx_dropped, after.rx_errors),
            (before.tx_dropped, before.rx_dropped, before.rx_errors),
            "{} loses nothing: {after:?}",
            station.interface
        );
    }
    bed.finish()
}

#[test]
fn tcp_and_pings_pass_a_software_pair_at_mtu_1500() -> Result {
    passes_traffic(1500, "rwire-1500")
}

#[test]
fn tcp_and_pings_pass_a_software_pair_at_mtu_9000() -> Result {
    passes_traffic(9000, "rwire-9000")
}

/// Nothing comes back, whose receiver would look at the wire, too.
#[test]
fn a_software_nic_that_only_sends_is_woken_when_there_is_room_on_the_wire() -> Result {
    /// The datagram is 417 fragments at this MTU: more than the wire holds, and the qdisc holds the rest.
    const MTU: u32 = 68;
    const SIZE: u32 = 20_000;
    const FRAGMENTS: u64 = (SIZE as u64 + 8).div_ceil(MTU as u64 - 20);

    let bed = Testbed::options()
        .driver(Driver::Rwire)
        .cpus(1)
        .boot("rwire-one-way")?;
    for (path, contents) in [
        // On the only processor, the receiver polls in a thread when the sender has sent all of them.
        (format!("/sys/class/net/{}/threaded", bed.local.name()), "1"),
        // It does not say that fragments are missing.
        ("/proc/sys/net/ipv4/ipfrag_time".to_owned(), "3600"),
    ] {
        bed.write_file(path, contents)?;
    }
    for station in bed.stations() {
        bed.set_mtu(station, MTU)?;
    }
    // A neighbour that is not known yet keeps few of the fragments.
    bed.ping(bed.peer, bed.local, Family::V4, 1, 0)?;
    let datagram = bed.datagrams(bed.peer, bed.local, Family::V4, SIZE);
    let sink = datagram.sink(&bed)?;
    let before = bed.link_stats(bed.local)?.rx_packets;
    let sent = datagram.source(&bed, Some(1))?.join()?;
    assert_eq!((sent.sent, sent.error), (1, None));
    bed.wait_until(before + FRAGMENTS, || {
        Ok(bed.link_stats(bed.local)?.rx_packets)
    })?;
    sink.stop()?;
    bed.finish()
}

#[test]
fn a_software_nic_has_more_rx_queues_than_napis() -> Result {
    let bed = pair(1500, "rwire-queues")?;
    let of = bed.local;
    let mut napis = bed.guest.call(ListNapis::on(of))?;
    napis.sort_by_key(|napi| napi.id);
    let [first, second] = &napis[..] else {
        panic!("two NAPIs: {napis:?}");
    };
    assert_eq!((first.irq, second.irq), (None, None), "{napis:?}");

    let queues = bed.guest.call(ListQueues::on(of))?;
    let served = |kind: QueueKind| -> Vec<_> {
        let of_kind = queues.iter().filter(|queue| queue.kind == kind);
        of_kind.map(|queue| (queue.id, queue.napi_id)).collect()
    };
    let (first, second) = (Some(first.id), Some(second.id));
    assert_eq!(
        served(QueueKind::Rx),
        [(0, first), (1, first), (2, second), (3, second)],
        "RX queues and their NAPIs"
    );
    assert_eq!(
        served(QueueKind::Tx),
        [(0, first), (1, second)],
        "TX queues and their NAPIs"
    );
    bed.finish()
}

#[test]
fn a_software_nic_has_a_link_while_both_ends_are_up() -> Result {
    let bed = pair(1500, "rwire-link")?;
    for (down, other) in [(bed.local, bed.peer), (bed.peer, bed.local)] {
        bed.set_interface(down, false)?;
        bed.wait_carrier_of(other, false)?;
        bed.set_interface(down, true)?;
        bed.wait_carrier(true)?;
        bed.transfer(other, down, Family::V4, MIB)?;
    }
    bed.finish()
}

#[test]
fn a_software_nic_has_software_timestamps_and_no_ethtool_operation_of_its_own() -> Result {
    let bed = pair(1500, "rwire-ethtool")?;
    let timestamps = bed.guest.call(GetTimestamping::on(bed.local))?;
    assert_eq!(
        (timestamps.sources, timestamps.clock),
        (SOFTWARE_TIMESTAMPS, None)
    );
    for family in Family::BOTH {
        let timestamps = bed.guest.call(TimestampDatagrams {
            ns: bed.local.ns,
            to: bed.peer.socket(family, bed.port()),
            count: 1,
            size: 64,
            by: TimestampSource::Software,
            timeout_ms: 60_000,
        })?;
        assert_eq!(timestamps.len(), 1, "timestamps over {family:?}");
    }

    // What the driver does not implement is not there.
    let channels = bed.guest.call(GetChannels::on(bed.local));
    assert_refused(channels, EOPNOTSUPP, "channels");
    let pause = bed.guest.call(GetPause::on(bed.local));
    assert_refused(pause, EOPNOTSUPP, "pause frames");
    let statistics = bed.guest.call(GetDriverStats::on(bed.local));
    assert_refused(statistics, EOPNOTSUPP, "statistics of its own");
    bed.finish()
}

#[test]
fn a_software_pair_comes_and_goes_idle_and_under_traffic() -> Result {
    let bed = pair(1500, "rwire-module")?;
    for traffic in [false, true, true] {
        let mut jobs = Vec::new();
        if traffic {
            for stream in [
                bed.stream(bed.local, bed.peer, Family::V4),
                bed.stream(bed.peer, bed.local, Family::V6),
            ] {
                let mut sink = stream.sink(&bed)?;
                let source = stream.source(&bed, None, &[64 << 10], 0)?;
                sink.wait_bytes(MIB)?;
                jobs.push((source, sink));
            }
        }
        bed.guest.call(UnloadModule::new(Driver::Rwire.name()))?;
        for station in bed.stations() {
            let left = bed.guest.call(ListInterfaces { ns: station.ns })?;
            assert!(
                left.iter().all(|left| left.name != station.interface),
                "no interface is left: {left:?}"
            );
        }
        for (source, sink) in jobs {
            source.stop()?;
            sink.stop()?;
        }
        bed.load_driver()?;
        bed.set_up()?;
        bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
    }
    bed.finish()
}
