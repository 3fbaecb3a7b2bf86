// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver is loaded and unloaded.

use cases::{Ability, Family, Result, Testbed};
use protocol::{
    Ns,
    link::{ListInterfaces, SetUp},
};

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
fn the_drivers_interfaces_appear_come_up_go_down_and_are_gone_without_it() -> Result {
    let bed = Testbed::options().bare().boot("module-first")?;
    let ns = Ns::Local;
    let interfaces = || -> Result<Vec<String>> {
        let all = bed.guest.call(ListInterfaces { ns })?;
        Ok(all.into_iter().map(|interface| interface.name).collect())
    };
    let before = interfaces()?;
    for _ in 0..2 {
        bed.load_modules()?;
        let mut own = interfaces()?;
        own.retain(|name| !before.contains(name));
        assert_eq!(own.len(), 2, "one for each NIC of the machine: {own:?}");
        for up in [true, false, true] {
            for interface in own.clone() {
                bed.guest.call(SetUp::on((ns, interface), up))?;
            }
        }
        bed.unload_driver()?;
        assert_eq!(interfaces()?, before);
    }
    bed.finish()
}

#[test]
fn the_driver_unloads_and_loads_again_while_idle() -> Result {
    let bed = Testbed::options().boot("module-idle")?;
    for _ in 0..3 {
        unload(&bed)?;
        bed.load_driver()?;
        bed.set_up()?;
        bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
    }
    // And with the interfaces down, which leaves no page behind.
    for station in bed.stations() {
        bed.set_interface(station, false)?;
        if bed.can(Ability::PagePools)? {
            bed.wait_pools_gone(station)?;
        }
    }
    unload(&bed)?;
    bed.finish()
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
        bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
    }
    bed.finish()
}
