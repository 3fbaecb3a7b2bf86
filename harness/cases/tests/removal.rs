// SPDX-License-Identifier: MIT OR Apache-2.0

//! The device is removed while in use: in an orderly way, and by surprise.

use cases::{Ability, Driver, KernelFault, Refusal, Result, Testbed};
use protocol::{ethtool::GetStandardStats, link::ListInterfaces, rings::TcpDataSplit};

const MIB: u64 = 1 << 20;

/// Whether the NIC under test has its interface, as 1 or 0.
fn interfaces(bed: &Testbed) -> Result<u64> {
    let all = bed.guest.call(ListInterfaces { ns: bed.local.ns })?;
    let own = all.iter().filter(|found| found.mac == bed.local.mac());
    Ok(own.count() as u64)
}

#[test]
fn a_device_is_unplugged_under_traffic_with_a_bound_queue() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx])
        .mtu(9000)
        .header_split()
        .hot_plug()
        .boot("unplug")?;
    bed.steer(bed.local, &[1])?;
    bed.allow_faults(&[
        KernelFault::MappingOutlivesDriver,
        KernelFault::UnmapForFreedDevice,
        KernelFault::PciehpLockOrder,
    ])?;
    let flows = bed.both_ways(2 * MIB)?;

    bed.unplug(bed.local)?;
    bed.wait_until(1, || Ok(1 - interfaces(&bed)?))?;
    flows.abandon()?;
    bed.finish()
}

#[test]
#[ignore = "needs a kernel with lockdep"]
fn unplugging_a_device_of_the_c_driver_shows_the_same_order_of_locks() -> Result {
    let bed = Testbed::options()
        .driver(Driver::Igb)
        .needs_kernel(["IGB=m", "PROVE_LOCKING"])
        .hot_plug()
        .boot("unplug-igb")?;
    for parts in KernelFault::PciehpLockOrder.complaints() {
        bed.guest.expect_log(parts);
    }
    bed.unplug(bed.local)?;
    bed.wait_until(1, || Ok(1 - interfaces(&bed)?))?;
    bed.finish()
}

#[test]
fn a_device_that_is_gone_is_let_go_of_and_can_come_back() -> Result {
    let bed = Testbed::options()
        .needs([Ability::DevmemRx, Ability::Unplug])
        .mtu(9000)
        .header_split()
        .pull_out()?
        .boot("gone")?;
    bed.steer(bed.local, &[1])?;
    bed.allow_faults(&[
        KernelFault::MappingOutlivesDriver,
        KernelFault::UnmapForFreedDevice,
        KernelFault::PciehpLockOrder,
    ])?;
    // It no longer transmits, and the kernel may warn of that before it notices the removal.
    bed.guest.allow_log(&["NETDEV WATCHDOG"]);
    let flows = bed.both_ways(2 * MIB)?;

    let statistics = || bed.guest.call(GetStandardStats::on(bed.local));
    let gone = bed.pull_out()?;
    let link = bed.link_stats(bed.local)?;
    for (group, number, value) in statistics()?.counters {
        assert!(
            value < u64::from(u32::MAX),
            "{group} {number}: what a missing device reads as is counted"
        );
    }
    // User requests made meanwhile complete, with or without an error.
    for done in [
        bed.set_header_split(bed.local, TcpDataSplit::On),
        bed.set_receive_ring(bed.local, 256),
        bed.steer(bed.local, &[0, 1]),
    ] {
        assert!(
            done.as_ref()
                .err()
                .is_none_or(|error| error.errno().is_some()),
            "the guest does not answer: {done:?}"
        );
    }
    statistics()?;
    let after = bed.link_stats(bed.local)?;
    assert_eq!(
        (after.rx_missed_errors, after.rx_errors, after.rx_dropped),
        (link.rx_missed_errors, link.rx_errors, link.rx_dropped),
        "what a missing device reads as is not counted"
    );

    bed.notice(gone)?;
    assert_eq!(interfaces(&bed)?, 0);
    flows.abandon()?;
    comes_back(&bed)?;
    bed.finish()
}

#[test]
fn a_device_that_is_gone_leaves_an_xdp_socket_its_memory() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Unplug, Ability::Xsk])
        .pull_out()?
        .boot("gone-xsk")?;
    bed.allow_faults(&[KernelFault::PciehpLockOrder])?;
    let socket = bed.guest.start(bed.xdp_socket(0, 64))?;

    let gone = bed.pull_out()?;
    bed.notice(gone)?;
    assert_eq!(interfaces(&bed)?, 0);
    socket.stop()?;
    comes_back(&bed)?;
    bed.finish()
}

/// Plugs the NIC in again, and sees it work.
fn comes_back(bed: &Testbed) -> Result {
    bed.plug(bed.local)?;
    bed.take_in(bed.local)?;
    bed.set_up_station(bed.local)?;
    bed.wait_carrier(true)?;
    bed.transfer_over_both(bed.local, bed.peer, MIB)
}
