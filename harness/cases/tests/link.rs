// SPDX-License-Identifier: MIT OR Apache-2.0

//! A wire that loses, reorders, duplicates and damages frames: what arrives is what was sent all the same.
//! Only wires of our models do that.

use std::{thread, time::Duration};

use cases::{Ability, Family, Result, Station, Testbed, captured};
use protocol::ethtool::GetStandardStats;
use vm::{Cables, Link, Wire};

const MIB: u64 = 1 << 20;
/// `ETHTOOL_A_STATS_ETH_MAC_6_FCS_ERR`
const FRAME_CHECK_ERRORS: u16 = 4;

/// A link on which much goes wrong.
const BAD: Link = Link {
    rate: None,
    delay: Duration::from_micros(500),
    loss_ppm: 10_000,
    reorder_ppm: 10_000,
    duplicate_ppm: 10_000,
    corrupt_ppm: 5_000,
    seed: 7,
};

/// Frames with a wrong check sequence that a NIC has received.
fn damaged(bed: &Testbed, station: Station) -> Result<u64> {
    let stats = bed.guest.call(GetStandardStats::on(station))?;
    let of_mac = |(group, id, _): &&(String, u16, u64)| {
        (group.as_str(), *id) == ("eth-mac", FRAME_CHECK_ERRORS)
    };
    let found = stats.counters.iter().find(of_mac);
    Ok(found.expect("it is counted").2)
}

#[test]
fn tcp_arrives_whole_over_a_bad_link_in_both_directions() -> Result {
    let bed = Testbed::options().link(BAD).boot("link-tcp")?;
    bed.transfer_both_ways(MIB)?;
    bed.finish()
}

#[test]
fn device_memory_gets_all_bytes_over_a_bad_link() -> Result {
    let bed = Testbed::devmem_options()
        .mtu(1500)
        .link(BAD)
        .boot_steered("link-devmem")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let received = stream.receive_devmem(&bed, 1, 2 * MIB, 4 * MIB, |_| ())?;
    received.assert_whole(2 * MIB);
    bed.finish()
}

#[test]
fn damaged_frames_are_counted_and_a_rate_passes_traffic() -> Result {
    let bed = Testbed::options()
        .needs([Ability::StandardStatistics])
        .link(Link {
            rate: Some(1_000_000_000),
            corrupt_ppm: 20_000,
            seed: 1,
            ..Link::default()
        })
        .boot("link-damaged")?;
    let before = damaged(&bed, bed.local)?;
    bed.transfer(bed.peer, bed.local, Family::V4, 2 * MIB)?;
    // Roughly 1500 frames, of which 30 are damaged.
    let count = damaged(&bed, bed.local)? - before;
    assert!((8..100).contains(&count), "{count}");
    bed.finish()
}

/// How many frames of a station are in the capture of a guest.
fn count(bed: &Testbed, from: Station) -> Result<usize> {
    let frames = captured(&bed.guest.pcap(Wire(0)))?;
    let of_station = frames.iter().filter(|frame| frame.from == from.mac());
    Ok(of_station.count())
}

#[test]
fn tcp_arrives_whole_over_a_link_between_two_guests_that_loses_and_damages_frames() -> Result {
    let [near, far] = Cables::lay(1)?;
    let boot = |cables, name| {
        let options = Testbed::options().cables(cables).link(Link {
            loss_ppm: 20_000,
            corrupt_ppm: 20_000,
            delay: Duration::from_micros(500),
            seed: 1,
            ..Link::default()
        });
        options.needs([Ability::StandardStatistics]).boot(name)
    };
    let (near, far) = thread::scope(|scope| {
        let far = scope.spawn(|| boot(far, "link-far"));
        (
            boot(near, "link-near"),
            far.join().expect("it does not panic"),
        )
    });
    let (near, far) = (near?, far?);
    for [(from, sender), (to, receiver)] in [
        [(&near, near.local), (&far, far.peer)],
        [(&far, far.peer), (&near, near.local)],
    ] {
        let look = || -> Result<[u64; 2]> {
            // In this order: what arrives in between was sent, too.
            let arrived = count(to, sender)?;
            let lost = count(from, sender)? - arrived;
            Ok([u64::try_from(lost)?, damaged(to, receiver)?])
        };
        let before = look()?;
        let stream = from.stream(sender, receiver, Family::V4);
        stream.transfer_between([from, to], 2 * MIB, &[64 << 10])?;
        // Roughly 1500 frames, of which 30 are lost, and 30 damaged.
        for (now, before) in look()?.into_iter().zip(before) {
            let count = now - before;
            assert!((8..100).contains(&count), "{count}");
        }
        assert!(from.counter(sender.ns, "Tcp", "RetransSegs")? > 0);
    }
    near.finish()?;
    far.finish()?;
    Ok(())
}
