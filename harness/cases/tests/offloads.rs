// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checksums and segmentation, by the device and by the kernel, over frames of odd sizes.

use std::collections::BTreeSet;

use cases::{Ability, Datagrams, Family, Result, Station, Testbed, assert_fails_saying};
use protocol::{ethtool::GetFeatures, netdev::QueueKind};

/// From one byte to 64 KiB, mostly odd sizes.
const ODD: &[u32] = &[
    1, 2, 3, 13, 63, 64, 65, 536, 1447, 1448, 1449, 2896, 2897, 4095, 4097, 8947, 8949, 17_001,
    32_767, 65_535, 65_536,
];

/// A few rounds of [`ODD`].
const BYTES: u64 = 2_000_003;

/// Transfers [`BYTES`] in writes of [`ODD`] sizes.
fn transfer(bed: &Testbed, from: Station, to: Station, family: Family) -> Result {
    let stream = bed.stream(from, to, family);
    stream.transfer(bed, BYTES, ODD).map(drop)
}

fn odd_sizes_pass(mtu: u32, name: &str) -> Result {
    let bed = Testbed::options()
        .needs_counters(["tx_csum", "tx_tso"])
        .mtu(mtu)
        .boot(name)?;
    // The receiving kernel verifies every checksum itself: the sending device cannot cheat.
    bed.set_features(bed.peer, &[("rx-checksum", false)])?;
    let checksums = bed.statistic(bed.local, "tx_csum")?;

    for family in Family::BOTH {
        let tso = bed.statistic(bed.local, "tx_tso")?;
        transfer(&bed, bed.local, bed.peer, family)?;
        assert!(
            bed.statistic(bed.local, "tx_tso")? > tso,
            "the device segmented over {family:?}"
        );
        transfer(&bed, bed.peer, bed.local, family)?;
    }
    assert!(
        bed.statistic(bed.local, "tx_csum")? - checksums >= 2 * BYTES / u64::from(mtu),
        "the device filled in checksums"
    );
    // What had a wrong one would be sent again, and not in segments.
    for station in [bed.local, bed.peer] {
        assert_eq!(
            bed.counter(station.ns, "Tcp", "InCsumErrors")?,
            0,
            "{station:?}"
        );
    }
    bed.finish()
}

/// Asserts that a feature stays as it is, and that nothing else went wrong.
#[track_caller]
fn assert_stays(result: Result, feature: &str) {
    assert_fails_saying(result, &format!("feature {feature} stays"));
}

#[test]
fn writes_of_odd_sizes_arrive_with_right_checksums_at_mtu_1500() -> Result {
    odd_sizes_pass(1500, "odd-sizes-1500")
}

#[test]
fn writes_of_odd_sizes_arrive_with_right_checksums_at_mtu_9000() -> Result {
    odd_sizes_pass(9000, "odd-sizes-9000")
}

#[test]
fn each_write_in_a_packet_of_its_own_arrives_with_a_right_checksum() -> Result {
    let bed = Testbed::options()
        .needs([Ability::RxChecksum])
        .boot("odd-sizes-single")?;
    bed.set_features(bed.peer, &[("rx-checksum", false)])?;

    for family in Family::BOTH {
        let stream = bed.stream(bed.local, bed.peer, family);
        let sink = stream.sink(&bed)?;
        let source = stream.source(&bed, Some(200_000), ODD, 500)?.join()?;
        let sink = sink.join()?;
        assert_eq!((sink.bytes, sink.mismatch), (200_000, None), "{source:?}");
    }
    bed.finish()
}

#[test]
fn packets_with_extension_headers_are_segmented_and_checksummed_by_the_kernel() -> Result {
    let bed = Testbed::options()
        .needs_counters(["tx_csum", "tx_tso"])
        .boot("offloads-extensions")?;
    bed.set_features(bed.peer, &[("rx-checksum", false)])?;

    for hop_by_hop in [8, 248] {
        let mut stream = bed.stream(bed.local, bed.peer, Family::V6);
        stream.hop_by_hop = hop_by_hop;
        let tso = bed.statistic(bed.local, "tx_tso")?;
        let checksums = bed.statistic(bed.local, "tx_csum")?;
        stream.transfer(&bed, BYTES, &[64 << 10])?;
        assert_eq!(
            bed.statistic(bed.local, "tx_tso")?,
            tso,
            "{hop_by_hop} bytes of options"
        );
        // NETIF_F_IPV6_CSUM is for plain IPv6 headers only, which the handshake has.
        let checksums = bed.statistic(bed.local, "tx_csum")? - checksums;
        assert!(
            checksums < BYTES / 1500,
            "{checksums} with {hop_by_hop} bytes of options"
        );
    }
    bed.finish()
}

