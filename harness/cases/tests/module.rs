// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver is loaded and unloaded.

use cases::{Ability, Family, Result, Testbed};
use protocol::link::ListInterfaces;

const MIB: u64 = 1 << 20;

/// Unloads the driver and checks that its interfaces are gone.
fn unload(bed: &Testbed) -> Result {
    bed.unload_driver()?;
    for station in bed.stations() {
        let left = bed.guest.call(ListInterfaces { ns: station.ns })?;
        assert!(
            left.iter()
                .all(|interface| interface.driver.as_deref() != Some(bed.driver())),
            "no interface is left: {left:?}"
        );
    }
    Ok(())
}

#[test]
fn the_driver_unloads_and_loads_again_while_idle() -> Result {
    let bed = Testbed::options().boot("module-idle")?;
    for _ in 0..3 {
        unload(&bed)?;
        bed.load_driver()?;
        bed.set_up()?;
        bed.stream(bed.local, bed.peer, Family::V4)
            .transfer(&bed, MIB, &[64 << 10])?;
    }
    // And with the interfaces down, which leaves no page behind.
    for station in bed.stations() {
        bed.set_interface(station, false)?;
        if bed.can(Ability::PagePools) {
            bed.wait_pools_gone(station)?;
        }
    }
    unload(&bed)?;
    bed.finish()?;
    Ok(())
}

#[test]
fn the_driver_unloads_under_traffic_and_loads_again() -> Result {
    let bed = Testbed::options()
        .mtu(9000)
        .header_split()
        .boot("module-traffic")?;
    for _ in 0..2 {
        let streams = [
            bed.stream(bed.local, bed.peer, Family::V4),
            bed.stream(bed.peer, bed.local, Family::V6),
        ];
        let mut jobs = Vec::new();
        for stream in &streams {
            let mut sink = stream.sink(&bed)?;
            let source = stream.source(&bed, None, &[64 << 10], 0)?;
            sink.wait_bytes(MIB)?;
            jobs.push((source, sink));
        }
        unload(&bed)?;
        for (source, sink) in jobs {
            source.stop()?;
            sink.stop()?;
        }
        bed.load_driver()?;
        bed.set_up()?;
        bed.stream(bed.local, bed.peer, Family::V4)
            .transfer(&bed, MIB, &[64 << 10])?;
    }
    bed.finish()?;
    Ok(())
}
