// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receive through io_uring zero-copy receive.

use std::time::Duration;

use cases::{
    ACCELERATOR, Ability, Family, KernelFault, ReceivedByRing, Result, Testbed,
    assert_refused_saying, assert_whole,
};
use libc::EXDEV;
use protocol::{Command, Memory, Release, ZcrxMemory, netdev::QueueKind};
use vm::Topology;

const MIB: u64 = 1 << 20;

/// How long to wait for events before checking again.
const PAUSE: Duration = Duration::from_millis(200);

/// A dma-buf of the guest's RAM.
const DMABUF: ZcrxMemory = ZcrxMemory::DmaBuf(Memory::Udmabuf);

/// A dma-buf of large chunks.
const HEAP: ZcrxMemory = ZcrxMemory::DmaBuf(Memory::SystemHeap);

const MEMORY: [ZcrxMemory; 2] = [ZcrxMemory::User, DMABUF];

/// Asserts that all bytes are in the area and correct, and no CPU put them there.
fn assert_zero_copy(received: &ReceivedByRing, bytes: u64) {
    assert_eq!(
        (
            received.verified,
            received.sink.bytes,
            received.sink.copied_bytes
        ),
        (bytes, bytes, 0),
        "{received:?}"
    );
    assert_eq!(received.sink.error, None, "{received:?}");
    assert!(received.sink.end_of_stream, "{received:?}");
    assert!(received.source.delivered, "{received:?}");
}

fn payload_is_received(memory: ZcrxMemory, mtu: u32, family: Family, name: &str) -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::options()
        .needs([Ability::Zcrx])
        .needs_counters(["rx_unsplit_dropped"])
        .mtu(mtu)
        .header_split()
        .boot(name)?;
    bed.steer(bed.local, &[1])?;
    let before = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;

    let stream = bed.stream(bed.peer, bed.local, family);
    let received = stream.receive_zcrx(&bed, 1, memory, bytes, 16 * MIB)?;

    assert_zero_copy(&received, bytes);
    assert_eq!(received.sink.rx_buf_len, 4096);
    let after = bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?;
    assert!(
        after[1] - before[1] > bytes / u64::from(mtu),
        "the flow came in on queue 1: {before:?} then {after:?}"
    );
    assert_eq!(bed.statistic(bed.local, "rx_unsplit_dropped")?, 0);
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn payload_over_ipv4_is_in_user_memory_byte_by_byte() -> Result {
    payload_is_received(ZcrxMemory::User, 9000, Family::V4, "zcrx-user-v4")
}

#[test]
fn payload_over_ipv6_is_in_user_memory_byte_by_byte() -> Result {
    payload_is_received(ZcrxMemory::User, 1500, Family::V6, "zcrx-user-v6")
}

#[test]
fn payload_over_ipv4_is_in_the_dma_buf_byte_by_byte() -> Result {
    payload_is_received(DMABUF, 1500, Family::V4, "zcrx-dmabuf-v4")
}

#[test]
fn payload_over_ipv6_is_in_the_dma_buf_byte_by_byte() -> Result {
    payload_is_received(DMABUF, 9000, Family::V6, "zcrx-dmabuf-v6")
}

#[test]
fn payload_goes_to_the_accelerator_through_a_ring_and_leaves_no_trace_in_ram() -> Result {
    let bytes = 16 * MIB;
    let accelerator = ZcrxMemory::DmaBuf(ACCELERATOR);
    for rx_buf_len in [None, Some(32 << 10)] {
        let bed = Testbed::options()
            .needs([Ability::Zcrx])
            .mtu(9000)
            .header_split()
            .accelerator(Topology::Switch)
            .without_dma_debugging()
            .boot("zcrx-accelerator")?;
        bed.steer(bed.local, &[1])?;
        let mut stream = bed
            .stream(bed.peer, bed.local, Family::V4)
            .in_accelerator()
            .unpredictable();
        stream.rx_page_size = rx_buf_len;
        let mut sink = stream.zcrx_sink_for_host(&bed, 1, accelerator, 16 * MIB)?;
        let source = stream.source_filled_by_host(&bed, bytes)?;
        let verified = stream.verify_and_release(&bed, &mut sink, |_| ())?;

        // Both jobs still exist, and so does their memory.
        let traces = stream.traces_in_ram(&bed, bytes)?;
        assert!(
            traces.is_empty(),
            "payload is in RAM, in {} places",
            traces.len()
        );
        let (sink, source) = (sink.join()?, source.join()?);
        assert_eq!((verified, sink.bytes, sink.copied_bytes), (bytes, bytes, 0));
        assert!(source.delivered && source.copied == 0, "{source:?}");
        bed.wait_rings_gone(bed.local)?;
        bed.finish()?;
    }
    Ok(())
}