#[test]
fn a_feature_that_the_device_lacks_can_be_turned_neither_on_nor_off() -> Result {
    let bed = Testbed::options()
        .needs([Ability::UdpSegmentationProbe])
        .boot("offloads-lacking")?;
    // One that the kernel knows and the driver does not have, and one that does not exist.
    for feature in ["rx-gro-hw", "no-such-feature"] {
        for on in [true, false] {
            let refused = bed.set_features(bed.local, &[(feature, on)]);
            assert_fails_saying(refused, feature);
        }
    }
    // A fixed feature can be set to the value that it has.
    bed.set_features(bed.local, &[("tx-scatter-gather", true)])?;
    assert_stays(
        bed.set_features(bed.local, &[("tx-scatter-gather", false)]),
        "tx-scatter-gather",
    );
    bed.finish()
}

/// Page pools of the current rings of the NIC under test. New rings have new pools; old pools stay
/// until all their pages are returned.
fn pool_numbers(bed: &Testbed) -> Result<Vec<u64>> {
    let mut pools = bed.page_pools(bed.local)?;
    pools.retain(|pool| pool.detach_time.is_none());
    Ok(pools.iter().map(|pool| pool.id).collect())
}

const UDP_SEGMENTATION: &str = "tx-udp-segmentation";

/// Logged by the driver once it knows.
const NO_UDP_SEGMENTATION: &str = "no UDP segmentation: this device makes IP fragments";

#[test]
fn whether_udp_is_segmented_is_found_out_wherever_flows_are_steered() -> Result {
    let bed = Testbed::options()
        .needs([Ability::UdpSegmentationProbe])
        .boot("offloads-udp-steered")?;
    bed.show_whole_log()?;
    // Steer away from the queue that the driver probes with.
    bed.steer(bed.local, &[1])?;
    assert_stays(
        bed.set_features(bed.local, &[(UDP_SEGMENTATION, true)]),
        UDP_SEGMENTATION,
    );
    bed.wait_logged(NO_UDP_SEGMENTATION, 1)?;
    transfer(&bed, bed.peer, bed.local, Family::V4)?;
    bed.finish()
}

#[test]
fn udp_is_not_segmented_by_a_device_that_makes_ip_fragments_of_it() -> Result {
    let bed = Testbed::options()
        .needs([Ability::UdpSegmentationProbe])
        .header_split()
        .boot("offloads-udp-segmentation")?;
    bed.show_whole_log()?;
    let active = || -> Result<BTreeSet<String>> {
        let features = bed.guest.call(GetFeatures::on(bed.local))?;
        Ok(features.active)
    };
    let pools = || pool_numbers(&bed);
    let before = active()?;

    // The first time, the driver probes the device, which recreates the rings: that interrupts a
    // flow but does not end it.
    bed.steer(bed.local, &[1])?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut refusals = Vec::new();
    let mut seen = Vec::new();
    let received = stream.receive_devmem(&bed, 1, 8 << 20, 8 << 20, |_| {
        if refusals.is_empty() {
            seen.push(pools());
        }
        if refusals.len() < 2 {
            refusals.push(bed.set_features(bed.local, &[(UDP_SEGMENTATION, true)]));
            seen.push(pools());
        }
    })?;
    assert_eq!(received.verified, 8 << 20);
    for refusal in &refusals {
        let said = refusal.as_ref().err().map(ToString::to_string);
        assert!(
            said.is_some_and(|said| said.contains(UDP_SEGMENTATION)),
            "{refusals:?}"
        );
    }
    assert_eq!(active()?, before);
    let seen: Vec<_> = seen.into_iter().collect::<Result<_>>()?;
    assert!(
        seen[0] != seen[1] && seen[1] == seen[2],
        "asked once: {seen:?}"
    );
    bed.wait_logged(NO_UDP_SEGMENTATION, 1)?;
    let console = bed.guest.console_text();
    assert_eq!(
        console.matches(NO_UDP_SEGMENTATION).count(),
        1,
        "the log says why, once: {}",
        bed.guest.console().display()
    );

    // A refused feature stays wanted, and does no harm.
    bed.set_features(bed.local, &[("rx-hashing", false)])?;
    assert!(!active()?.contains("rx-hashing"));
    bed.down_and_up(bed.local)?;
    bed.wait_carrier_of(bed.local, true)?;
    transfer(&bed, bed.local, bed.peer, Family::V6)?;
    bed.finish()
}

/// Logged by the driver if it could not find out.
const UDP_SEGMENTATION_UNTRIED: &str = "no UDP segmentation: it can not be tried";

