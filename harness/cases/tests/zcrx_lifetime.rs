// SPDX-License-Identifier: MIT OR Apache-2.0

//! What happens to a ring's queue when something is removed: the ring, its owner, the interface,
//! the driver. Rings whose area is a dma-buf are in the matrix of `teardown`.

use std::time::Duration;

use cases::{Family, Result, Testbed, assert_refused, assert_whole};
use libc::ESRCH;
use protocol::{Command, Memory, Release, ZcrxMemory, kernel::UnloadModule};

const MIB: u64 = 1 << 20;

/// How long to wait for events before checking again.
const PAUSE: Duration = Duration::from_millis(200);

/// A dma-buf of the guest's RAM.
const DMABUF: ZcrxMemory = ZcrxMemory::DmaBuf(Memory::Udmabuf);

const MEMORY: [ZcrxMemory; 2] = [ZcrxMemory::User, DMABUF];

#[test]
fn buffers_that_are_never_returned_come_back_when_the_ring_closes() -> Result {
    let bed = Testbed::zcrx_options()
        .needs_counters(["rx_starved"])
        .boot_steered("zcrx-closed")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.zcrx_sink(&bed, 1, DMABUF, 8 * MIB, Release::Never)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    while bed.statistic(bed.local, "rx_starved")? == 0 {
        sink.next_event(PAUSE)?;
    }
    let report = sink.stop()?;
    source.stop()?;
    assert!(report.fragments_held > 0, "{report:?}");
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn a_queue_returns_to_host_memory_when_its_ring_closes_under_traffic() -> Result {
    let bed = Testbed::zcrx("zcrx-closes")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.zcrx_sink(&bed, 1, ZcrxMemory::User, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    sink.wait_bytes(4 * MIB)?;

    sink.tell(Command::CloseBinding)?;
    let report = sink.join()?;
    source.stop()?;
    assert_eq!(
        (report.mismatch, report.copied_bytes),
        (None, 0),
        "{report:?}"
    );
    bed.assert_no_ring_left()?;
    // Ordinary sockets read what arrives there.
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn a_queue_returns_to_host_memory_when_the_rings_owner_is_killed_under_traffic() -> Result {
    let bed = Testbed::zcrx("zcrx-killed")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let ring = stream.zcrx_sink_spec(1, ZcrxMemory::User, 8 * MIB, Release::Immediate);
    let mut sink = bed.guest.start_process(ring)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    sink.wait_bytes(4 * MIB)?;

    sink.tell(Command::Kill)?;
    assert_refused(sink.join(), ESRCH, "joining a killed owner");
    source.stop()?;
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn the_memory_of_a_starved_ring_comes_back_when_its_owner_is_killed() -> Result {
    let bed = Testbed::zcrx_options()
        .needs_counters(["rx_starved"])
        .boot_steered("zcrx-killed-starved")?;
    for memory in MEMORY {
        let stream = bed.stream(bed.peer, bed.local, Family::V6);
        let ring = stream.zcrx_sink_spec(1, memory, 4 * MIB, Release::Never);
        let before = bed.statistic(bed.local, "rx_starved")?;
        let mut sink = bed.guest.start_process(ring)?;
        let source = stream.source(&bed, None, &[64 << 10], 0)?;
        while bed.statistic(bed.local, "rx_starved")? == before {
            sink.next_event(PAUSE)?;
        }
        sink.tell(Command::Kill)?;
        assert_refused(sink.join(), ESRCH, "joining a killed owner");
        source.stop()?;
        bed.assert_no_ring_left()?;
    }
    bed.finish()
}

#[test]
fn a_ring_may_come_and_go_while_the_interface_is_down() -> Result {
    let bytes = 8 * MIB;
    let bed = Testbed::zcrx("zcrx-down")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);

    bed.set_interface(bed.local, false)?;
    let sink = stream.zcrx_sink(&bed, 1, ZcrxMemory::User, 8 * MIB, Release::Immediate)?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?.join()?;
    assert_whole(&sink.join()?, bytes);
    assert!(source.delivered, "{source:?}");
    bed.wait_rings_gone(bed.local)?;

    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.zcrx_sink(&bed, 1, ZcrxMemory::User, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    sink.wait_bytes(2 * MIB)?;
    bed.set_interface(bed.local, false)?;
    sink.stop()?;
    source.stop()?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    bed.assert_no_ring_left()?;
    bed.finish()
}

#[test]
fn the_driver_unloads_with_a_ring_on_a_queue() -> Result {
    let bed = Testbed::zcrx("zcrx-unload")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.zcrx_sink(&bed, 1, ZcrxMemory::User, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    sink.wait_bytes(4 * MIB)?;

    bed.guest.call(UnloadModule::new(bed.driver()))?;
    source.stop()?;
    // No error is reported: the ring gets no completion, and the connection is silent.
    let report = sink.stop()?;
    assert_eq!(report.mismatch, None, "{report:?}");

    bed.load_driver()?;
    bed.set_up()?;
    bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn a_ring_goes_on_after_the_interface_was_down() -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::zcrx("zcrx-down-up")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.zcrx_sink(&bed, 1, ZcrxMemory::User, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?;
    sink.wait_bytes(2 * MIB)?;
    bed.down_and_up(bed.local)?;
    assert_whole(&sink.join()?, bytes);
    assert!(source.join()?.delivered);
    bed.assert_no_ring_left()?;
    bed.finish()
}
