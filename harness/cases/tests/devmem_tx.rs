// SPDX-License-Identifier: MIT OR Apache-2.0

//! Send from device memory.

use cases::{Ability, Family, Result, Testbed};

const MIB: u64 = 1 << 20;

fn payload_is_sent(mtu: u32, family: Family, chunk: u32, name: &str) -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::options()
        .needs([Ability::DevmemTx])
        .needs_counters(["tx_net_iovs"])
        .mtu(mtu)
        .boot(name)?;

    let stream = bed.stream(bed.local, bed.peer, family);
    let sent = stream.send_devmem(&bed, bytes, 4 * MIB, chunk, |_| ())?;

    assert_eq!(sent.sink.mismatch, None, "{sent:?}");
    assert_eq!(
        (sent.sink.bytes, sent.source.bytes),
        (bytes, bytes),
        "{sent:?}"
    );
    assert!(sent.source.delivered && sent.sink.end_of_stream, "{sent:?}");
    assert_eq!(
        (sent.source.completions, sent.source.copied),
        (sent.source.sends, 0),
        "every send completes, and none by copying: {sent:?}"
    );
    assert!(
        bed.statistic(bed.local, "tx_net_iovs")? >= bytes / (64 << 10),
        "the NIC was given net_iovs"
    );
    bed.finish()
}

#[test]
fn payload_over_ipv4_at_mtu_1500_arrives_as_it_is_in_the_dma_buf() -> Result {
    payload_is_sent(1500, Family::V4, 64 << 10, "devmem-tx-v4-1500")
}

#[test]
fn payload_over_ipv6_at_mtu_1500_arrives_as_it_is_in_the_dma_buf() -> Result {
    payload_is_sent(1500, Family::V6, 64 << 10, "devmem-tx-v6-1500")
}

#[test]
fn payload_over_ipv4_at_mtu_9000_arrives_as_it_is_in_the_dma_buf() -> Result {
    payload_is_sent(9000, Family::V4, 256 << 10, "devmem-tx-v4-9000")
}

#[test]
fn sends_of_odd_sizes_arrive_as_they_are_in_the_dma_buf() -> Result {
    payload_is_sent(9000, Family::V6, 100_003, "devmem-tx-odd")
}

#[test]
fn payload_arrives_without_segmentation_offload() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemTx])
        .needs_counters(["tx_tso"])
        .boot("devmem-tx-no-tso")?;
    bed.set_features(
        bed.local,
        &[
            ("tx-tcp-segmentation", false),
            ("tx-tcp6-segmentation", false),
        ],
    )?;
    let before = bed.statistic(bed.local, "tx_tso")?;

    for family in Family::BOTH {
        let stream = bed.stream(bed.local, bed.peer, family);
        let sent = stream.send_devmem(&bed, 4 * MIB, 4 * MIB, 64 << 10, |_| ())?;
        assert_eq!(
            (sent.sink.bytes, sent.sink.mismatch),
            (4 * MIB, None),
            "{sent:?}"
        );
    }
    assert_eq!(bed.statistic(bed.local, "tx_tso")?, before);
    bed.finish()
}

#[test]
fn device_memory_is_received_and_sent_at_the_same_time() -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::devmem("devmem-both")?;

    let receive = bed.stream(bed.peer, bed.local, Family::V4);
    let send = bed.stream(bed.local, bed.peer, Family::V6);
    let mut devmem_sink = receive.devmem_sink_for_host(&bed, 1, 8 * MIB)?;
    let sink = send.sink(&bed)?;
    // Connects first: the reply comes through the bound queue, which may starve until
    // `verify_and_release`.
    let devmem_source = send.devmem_source(&bed, Some(bytes), 4 * MIB, 64 << 10)?;
    let source = receive.source(&bed, Some(bytes), &[256 << 10], 0)?;

    let verified = receive.verify_and_release(&bed, &mut devmem_sink, |_| ())?;
    let received = devmem_sink.join()?;
    let (sent, arrived) = (devmem_source.join()?, sink.join()?);

    assert!(source.join()?.delivered);
    assert_eq!(
        (verified, received.linear_bytes),
        (bytes, 0),
        "{received:?}"
    );
    assert_eq!(
        (arrived.bytes, arrived.mismatch),
        (bytes, None),
        "{arrived:?} {sent:?}"
    );
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);
    bed.finish()
}
