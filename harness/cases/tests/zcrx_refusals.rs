// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rings that must be refused a queue, each with its errno and a message naming the precondition.

use cases::{Ability, Family, Result, Testbed, assert_refused, assert_refused_saying};
use libc::{EEXIST, EINVAL, EOPNOTSUPP, ERANGE};
use protocol::{Memory, Release, ZcrxMemory};

const MIB: u64 = 1 << 20;

/// A dma-buf of large chunks.
const HEAP: ZcrxMemory = ZcrxMemory::DmaBuf(Memory::SystemHeap);

/// Asserts that a ring is refused a queue.
#[track_caller]
fn assert_queue_refused(bed: &Testbed, queue: u32, errno: i32, words: &str) {
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let ring = stream.zcrx_sink_spec(queue, ZcrxMemory::User, MIB, Release::Immediate);
    assert_refused_saying(bed.guest.start(ring), errno, words);
}

#[test]
fn a_ring_is_refused_while_header_split_is_off() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Zcrx])
        .boot("zcrx-no-split")?;
    assert_queue_refused(&bed, 1, EINVAL, "header split is off");
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn a_ring_is_refused_a_queue_that_does_not_exist_or_takes_unsplit_packets() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Zcrx])
        .header_split()
        .boot("zcrx-no-queue")?;
    assert_queue_refused(&bed, 2, ERANGE, "there is no RX queue 2");
    assert_queue_refused(&bed, 0, EOPNOTSUPP, "does not offer");
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn a_ring_is_refused_buffers_that_the_driver_or_the_area_does_not_have() -> Result {
    let bed = Testbed::zcrx_options()
        .needs_kernel(["DMABUF_HEAPS_SYSTEM"])
        .needs_rx_page_size(16 << 10)
        .boot_steered("zcrx-no-large")?;
    let too_large = 2 * bed.nic().max_rx_page_size;
    // More than the driver supports, not a power of two, less than a page, and an area whose last
    // chunk is a single page.
    for (rx_buf_len, area_bytes, errno, words) in [
        (too_large, 4 * MIB, ERANGE, "bytes are too large"),
        (12 << 10, 4 * MIB, EINVAL, "12288"),
        (2 << 10, 4 * MIB, EINVAL, "2048"),
        (
            16 << 10,
            4 * MIB + 4096,
            ERANGE,
            "not physically contiguous",
        ),
    ] {
        let mut stream = bed.stream(bed.peer, bed.local, Family::V4);
        stream.rx_page_size = Some(rx_buf_len);
        let ring = stream.zcrx_sink_spec(1, HEAP, area_bytes, Release::Immediate);
        assert_refused_saying(bed.guest.start(ring), errno, words);
    }
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn a_queue_has_one_provider_be_it_a_ring_or_a_binding() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Zcrx])
        .header_split()
        .boot("zcrx-twice")?;
    let bind = || bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB);

    let bound = bind()?;
    assert_queue_refused(&bed, 1, EEXIST, "already belongs to a memory provider");
    bound.stop()?;

    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let ring = stream.zcrx_sink(&bed, 1, ZcrxMemory::User, MIB, Release::Immediate)?;
    assert_queue_refused(&bed, 1, EEXIST, "already belongs to a memory provider");
    assert_refused(bind(), EEXIST, "a binding beside a ring");
    ring.stop()?;

    bed.wait_rings_gone(bed.local)?;
    bind()?.stop()?;
    bed.assert_no_ring_left()?;
    bed.finish()
}
