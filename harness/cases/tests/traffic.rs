// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary traffic: ping and TCP, IPv4 and IPv6, small and jumbo frames.

use cases::{Ability, Family, Result, Station, Testbed, assert_refused};
use libc::EINVAL;
use protocol::{link::LinkStats, rings::TcpDataSplit};

const MIB: u64 = 1 << 20;
const BYTES: u64 = 8 * MIB;

/// A frame of 42 bytes, such as an ARP request, is padded to 60.
const PADDING: u64 = 18;

/// Packets that the NIC passed up the stack, and how many IPv4 delivered to TCP and others: fewer
/// where GRO merged them.
fn received_and_delivered(bed: &Testbed, station: Station) -> Result<[u64; 2]> {
    Ok([
        bed.link_stats(station)?.rx_packets,
        bed.counter(station.ns, "Ip", "InDelivers")?,
    ])
}

fn ping_and_tcp_both_ways(mtu: u32, name: &str) -> Result {
    let bed = Testbed::options().mtu(mtu).boot(name)?;
    let [local, peer] = bed.stations();
    // As many as TCP may have in flight, so that none is lost where the guest is slow to receive.
    if bed.can(Ability::RingSizes)? {
        bed.set_receive_ring(peer, 4096)?;
    }
    let before = [bed.link_stats(local)?, bed.link_stats(peer)?];

    for family in Family::BOTH {
        for (from, to) in [(local, peer), (peer, local)] {
            // Sizes around the smallest frame and the MTU, and one that is fragmented.
            for size in [0, 1, 18, 64, mtu - 60, 2 * mtu] {
                bed.ping(from, to, family, 3, size)?;
            }
            let [received, delivered] = received_and_delivered(&bed, to)?;
            bed.transfer(from, to, family, BYTES)?;
            let now = received_and_delivered(&bed, to)?;
            let (received, delivered) = (now[0] - received, now[1] - delivered);
            // With segments of 9000 bytes, at most six or seven make a packet. Software may take them
            // uncut.
            let uncut = received < BYTES / u64::from(2 * mtu);
            assert!(
                family == Family::V6 || mtu > 1500 || uncut || received > 2 * delivered,
                "GRO merges: {received} packets became {delivered}"
            );
        }
    }

    // All bytes that BQL counted as queued were counted as completed.
    if bed.can(Ability::ByteQueueLimits)? {
        let limit = bed.byte_queue_limits(local.interface, 0..2, "limit")?;
        assert!(limit > 0, "BQL is not fed");
        bed.wait_all_sent(local.interface, 0..2)?;
    }

    // One end receives what the other sends, except for the padding of short frames: the headers of
    // every segment count.
    let (sent, received) = (bed.link_stats(local)?, bed.link_stats(peer)?);
    let sent_bytes = sent.tx_bytes - before[0].tx_bytes;
    let received_bytes = received.rx_bytes - before[1].rx_bytes;
    let padding = PADDING * (sent.tx_packets - before[0].tx_packets);
    assert!(
        received_bytes.abs_diff(sent_bytes) <= padding || !bed.can(Ability::WireBytes)?,
        "{sent_bytes} bytes were sent, but {received_bytes} received: {sent:?} {received:?}"
    );

    for (station, before) in bed.stations().into_iter().zip(before) {
        let after = bed.link_stats(station)?;
        let grown = |field: fn(&LinkStats) -> u64| field(&after) - field(&before);
        assert!(
            grown(|s| s.rx_bytes) > 16 * MIB && grown(|s| s.tx_bytes) > 16 * MIB,
            "{} counts all traffic: {before:?} then {after:?}",
            station.interface
        );
        if !bed.can(Ability::ErrorCounters)? {
            continue;
        }
        assert_eq!(
            [
                grown(|s| s.rx_errors),
                grown(|s| s.rx_dropped),
                grown(|s| s.rx_missed_errors),
                grown(|s| s.tx_errors),
                grown(|s| s.tx_dropped),
            ],
            [0; 5],
            "{} counts no loss: {before:?} then {after:?}",
            station.interface
        );
    }
    bed.finish()
}

#[test]
fn ping_and_tcp_pass_both_ways_over_ipv4_and_ipv6_at_mtu_1500() -> Result {
    ping_and_tcp_both_ways(1500, "traffic-1500")
}

#[test]
fn ping_and_tcp_pass_both_ways_over_ipv4_and_ipv6_at_mtu_9000() -> Result {
    ping_and_tcp_both_ways(9000, "traffic-9000")
}

#[test]
fn frames_arrive_whole_that_devices_read_and_write_through_bounce_buffers() -> Result {
    let bed = Testbed::options()
        .needs([Ability::HeaderSplit])
        .bounce_buffers()
        .boot("traffic-bounce")?;
    let used = || -> Result<u64> {
        let text = bed.read_file("/sys/kernel/debug/swiotlb/io_tlb_used")?;
        Ok(text.trim().parse()?)
    };
    assert!(used()? > 0, "no bounce buffer is used");
    // On first: no neighbour is resolved yet, and ARP is not split, nor are headers that are too
    // long.
    for split in [TcpDataSplit::On, TcpDataSplit::Off] {
        bed.set_header_split(bed.local, split)?;
        for (from, to) in [(bed.peer, bed.local), (bed.local, bed.peer)] {
            for family in Family::BOTH {
                bed.ping(from, to, family, 3, 3000)?;
                bed.transfer(from, to, family, 2 * MIB)?;
            }
            let mut stream = bed.stream(from, to, Family::V6);
            stream.hop_by_hop = 248;
            stream.transfer(&bed, MIB, &[64 << 10])?;
        }
    }
    // Each mapping has a bounce buffer, so a leaked mapping shows.
    for station in bed.stations() {
        bed.set_interface(station, false)?;
    }
    bed.wait_until(1, || Ok(u64::from(used()? == 0)))?;
    bed.finish()
}

#[test]
fn the_largest_mtu_works_and_no_larger_one_is_taken() -> Result {
    let bed = Testbed::options()
        .needs([Ability::MtuLimit])
        .boot("traffic-mtu")?;
    let largest = bed.nic().max_mtu;
    for station in bed.stations() {
        bed.set_mtu(station, largest)?;
    }
    bed.transfer(bed.peer, bed.local, Family::V4, 4 * MIB)?;
    let error = bed.set_mtu(bed.local, largest + 1);
    // dev_validate_mtu() in net/core/dev.c.
    assert_refused(error, EINVAL, "an MTU that is one byte larger");
    bed.finish()
}
