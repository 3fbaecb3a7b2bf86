// SPDX-License-Identifier: MIT OR Apache-2.0

//! What happens to a bound queue when something is taken away.

use cases::{Family, Result, Testbed};
use protocol::{
    Command, Release,
    request::{ListQueues, UnloadModule},
};

const MIB: u64 = 1 << 20;

#[test]
fn a_queue_returns_to_host_memory_when_its_binding_closes_under_traffic() -> Result {
    let bed = Testbed::devmem("binding-closes")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    sink.wait_bytes(4 * MIB)?;

    sink.tell(Command::CloseBinding)?;
    source.stop()?;
    let report = sink.stop()?;
    assert_eq!(report.mismatch, None, "{report:?}");
    assert!(report.bytes >= 4 * MIB, "{report:?}");

    let queues = bed.guest.call(ListQueues {
        ns: bed.local.ns,
        interface: bed.local.name(),
    })?;
    assert!(
        queues.iter().all(|queue| queue.dmabuf.is_none()),
        "{queues:?}"
    );
    for family in Family::BOTH {
        bed.stream(bed.peer, bed.local, family)
            .transfer(&bed, 4 * MIB, &[64 << 10])?;
    }
    bed.finish()?;
    Ok(())
}

#[test]
fn a_bound_queue_goes_on_after_the_link_was_down() -> Result {
    let bytes = 32 * MIB;
    let bed = Testbed::devmem("bound-link-down")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?;

    for _ in 0..2 {
        sink.wait_bytes(2 * MIB)?;
        bed.set_link(bed.local, false)?;
        bed.wait_carrier_of(bed.local, false)?;
        bed.set_link(bed.local, true)?;
        bed.wait_carrier_of(bed.local, true)?;
    }
    let (report, source) = (sink.join()?, source.join()?);
    assert_eq!(
        (report.bytes, report.mismatch, report.linear_bytes),
        (bytes, None, 0),
        "{report:?} {source:?}"
    );
    bed.finish()?;
    Ok(())
}

#[test]
fn a_bound_queue_goes_on_after_the_interface_was_down() -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::devmem("bound-down-up")?;
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, Some(bytes), &[64 << 10], 0)?;
    sink.wait_bytes(2 * MIB)?;
    bed.set_interface(bed.local, false)?;
    bed.set_interface(bed.local, true)?;
    let (report, source) = (sink.join()?, source.join()?);
    assert_eq!(
        (report.bytes, report.mismatch, report.linear_bytes),
        (bytes, None, 0),
        "{report:?} {source:?}"
    );
    bed.finish()?;
    Ok(())
}

#[test]
fn the_driver_unloads_with_a_bound_queue_and_the_reader_gets_an_error() -> Result {
    let bed = Testbed::devmem("bound-unload")?;
    // With CONFIG_DMA_API_DEBUG the kernel takes the dma-buf's mapping, which the core drops when the
    // user closes the binding, for one that the driver forgot: any driver with queue management
    // shows that.
    bed.guest
        .allow_log("device driver has pending DMA allocations");
    bed.guest.allow_log("DMA-API: Mapped at:");
    let stream = bed.stream(bed.peer, bed.local, Family::V4);
    let mut sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
    let source = stream.source(&bed, None, &[64 << 10], 0)?;
    sink.wait_bytes(4 * MIB)?;

    bed.guest.call(UnloadModule {
        name: "rigb".to_owned(),
    })?;
    source.stop()?;
    let report = sink.join()?;
    assert!(report.error.is_some(), "the reader was told: {report:?}");
    assert_eq!(report.mismatch, None, "{report:?}");

    bed.load_driver()?;
    bed.set_up()?;
    bed.stream(bed.local, bed.peer, Family::V4)
        .transfer(&bed, MIB, &[64 << 10])?;
    bed.finish()?;
    Ok(())
}