#[test]
#[ignore = "needs a kernel with DMA debugging"]
fn the_kernel_syncs_an_accelerators_memory_that_nobody_mapped_for_a_ring() -> Result {
    let bed = Testbed::zcrx_options()
        .needs_kernel(["DMA_API_DEBUG"])
        .accelerator(Topology::Switch)
        .boot_steered("zcrx-sync")?;
    for parts in KernelFault::SyncOfBusAddresses.complaints() {
        bed.guest.expect_log(parts);
    }
    // Only a few net_iovs: each takes long.
    let area = 8 * 4096;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let ring = stream.zcrx_sink_spec(1, ZcrxMemory::DmaBuf(ACCELERATOR), area, Release::Immediate);
    bed.guest.start(ring)?.stop()?;
    bed.wait_rings_gone(bed.local)?;
    bed.finish()
}

#[test]
fn a_ring_gets_an_accelerators_memory_only_where_pci_lets_the_nic_reach_it() -> Result {
    let bytes = 8 * MIB;
    let accelerator = ZcrxMemory::DmaBuf(ACCELERATOR);
    let bed = Testbed::zcrx_options()
        .accelerator(Topology::RootComplex)
        .boot_steered("zcrx-root-complex")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V6);
    let received = stream.receive_zcrx(&bed, 1, accelerator, bytes, 16 * MIB)?;
    assert_zero_copy(&received, bytes);
    bed.assert_no_ring_left()?;
    bed.finish()?;

    let bed = Testbed::zcrx_options()
        .accelerator(Topology::RootPorts)
        .boot_steered("zcrx-no-path")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let ring = stream.zcrx_sink_spec(1, accelerator, 4 * MIB, Release::Immediate);
    assert_refused_saying(bed.guest.start(ring), EXDEV, "no peer-to-peer path");
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn a_jumbo_frame_is_one_fragment_of_a_buffer_that_holds_it() -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::zcrx_options()
        .needs_kernel(["DMABUF_HEAPS_SYSTEM", "HUGETLBFS"])
        .needs_rx_page_size(64 << 10)
        .boot_steered("zcrx-large")?;
    // An area's pages are freed in the background, some time after its ring.
    bed.reserve_huge_pages(4 * bytes)?;
    let heap = [(4, 3), (8, 2), (16, 1), (32, 1), (64, 1)].map(|size| (HEAP, size));
    // Buffers must be contiguous, so user memory must be huge pages.
    let user = [(8, 2), (16, 1), (64, 1)].map(|size| (ZcrxMemory::User, size));
    for family in Family::BOTH {
        for (memory, (kib, fragments)) in heap.into_iter().chain(user) {
            let packets = || bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets");
            let before = packets()?[1];
            let mut stream = bed.stream(bed.peer, bed.local, family);
            stream.rx_page_size = Some(kib << 10);
            let sink = stream.zcrx_sink(&bed, 1, memory, 16 * MIB, Release::Immediate)?;
            let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?.join()?;
            let report = sink.join()?;

            assert_whole(&report, bytes);
            assert!(source.delivered, "{source:?}");
            assert_eq!(report.rx_buf_len, kib << 10);
            let packets = packets()?[1] - before;
            // Some packets, such as the handshake's, have no payload, and some are not as large as
            // they could be.
            assert!(
                report.fragments <= fragments * packets
                    && report.fragments > (fragments - 1) * packets,
                "with {kib} KiB of {memory:?} {packets} packets are {fragments} fragments each: \
                 {report:?}"
            );
            bed.wait_rings_gone(bed.local)?;
        }
    }
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn payload_that_comes_in_on_another_queue_is_copied_and_counted() -> Result {
    let bytes = 4 * MIB;
    let bed = Testbed::zcrx("zcrx-copied")?;
    bed.steer(bed.local, &[0])?;

    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let received = stream.receive_zcrx(&bed, 1, ZcrxMemory::User, bytes, 16 * MIB)?;
    assert_eq!(
        (
            received.verified,
            received.sink.bytes,
            received.sink.copied_bytes
        ),
        (bytes, bytes, bytes),
        "{received:?}"
    );

    // Nothing can be copied to memory that the CPU may not write.
    bed.wait_rings_gone(bed.local)?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let sink = stream.zcrx_sink(&bed, 1, DMABUF, 16 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?;
    let report = sink.join()?;
    source.stop()?;
    let error = report.error.map(|error| error.message).unwrap_or_default();
    assert!(error.contains("arrived in host memory"), "{error}");
    assert_eq!(report.bytes, 0);
    bed.finish()
}

#[test]
fn a_receiver_that_keeps_its_buffers_stalls_and_goes_on_when_it_gives_them_back() -> Result {
    let bytes = 24 * MIB;
    let bed = Testbed::zcrx_options()
        .needs_counters(["rx_starved"])
        .boot_steered("zcrx-kept")?;

    // More payload than the area has room for.
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.zcrx_sink(&bed, 1, ZcrxMemory::User, 8 * MIB, Release::Never)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?;

    // It stalls: the area is in use, and nothing is returned through the refill ring.
    while bed.statistic(bed.local, "rx_starved")? == 0 {
        let event = sink.next_event(PAUSE)?;
        assert!(!sink.ended(), "the receiver ended: {event:?}");
    }
    assert!(bed.net_iovs_outstanding(bed.local)? > 0);

    // It resumes whenever buffers are returned, until everything has arrived. Nothing was copied
    // meanwhile: a queue without buffers receives nothing.
    while !sink.ended() {
        sink.tell(Command::ReleaseAll)?;
        while sink.next_event(PAUSE)?.is_some() {}
    }
    let (report, source) = (sink.join()?, source.join()?);
    assert_whole(&report, bytes);
    assert!(source.delivered, "{source:?}");
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn rings_that_are_always_full_lose_nothing() -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::zcrx("zcrx-small")?;
    for memory in MEMORY {
        let stream = bed.stream(bed.peer, bed.local, Family::V4);
        // A receive request ends whenever the completion queue is full, and is submitted again.
        let mut ring = stream.zcrx_sink_spec(1, memory, 8 * MIB, Release::Immediate);
        (ring.refill_entries, ring.completions) = (Some(8), Some(16));
        let sink = bed.guest.start(ring)?;
        let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?.join()?;
        assert_whole(&sink.join()?, bytes);
        assert!(source.delivered, "{source:?}");
        bed.wait_rings_gone(bed.local)?;
    }
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn two_rings_receive_on_two_queues_at_once() -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::options()
        .needs([Ability::Zcrx])
        .cpus(3)
        .mtu(9000)
        .header_split()
        .boot("zcrx-two")?;
    bed.steer(bed.local, &[1, 2])?;

    let mut running = Vec::new();
    for (queue, family, memory) in [(1, Family::V4, ZcrxMemory::User), (2, Family::V6, DMABUF)] {
        let stream = bed.stream(bed.peer, bed.local, family);
        let stream = stream.reaching(&bed, queue)?;
        let sink = stream.zcrx_sink(&bed, queue, memory, 16 * MIB, Release::Immediate)?;
        running.push((stream, sink));
    }
    let mut sources = Vec::new();
    for (stream, _) in &running {
        sources.push(stream.source(&bed, Some(bytes), &[64 << 10], 0)?);
    }
    for (_, sink) in running {
        assert_whole(&sink.join()?, bytes);
    }
    for source in sources {
        assert!(source.join()?.delivered);
    }
    bed.assert_no_ring_left()?;
    bed.finish()
}
