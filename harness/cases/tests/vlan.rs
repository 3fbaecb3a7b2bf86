// SPDX-License-Identifier: MIT OR Apache-2.0

//! VLANs: tags inserted, stripped and filtered by the device, or left to the kernel.

use cases::{Ability, Family, Result, Testbed};
use protocol::{DevmemSink, Release, ethtool::GetFeatures, netdev::QueueKind};

const MIB: u64 = 1 << 20;
const ID: u16 = 100;

/// By their kernel names: strip, filter.
const STRIP: &str = "rx-vlan-hw-parse";
const FILTER: &str = "rx-vlan-filter";

/// Asserts that the device accepts frames with the tag of VLAN `id`, or that it does not.
fn assert_filter(bed: &Testbed, id: u16, lets_in: bool, what: &str) {
    let [id_high, id_low] = id.to_be_bytes();
    let (tag, own) = ([0x81, 0, id_high, id_low], bed.local.mac());
    bed.assert_filter(own, &tag, own, lets_in, what);
}

#[test]
fn tags_are_handled_by_the_device_or_by_the_kernel_and_traffic_passes() -> Result {
    let bed = Testbed::options()
        .needs([Ability::MachineAddress, Ability::VlanOffload])
        .needs_counters(["tx_tso"])
        .boot("vlan")?;
    bed.add_vlan(ID)?;
    let [local, peer] = bed.stations().map(|station| station.on_vlan());

    for on in [true, false, true] {
        bed.set_features(bed.local, &[(STRIP, on)])?;
        let features = bed.guest.call(GetFeatures::on(bed.local))?;
        assert_eq!(features.active.contains(STRIP), on, "{features:?}");
        let tso = bed.statistic(bed.local, "tx_tso")?;
        for family in Family::BOTH {
            bed.transfer(local, peer, family, 2 * MIB)?;
            bed.transfer(peer, local, family, 2 * MIB)?;
        }
        assert!(bed.statistic(bed.local, "tx_tso")? > tso, "segmented");
    }
    // Also with the peer stripping tags and verifying checksums in software.
    bed.set_features(bed.peer, &[(STRIP, false), ("rx-checksum", false)])?;
    bed.transfer(local, peer, Family::V4, 2 * MIB)?;

    for what in ["as it was", "down and up"] {
        assert_filter(&bed, ID, true, what);
        assert_filter(&bed, ID + 1, false, what);
        bed.down_and_up(bed.local)?;
        bed.set_interface(local, true)?;
        bed.wait_carrier(true)?;
    }
    bed.set_features(bed.local, &[(FILTER, false)])?;
    assert_filter(&bed, ID + 1, true, "the filter is off");
    bed.set_features(bed.local, &[(FILTER, true)])?;
    assert_filter(&bed, ID + 1, false, "the filter is on again");
    bed.transfer(peer, local, Family::V4, 2 * MIB)?;
    bed.finish()
}

#[test]
fn payload_of_a_vlan_reaches_the_dma_buf_with_the_tag_stripped_or_not() -> Result {
    let bed = Testbed::devmem_options()
        .needs([Ability::VlanOffload])
        .boot_steered("vlan-devmem")?;
    bed.add_vlan(ID)?;
    let [local, peer] = bed.stations().map(|station| station.on_vlan());

    for strip in [true, false] {
        bed.set_features(bed.local, &[(STRIP, strip)])?;
        for family in Family::BOTH {
            let stream = bed.stream(peer, local, family);
            let split = bed.statistic(bed.local, "rx_split")?;
            let before = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
            let sink = bed.guest.start(DevmemSink {
                // The VLAN's interface has no queues of its own.
                interface: bed.local.name(),
                ..stream.devmem_sink_spec(1, 8 * MIB, Release::Immediate)
            })?;
            let source = stream.source(&bed, Some(4 * MIB), &[64 << 10], 0)?.join()?;
            let report = sink.join()?;
            assert_eq!(
                (report.bytes, report.mismatch, report.linear_bytes),
                (4 * MIB, None, 0),
                "{family:?}, strip {strip}: {report:?} {source:?}"
            );
            assert!(bed.statistic(bed.local, "rx_split")? > split);
            let after = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
            assert!(after[1] - before[1] >= 4 * MIB / 9000, "{after:?}");
        }
    }
    bed.finish()
}
