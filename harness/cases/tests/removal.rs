// SPDX-License-Identifier: MIT OR Apache-2.0

//! The device goes while it is in use: orderly, and before anybody knows.

use cases::{Driver, Family, KernelFault, Result, Testbed};
use protocol::{
    Ns,
    ethtool::GetDriverStats,
    kernel::WriteFile,
    link::ListInterfaces,
    pci::{ReadRegister, WriteConfig},
    rings::DataSplit,
};

const MIB: u64 = 1 << 20;

/// Where the command register is in the configuration space (PCI specification, 6.2.2).
const COMMAND: u16 = 4;

/// Where the status register is in the first BAR (82576 datasheet, 8.2.2).
const STATUS: u32 = 0x8;

/// Whether the NIC under test has its interface, as 1 or 0.
fn interfaces(bed: &Testbed) -> Result<u64> {
    let all = bed.guest.call(ListInterfaces { ns: bed.local.ns })?;
    let own = all.iter().filter(|found| found.mac == bed.local.mac());
    Ok(own.count() as u64)
}

#[test]
fn a_device_is_unplugged_under_traffic_with_a_bound_queue() -> Result {
    let bed = Testbed::options()
        .mtu(9000)
        .header_split()
        .hot_plug()
        .boot("unplug")?;
    bed.steer(bed.local, &[1])?;
    bed.allow_faults(&[
        KernelFault::MappingOutlivesDriver,
        KernelFault::UnmapForFreedDevice,
        KernelFault::PciehpLockOrder,
    ]);
    let flows = bed.both_ways(2 * MIB)?;

    bed.unplug(bed.local)?;
    bed.wait_until(1, || Ok(1 - interfaces(&bed)?))?;
    flows.abandon()?;
    bed.finish()?;
    Ok(())
}

#[test]
#[ignore = "needs a kernel with lockdep"]
fn unplugging_a_device_of_the_c_driver_shows_the_same_order_of_locks() -> Result {
    let bed = Testbed::options()
        .driver(Driver::Igb)
        .hot_plug()
        .boot("unplug-igb")?;
    for parts in KernelFault::PciehpLockOrder.complaints() {
        bed.guest.expect_log(parts);
    }
    bed.unplug(bed.local)?;
    bed.wait_until(1, || Ok(1 - interfaces(&bed)?))?;
    bed.finish()?;
    Ok(())
}

#[test]
fn a_device_that_is_gone_is_let_go_of_and_can_come_back() -> Result {
    let bed = Testbed::devmem("gone")?;
    bed.allow_faults(&[
        KernelFault::MappingOutlivesDriver,
        KernelFault::UnmapForFreedDevice,
    ]);
    // It sends nothing any more, and the kernel may say so before anybody lets go of it.
    bed.guest.allow_log(&["NETDEV WATCHDOG"]);
    let device = bed.pci_device(bed.local)?;
    let flows = bed.both_ways(2 * MIB)?;

    // It answers no access to its memory any more, and makes none.
    bed.guest.call(WriteConfig {
        device: device.clone(),
        offset: COMMAND,
        value: 0,
    })?;
    let status = bed.guest.call(ReadRegister {
        device: device.clone(),
        offset: STATUS,
    })?;
    println!("STATUS reads as {status:#x}");
    let before = bed.link_stats(bed.local)?;
    // What a user may do meanwhile ends, with an error or without.
    let _ = bed.set_header_split(bed.local, DataSplit::On);
    let _ = bed.set_receive_ring(bed.local, 256);
    let _ = bed.steer(bed.local, &[0, 1]);
    bed.guest.call(GetDriverStats {
        ns: bed.local.ns,
        interface: bed.local.name(),
    })?;
    let after = bed.link_stats(bed.local)?;
    assert_eq!(
        (after.rx_missed_errors, after.rx_errors, after.rx_dropped),
        (before.rx_missed_errors, before.rx_errors, before.rx_dropped),
        "what a missing device reads as is not counted"
    );

    let pci = |path: String| {
        bed.guest.call(WriteFile {
            ns: Ns::Local,
            path: format!("/sys/bus/pci/{path}"),
            contents: "1".to_owned(),
        })
    };
    pci(format!("devices/{device}/remove"))?;
    assert_eq!(interfaces(&bed)?, 0);
    flows.abandon()?;

    pci("rescan".to_owned())?;
    bed.take_in(bed.local)?;
    bed.set_up_station(bed.local)?;
    bed.wait_carrier(true)?;
    for family in Family::BOTH {
        bed.stream(bed.local, bed.peer, family)
            .transfer(&bed, MIB, &[64 << 10])?;
    }
    bed.finish()?;
    Ok(())
}
