// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checksums and segmentation, by the device and by the kernel, over frames of odd sizes.

use cases::{Family, Result, Testbed};

/// From one byte to 64 KiB, most of them no multiple of anything.
const ODD: &[u32] = &[
    1, 2, 3, 13, 63, 64, 65, 536, 1447, 1448, 1449, 2896, 2897, 4095, 4097, 8947, 8949, 17_001,
    32_767, 65_535, 65_536,
];

/// Sum of one round of [`ODD`], a few times over.
const BYTES: u64 = 2_000_003;

fn odd_sizes_pass(mtu: u32, name: &str) -> Result {
    let bed = Testbed::options().mtu(mtu).boot(name)?;
    // The receiving kernel verifies every checksum itself: the sending device cannot cheat.
    bed.set_features(bed.peer, &[("rx-checksum", false)])?;
    let checksums = bed.statistic(bed.local, "tx_csum")?;

    for family in Family::BOTH {
        let tso = bed.statistic(bed.local, "tx_tso")?;
        bed.stream(bed.local, bed.peer, family)
            .transfer(&bed, BYTES, ODD)?;
        assert!(
            bed.statistic(bed.local, "tx_tso")? > tso,
            "the device segmented over {family:?}"
        );
        bed.stream(bed.peer, bed.local, family)
            .transfer(&bed, BYTES, ODD)?;
    }
    assert!(
        bed.statistic(bed.local, "tx_csum")? - checksums >= 2 * BYTES / u64::from(mtu),
        "the device filled in checksums"
    );
    bed.finish()?;
    Ok(())
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
    let bed = Testbed::options().boot("odd-sizes-single")?;
    bed.set_features(bed.peer, &[("rx-checksum", false)])?;

    for family in Family::BOTH {
        let stream = bed.stream(bed.local, bed.peer, family);
        let sink = stream.sink(&bed)?;
        let source = stream.source(&bed, Some(200_000), ODD, 500)?.join()?;
        let sink = sink.join()?;
        assert_eq!((sink.bytes, sink.mismatch), (200_000, None), "{source:?}");
    }
    bed.finish()?;
    Ok(())
}

#[test]
fn traffic_passes_with_offloads_off_that_can_be_off() -> Result {
    let bed = Testbed::options().boot("offloads-off")?;
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

    for family in Family::BOTH {
        bed.stream(bed.local, bed.peer, family)
            .transfer(&bed, BYTES, ODD)?;
        bed.stream(bed.peer, bed.local, family)
            .transfer(&bed, BYTES, ODD)?;
    }
    assert_eq!(
        bed.statistic(bed.local, "tx_tso")?,
        tso,
        "segmentation is off"
    );
    bed.finish()?;
    Ok(())
}
