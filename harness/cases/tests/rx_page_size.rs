// SPDX-License-Identifier: MIT OR Apache-2.0

//! The size of the buffers that a bound queue receives payload into (`rx_page_size`).

use cases::{Ability, Family, Result, Testbed};
use libc::{EINVAL, ERANGE};
use protocol::{
    Binding, Memory, Release,
    devmem::DevmemSinkReport,
    netdev::{ListPagePools, PagePool, QueueKind},
};

const MIB: u64 = 1 << 20;
/// What pools for headers allocate: memory shared by eight headers.
const HEADERS: u64 = 8 << 10;
const KIB: u32 = 1 << 10;

/// A testbed whose memory of a dma-heap is contiguous enough for large buffers.
fn testbed(name: &str) -> Result<Testbed> {
    Testbed::devmem_options()
        .needs_kernel(["DMABUF_HEAPS_SYSTEM"])
        .needs_rx_page_size(64 * KIB)
        .boot_steered(name)
}

/// Packets that the bound queue received.
fn packets(bed: &Testbed) -> Result<u64> {
    Ok(bed.queue_stats(bed.local, QueueKind::Rx, "rx-packets")?[1])
}

fn pools(bed: &Testbed) -> Result<Vec<PagePool>> {
    Ok(bed.guest.call(ListPagePools::on(bed.local))?)
}

/// Size in bytes of the pieces that a pool has outstanding; `None` if it has none.
fn piece(pool: &PagePool) -> Option<u64> {
    pool.inflight_mem?.checked_div(pool.inflight?)
}

/// Fails unless all bytes arrived in the dma-buf and are correct.
fn whole(report: &DevmemSinkReport, bytes: u64) {
    assert_eq!(
        (report.bytes, report.mismatch, report.linear_bytes),
        (bytes, None, 0),
        "{report:?}"
    );
}

/// Receives 16 MiB over a wire of MTU 9000 into buffers of `kib` KiB. Returns the fragments per
/// packet.
fn fragments_per_packet(bed: &Testbed, family: Family, kib: u32) -> Result<f64> {
    let bytes = 16 * MIB;
    let before = packets(bed)?;
    let stream = bed
        .stream(bed.peer, bed.local, family)
        .in_buffers_of(kib * KIB);
    let sink = stream.devmem_sink(bed, 1, 16 * MIB, Release::Immediate)?;
    let source = stream.source(bed, Some(bytes), &[256 << 10], 0)?.join()?;
    let report = sink.join()?;

    assert!(source.delivered, "{kib} KiB: {source:?}");
    whole(&report, bytes);
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);
    let packets = packets(bed)? - before;
    assert!(packets > bytes / 9000, "the flow came in on queue 1");
    Ok(report.fragments as f64 / packets as f64)
}

/// A packet is one fragment, not three.
#[track_caller]
fn one_fragment_each(report: &DevmemSinkReport, packets: u64) {
    assert!(
        report.fragments < packets + packets / 4,
        "{} fragments in {packets} packets",
        report.fragments
    );
}

#[test]
fn a_jumbo_frame_is_one_fragment_of_a_buffer_that_holds_it() -> Result {
    let bed = testbed("page-size-jumbo")?;
    for family in Family::BOTH {
        // Nearly all packets are as large as the MTU allows. A packet without payload, such as in
        // the handshake, has no fragment; a buffer that is split between two receive calls is two.
        for (kib, fragments) in [(4, 3.0), (8, 2.0), (16, 1.0), (32, 1.0), (64, 1.0)] {
            let per_packet = fragments_per_packet(&bed, family, kib)?;
            assert!(
                (per_packet - fragments).abs() < 0.25,
                "with {kib} KiB a packet has {per_packet} fragments, not {fragments}"
            );
        }
    }
    assert_eq!(bed.statistic(bed.local, "rx_unsplit_dropped")?, 0);
    bed.finish()
}

#[test]
fn small_frames_arrive_in_buffers_that_are_far_too_large_for_them() -> Result {
    let bytes = 8 * MIB;
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .header_split()
        .needs_kernel(["DMABUF_HEAPS_SYSTEM"])
        .boot("page-size-small-frames")?;
    bed.steer(bed.local, &[1])?;
    let stream = bed
        .stream(bed.peer, bed.local, Family::V4)
        .in_buffers_of(64 * KIB);
    // Only 256 buffers, which is fewer than the ring has descriptors. The socket fills half of
    // them and at most one more GRO packet, which has 45 segments: with only 64 buffers, segments
    // behind a lost one could use them all, and leave none for its retransmission.
    let sink = stream.devmem_sink(&bed, 1, 16 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?.join()?;
    let report = sink.join()?;
    assert!(source.delivered, "{source:?}");
    whole(&report, bytes);
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);
    bed.finish()
}

