// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receive into device memory.

use cases::{Ability, Family, Result, Stream, Testbed};
use protocol::{Memory, Release, netdev::QueueKind};

const MIB: u64 = 1 << 20;

fn payload_is_received(mtu: u32, family: Family, name: &str) -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .needs_counters(["rx_unsplit_dropped"])
        .mtu(mtu)
        .header_split()
        .boot(name)?;
    bed.steer(bed.local, &[1])?;
    let before = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;

    let stream = bed.stream(bed.peer, bed.local, family);
    let received = stream.receive_devmem(&bed, 1, bytes, 16 * MIB, |_| ())?;

    received.assert_whole(bytes);
    let after = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
    assert!(
        after[1] - before[1] > bytes / u64::from(mtu),
        "the flow came in on queue 1: {before:?} then {after:?}"
    );
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);
    assert_eq!(bed.statistic(bed.local, "rx_unsplit_dropped")?, 0);
    bed.finish()
}

#[test]
fn payload_over_ipv4_at_mtu_1500_is_in_the_dma_buf_byte_by_byte() -> Result {
    payload_is_received(1500, Family::V4, "devmem-rx-v4-1500")
}

#[test]
fn payload_over_ipv6_at_mtu_1500_is_in_the_dma_buf_byte_by_byte() -> Result {
    payload_is_received(1500, Family::V6, "devmem-rx-v6-1500")
}

#[test]
fn payload_over_ipv4_at_mtu_9000_is_in_the_dma_buf_byte_by_byte() -> Result {
    payload_is_received(9000, Family::V4, "devmem-rx-v4-9000")
}

#[test]
fn payload_over_ipv6_at_mtu_9000_is_in_the_dma_buf_byte_by_byte() -> Result {
    payload_is_received(9000, Family::V6, "devmem-rx-v6-9000")
}

#[test]
fn payload_goes_into_and_out_of_a_dma_heaps_buffer() -> Result {
    let bytes = 8 * MIB;
    let bed = Testbed::devmem_options()
        .needs_kernel(["DMABUF_HEAPS_SYSTEM"])
        .boot_steered("devmem-heap")?;
    let heap = |stream| Stream {
        memory: Memory::SystemHeap,
        ..stream
    };

    // Only the guest can read this dma-buf.
    let stream = heap(bed.stream(bed.peer, bed.local, Family::V4));
    let sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, Some(bytes), &[256 << 10], 0)?.join()?;
    let sink = sink.join()?;
    assert_eq!(
        (sink.bytes, sink.linear_bytes, sink.mismatch),
        (bytes, 0, None),
        "{sink:?}"
    );
    assert!(source.delivered, "{source:?}");

    let stream = heap(bed.stream(bed.local, bed.peer, Family::V6));
    let sent = stream.send_devmem(&bed, bytes, 4 * MIB, 256 << 10, |_| ())?;
    assert_eq!(
        (sent.sink.bytes, sent.sink.mismatch),
        (bytes, None),
        "{sent:?}"
    );
    bed.finish()
}
