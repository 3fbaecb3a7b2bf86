// SPDX-License-Identifier: MIT OR Apache-2.0

//! The MTU, changed while traffic runs: buffers grow and shrink with it.

use cases::{Ability, Family, Frame, Result, Testbed, finish};
use protocol::Release;

const MIB: u64 = 1 << 20;

/// MTUs on both sides of each buffer size boundary: pages, 8 KiB, 32 KiB.
const MTUS: [u32; 5] = [9000, 1500, 4000, 68 + 1212, 9216];

#[test]
fn the_mtu_changes_under_traffic_and_loses_no_data() -> Result {
    let bed = Testbed::options().needs_mtu(9216).boot("mtu-changes")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = 0;

    for mtu in MTUS {
        bed.set_mtu(bed.local, mtu)?;
        bed.set_mtu(bed.peer, mtu)?;
        wanted = sink.wait_bytes(wanted + MIB)?;
    }
    // Frames in flight when the receiver's MTU shrinks may be too long for it.
    bed.set_mtu(bed.peer, 1500)?;
    bed.set_mtu(bed.local, 1500)?;
    sink.wait_bytes(wanted + MIB)?;
    finish(source, sink)?;
    bed.finish()
}

#[test]
fn a_bound_queue_keeps_receiving_when_the_mtu_changes() -> Result {
    let bed = Testbed::devmem("mtu-bound")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.devmem_sink(&bed, 1, 16 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = 0;

    for mtu in MTUS {
        bed.set_mtu(bed.local, mtu)?;
        bed.set_mtu(bed.peer, mtu)?;
        wanted = sink.wait_bytes(wanted + MIB)?;
    }
    source.finish()?;
    let report = sink.join()?;
    assert_eq!(
        (report.linear_bytes, report.mismatch, report.error),
        (0, None, None)
    );
    assert!(report.end_of_stream);
    bed.finish()
}

#[test]
fn frames_longer_than_the_mtu_are_not_delivered() -> Result {
    let bed = Testbed::options()
        .needs([Ability::MachineAddress, Ability::MtuLimit])
        .boot("mtu-too-long")?;
    bed.set_mtu(bed.peer, 9000)?;
    bed.wait_carrier(true)?;
    let before = bed.datagrams_read(bed.local.ns)?;
    let datagrams = bed.datagrams(bed.peer, bed.local, Family::V4, 1000);
    let sink = datagrams.sink(&bed)?;
    let datagram = |size: usize| -> Result {
        let payload = vec![0; size];
        Frame::udp(bed.peer, bed.local, Family::V4, datagrams.port, &payload)?.send(&bed)
    };

    for _ in 0..3 {
        // Two buffers or more.
        datagram(3000)?;
        datagram(8000)?;
        datagram(1000)?;
    }
    // They come in order, a short one last.
    bed.wait_until(before + 3, || bed.datagrams_read(bed.local.ns))?;
    let report = sink.stop()?;
    assert_eq!(
        report.received + report.duplicates + report.corrupt,
        3,
        "only the short ones came: {report:?}"
    );
    bed.finish()
}