#[test]
fn whether_udp_is_segmented_is_asked_once_also_if_nothing_is_found_out() -> Result {
    let bed = Testbed::options()
        .needs([Ability::UdpSegmentationProbe])
        .boot("offloads-udp-untried")?;
    bed.show_whole_log()?;
    let pools = || pool_numbers(&bed);
    // QEMU sends nothing without a link, not even in loopback.
    bed.set_link(bed.local, false)?;
    bed.wait_carrier_of(bed.local, false)?;
    let refused = bed.set_features(bed.local, &[(UDP_SEGMENTATION, true)]);
    assert_stays(refused, UDP_SEGMENTATION);
    bed.wait_logged(UDP_SEGMENTATION_UNTRIED, 1)?;

    // Other features don't stop queues, though it is still wanted.
    let before = pools()?;
    bed.set_features(bed.local, &[("rx-hashing", false)])?;
    bed.set_features(bed.local, &[("rx-hashing", true)])?;
    assert_eq!(pools()?, before);
    bed.set_link(bed.local, true)?;
    bed.wait_carrier_of(bed.local, true)?;
    transfer(&bed, bed.peer, bed.local, Family::V4)?;
    bed.finish()
}

#[test]
fn what_is_asked_for_together_with_a_feature_that_turns_out_lacking_is_set() -> Result {
    const VLAN: u16 = 5;
    const FILTER: &str = "rx-vlan-filter";
    let bed = Testbed::options()
        .needs([Ability::UdpSegmentationProbe])
        .needs_kernel(["VLAN_8021Q"])
        .boot("offloads-udp-together")?;
    bed.set_features(bed.local, &[(FILTER, false)])?;
    bed.add_vlan(VLAN)?;
    let refused = bed.set_features(bed.local, &[(FILTER, true), (UDP_SEGMENTATION, true)]);
    let said = refused.err().map(|error| error.to_string());
    assert!(
        said.is_some_and(|said| said.contains(UDP_SEGMENTATION) && !said.contains(FILTER)),
        "the one and not the other"
    );
    // The core has told the driver of the VLAN, which would otherwise be filtered out.
    transfer(&bed, bed.peer.on_vlan(), bed.local.on_vlan(), Family::V4)?;
    bed.finish()
}

#[test]
fn traffic_passes_with_offloads_off_that_can_be_off() -> Result {
    let bed = Testbed::options()
        .needs_counters(["tx_tso"])
        .boot("offloads-off")?;
    bed.set_features(
        bed.local,
        &[
            ("tx-tcp-segmentation", false),
            ("tx-tcp6-segmentation", false),
            ("rx-checksum", false),
            ("rx-gro", false),
            ("rx-hashing", false),
        ],
    )?;
    let tso = bed.statistic(bed.local, "tx_tso")?;
    let verified = || -> Result<u64> {
        let packets = bed.queue_stats(bed.local, QueueKind::Rx, "rx-csum-unnecessary")?;
        Ok(packets.iter().sum())
    };
    let by_device = verified()?;
    for family in Family::BOTH {
        transfer(&bed, bed.local, bed.peer, family)?;
        transfer(&bed, bed.peer, bed.local, family)?;
    }
    assert_eq!(
        bed.statistic(bed.local, "tx_tso")?,
        tso,
        "segmentation is off"
    );
    assert_eq!(verified()?, by_device, "verifying checksums is off");
    bed.set_features(bed.local, &[("rx-checksum", true)])?;
    transfer(&bed, bed.peer, bed.local, Family::V4)?;
    assert!(verified()? > by_device, "it is on again");
    bed.finish()
}

#[test]
fn the_doorbell_waits_for_frames_that_the_kernel_sends_together() -> Result {
    /// In frames of 1000 bytes.
    const SENDS: u64 = 100;
    const FRAMES: u64 = 40;

    let bed = Testbed::options()
        .needs_counters(["tx_doorbells"])
        .boot("offloads-doorbell")?;
    let datagrams = Datagrams {
        batch: Some(FRAMES as u32),
        pause_us: 1000,
        ..bed.datagrams(bed.local, bed.peer, Family::V4, 1000)
    };
    let sink = datagrams.sink(&bed)?;
    let before = bed.statistic(bed.local, "tx_doorbells")?;
    let source = datagrams.source(&bed, Some(SENDS * FRAMES))?;
    assert_eq!(source.join()?.sent, SENDS * FRAMES);
    let doorbells = bed.statistic(bed.local, "tx_doorbells")? - before;
    // The kernel splits each send into frames, and sets xmit_more on all but the last.
    assert!(
        doorbells < SENDS * FRAMES / 4,
        "the doorbell rang {doorbells} times for {} frames",
        SENDS * FRAMES
    );
    assert_eq!(sink.stop()?.corrupt, 0);
    bed.finish()
}
