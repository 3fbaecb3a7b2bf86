// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary traffic: ping and TCP, IPv4 and IPv6, small and jumbo frames.

use cases::{Family, Result, Testbed};
use protocol::{net::LinkStats, request::Ping};

const MIB: u64 = 1 << 20;

/// A frame of 42 bytes, such as an ARP request, is padded to 60.
const PADDING: u64 = 18;

fn ping_and_tcp_both_ways(mtu: u32, name: &str) -> Result {
    let bed = Testbed::options().mtu(mtu).boot(name)?;
    let [local, peer] = bed.stations();
    // As many as TCP may have on the way, so that none is lost where the guest is slow to take them.
    bed.set_receive_ring(peer, 4096)?;
    let before = [bed.link_stats(local)?, bed.link_stats(peer)?];

    for family in Family::BOTH {
        for (from, to) in [(local, peer), (peer, local)] {
            // Sizes around the smallest frame and the MTU, and one that is fragmented.
            for size in [0, 1, 18, 64, mtu - 60, 2 * mtu] {
                let report = bed.guest.call(Ping {
                    ns: from.ns,
                    to: to.address(family),
                    count: 3,
                    size,
                    timeout_ms: 20_000,
                })?;
                assert_eq!(
                    (report.received, report.corrupt),
                    (3, 0),
                    "pings with {size} bytes from {} over {family:?}: {report:?}",
                    from.interface
                );
            }
            bed.stream(from, to, family)
                .transfer(&bed, 8 * MIB, &[64 << 10])?;
        }
    }

    // What one end sends is what the other receives, but for the padding of short frames: the
    // headers of every segment count.
    let (sent, received) = (bed.link_stats(local)?, bed.link_stats(peer)?);
    let sent_bytes = sent.tx_bytes - before[0].tx_bytes;
    let received_bytes = received.rx_bytes - before[1].rx_bytes;
    assert!(
        received_bytes.abs_diff(sent_bytes) <= PADDING * (sent.tx_packets - before[0].tx_packets),
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
    bed.finish()?;
    Ok(())
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
fn the_mtu_can_be_9216_and_no_more() -> Result {
    let bed = Testbed::options().mtu(9216).boot("traffic-mtu")?;
    bed.stream(bed.peer, bed.local, Family::V4)
        .transfer(&bed, 4 * MIB, &[64 << 10])?;
    let error = bed.set_mtu(bed.local, 9217);
    assert!(error.is_err(), "an MTU of 9217 bytes was taken");
    bed.finish()?;
    Ok(())
}