#[test]
fn only_the_bound_queue_has_large_buffers_and_only_while_it_is_bound() -> Result {
    let bed = testbed("page-size-pools")?;
    let page = u64::from(4 * KIB);
    let bound = bed.guest.start(Binding {
        rx_page_size: Some(32 * KIB),
        ..bed.binding(bed.local, 1, Memory::SystemHeap, 8 * MIB)
    })?;
    for pool in pools(&bed)? {
        let expected = if pool.dmabuf.is_some() {
            8 * page..=8 * page
        } else {
            page..=HEADERS
        };
        assert!(
            piece(&pool).is_none_or(|piece| expected.contains(&piece)),
            "expected pieces of {expected:?} bytes: {pool:?}"
        );
    }
    assert!(
        pools(&bed)?.iter().any(|pool| pool.dmabuf.is_some()),
        "no pool has the dma-buf"
    );

    bound.stop()?;
    bed.transfer_over_both(bed.peer, bed.local, 4 * MIB)?;
    for pool in pools(&bed)? {
        assert!(
            pool.dmabuf.is_none()
                && piece(&pool).is_none_or(|piece| (page..=HEADERS).contains(&piece)),
            "a page, or two for headers, is enough in host memory: {pool:?}"
        );
    }
    bed.finish()
}

#[test]
fn a_page_size_that_is_not_possible_is_refused_and_the_old_queue_runs_on() -> Result {
    let bed = testbed("page-size-refused")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.sink(&bed)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = 0;

    let too_large = 2 * bed.nic().max_rx_page_size;
    let tries = [
        ("more than the device can do", too_large, 4 * MIB, ERANGE),
        ("no power of two", 12 * KIB, 4 * MIB, EINVAL),
        ("less than a page", 2 * KIB, 4 * MIB, ERANGE),
        // The last chunk of this dma-buf is a single page.
        (
            "not in the memory",
            16 * KIB,
            4 * MIB + u64::from(4 * KIB),
            EINVAL,
        ),
    ];
    for (why, rx_page_size, dmabuf_bytes, errno) in tries {
        let error = bed.guest.start(Binding {
            rx_page_size: Some(rx_page_size),
            ..bed.binding(bed.local, 1, Memory::SystemHeap, dmabuf_bytes)
        });
        match error {
            Ok(_) => panic!("{rx_page_size} bytes were accepted: {why}"),
            Err(error) => assert_eq!(error.errno(), Some(errno), "{why}: {error}"),
        }
        wanted = sink.wait_bytes(wanted + MIB)?;
    }
    cases::finish(source, sink)?;
    bed.finish()
}

#[test]
fn a_bound_queue_keeps_its_page_size_when_the_rings_are_made_anew() -> Result {
    let bed = testbed("page-size-kept")?;
    let stream = bed
        .stream(bed.peer, bed.local, Family::V4)
        .in_buffers_of(16 * KIB);
    let before = packets(&bed)?;
    let mut sink = stream.devmem_sink(&bed, 1, 16 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    let mut wanted = sink.wait_bytes(2 * MIB)?;

    for rx in [256, 4096, 1024] {
        bed.set_receive_ring(bed.local, rx)?;
        wanted = sink.wait_bytes(wanted + 2 * MIB)?;
    }
    bed.set_interface(bed.local, false)?;
    bed.set_receive_ring(bed.local, 512)?;
    bed.set_interface(bed.local, true)?;
    wanted = sink.wait_bytes(wanted + 2 * MIB)?;
    bed.set_mtu(bed.local, 4000)?;
    bed.set_mtu(bed.local, 9000)?;
    sink.wait_bytes(wanted + 2 * MIB)?;

    let bound = pools(&bed)?;
    let bound: Vec<_> = bound
        .iter()
        .filter(|pool| pool.dmabuf.is_some() && pool.detach_time.is_none())
        .collect();
    assert!(
        matches!(bound[..], [pool] if piece(pool) == Some(u64::from(16 * KIB))),
        "expected one pool with pieces of 16 KiB: {bound:?}"
    );
    let source = source.finish()?;
    let report = sink.join()?;
    whole(&report, source.bytes);
    one_fragment_each(&report, packets(&bed)? - before);
    bed.finish()
}

#[test]
fn a_queue_that_is_bound_while_the_interface_is_down_has_its_page_size_when_it_is_up() -> Result {
    let bytes = 8 * MIB;
    let bed = testbed("page-size-down")?;
    bed.set_interface(bed.local, false)?;
    let stream = bed
        .stream(bed.peer, bed.local, Family::V4)
        .in_buffers_of(16 * KIB);
    let sink = stream.devmem_sink(&bed, 1, 16 * MIB, Release::Immediate)?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    let before = packets(&bed)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?.join()?;
    let report = sink.join()?;
    assert!(source.delivered, "{source:?}");
    whole(&report, bytes);
    one_fragment_each(&report, packets(&bed)? - before);
    bed.finish()
}
