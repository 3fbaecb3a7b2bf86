// SPDX-License-Identifier: MIT OR Apache-2.0

//! The memory of a device that neither stops its queues nor comes out of a reset is leaked.
//!
//! QEMU's device does both immediately. So its registers are hidden behind its expansion ROM, which
//! is mapped over them and reads as a stuck device. Behind the ROM the device goes on: it does not
//! see the driver's writes, and fills the buffers that it has.

use std::fs;

use cases::{Datagrams, Family, Result, Testbed, assert_refused};
use libc::EOPNOTSUPP;
use protocol::{
    netdev::QueueKind,
    pci::{ReadRegister, WriteConfig},
};
use vm::Images;

const MIB: u64 = 1 << 20;

/// The size of the registers' BAR, in bytes.
const BAR: usize = 128 << 10;

/// Registers and their bits (82576 datasheet, 8.2.1, 8.2.2, 8.10.10, 8.12.14).
const CTRL: u32 = 0;
const RESET: u32 = 1 << 26;
const STATUS: u32 = 8;
const LINK_UP: u32 = 1 << 1;
const RXDCTL: u32 = 0xc028;
const RQDPC: u32 = 0xc030;
const TXDCTL: u32 = 0xe028;
const ENABLE: u32 = 1 << 25;
/// Packets that a queue has missed since the last read, at every read.
const MISSED: u32 = 7;
/// Distance from a queue's registers to the next one's.
const STRIDE: u32 = 0x40;

/// Offset of the expansion ROM's base address in configuration space, and the bit that maps it
/// (PCI specification, 6.2.5.2).
const ROM_ADDRESS: u16 = 0x30;
const ROM_ENABLE: u16 = 1;

/// What kmemleak finds, as it is leaked on purpose: rings allocated in `Rings::new()`, with its
/// name mangled.
const LEAKED_RINGS: &[&str] = &["unreferenced object 0x", "updown", "Rings3new", "[rigb]"];

/// The functions that allocate the memory of an AF_XDP socket (`net/xdp`).
const LEAKED_SOCKET: [&str; 3] = ["xdp_umem_create", "xp_dma_map", "xp_create_and_assign_umem"];

/// An image of stuck registers.
fn stuck() -> Vec<u8> {
    let mut image = vec![0; BAR];
    let mut set = |register: u32, value: u32| {
        image[register as usize..][..4].copy_from_slice(&value.to_le_bytes());
    };
    set(CTRL, RESET);
    set(STATUS, LINK_UP);
    for queue in 0..16 {
        set(RXDCTL + queue * STRIDE, ENABLE);
        set(RQDPC + queue * STRIDE, MISSED);
        set(TXDCTL + queue * STRIDE, ENABLE);
    }
    image
}

/// Hides the registers of the NIC under test, whose BAR is at `address`, or shows them again.
fn hide(bed: &Testbed, device: &str, address: u32, hidden: bool) -> Result {
    let enable = if hidden { ROM_ENABLE } else { 0 };
    for (offset, value) in [
        (ROM_ADDRESS + 2, (address >> 16) as u16),
        (ROM_ADDRESS, address as u16 | enable),
    ] {
        bed.guest.call(WriteConfig {
            device: device.to_owned(),
            offset,
            value,
        })?;
    }
    let ctrl = bed.guest.call(ReadRegister::new(device, CTRL))?;
    assert_eq!(ctrl == RESET, hidden, "CTRL reads as {ctrl:#x}");
    Ok(())
}

/// Where the first BAR is.
fn bar_address(bed: &Testbed, device: &str) -> Result<u32> {
    let resources = bed.read_file(format!("/sys/bus/pci/devices/{device}/resource"))?;
    let start = resources.split_whitespace().next().unwrap_or_default();
    Ok(u32::from_str_radix(start.trim_start_matches("0x"), 16)?)
}

/// Boots a guest whose NICs have that image as ROM.
fn boot(name: &str, kernel_options: &[&'static str]) -> Result<Testbed> {
    let rom = Images::from_env()?.logs.join(format!("{name}.rom"));
    fs::write(&rom, stuck())?;
    Testbed::options()
        .machine(|machine| machine.nic_rom(rom))
        // Without them each of the driver's tries waits for a jiffy, and the watchdog comes first.
        .needs_kernel(["HIGH_RES_TIMERS"])
        .needs_kernel(kernel_options.iter().copied())
        .boot(name)
}

/// Takes the interface down and up, and checks that it works.
fn recover(bed: &Testbed) -> Result {
    bed.down_and_up(bed.local)?;
    bed.wait_carrier(true)?;
    for (from, to) in [(bed.local, bed.peer), (bed.peer, bed.local)] {
        bed.transfer(from, to, Family::V4, MIB)?;
    }
    Ok(())
}

#[test]
fn memory_of_queues_that_do_not_stop_is_never_freed() -> Result {
    let bed = boot("stuck", &[])?;
    bed.guest.allow_log(LEAKED_RINGS);
    let leaked = || bed.statistic(bed.local, "leaked_rings");
    let inflight = || -> Result<u64> {
        let pools = bed.page_pools(bed.local)?;
        Ok(pools.iter().filter_map(|pool| pool.inflight).sum())
    };
    let device = bed.pci_device(bed.local)?;
    let address = bar_address(&bed, &device)?;
    // Keep the device writing all the time.
    let datagrams = Datagrams {
        pause_us: 500,
        ..bed.datagrams(bed.peer, bed.local, Family::V4, 1000)
    };
    let mut sink = datagrams.sink(&bed)?;
    let source = datagrams.source(&bed, None)?;
    sink.wait_bytes(1)?;
    assert_eq!(leaked()?, 0);
    let posted = inflight()?;

    let threaded = |on| {
        let attribute = format!("/sys/class/net/{}/threaded", bed.local.name());
        bed.write_file(attribute, on)
    };
    threaded("1")?;
    hide(&bed, &device, address, true)?;
    let changed = bed.set_receive_ring(bed.local, 256);
    println!("the change: {changed:?}");
    // Two queue pairs.
    bed.wait_until(4, leaked)?;
    bed.wait_logged("not restarted", 1)?;
    // For a NAPI that is listed and disabled the core would wait.
    assert_refused(threaded("0"), EOPNOTSUPP, "an interface without NAPIs");
    assert!(
        inflight()? >= posted,
        "buffers that the device has are out of their pools: {} of {posted}",
        inflight()?
    );

    hide(&bed, &device, address, false)?;
    let before = leaked()?;
    recover(&bed)?;
    assert_eq!(
        leaked()?,
        before,
        "only rings of the stuck device are leaked"
    );
    source.stop()?;
    sink.stop()?;
    bed.finish()
}

#[test]
fn statistics_of_the_interface_read_no_register() -> Result {
    let bed = boot("stuck-statistics", &[])?;
    let device = bed.pci_device(bed.local)?;
    let address = bar_address(&bed, &device)?;
    let missed = || -> Result<u64> { Ok(bed.link_stats(bed.local)?.rx_missed_errors) };

    hide(&bed, &device, address, true)?;
    assert_eq!((missed()?, missed()?), (0, 0));
    // Those of queues read it, and from then on the interface's include it.
    let queues = bed.queue_stats(bed.local, QueueKind::Rx, "rx-hw-drop-overruns")?;
    assert_eq!(queues, [u64::from(MISSED); 2]);
    assert_eq!(missed()?, queues.iter().sum::<u64>());
    hide(&bed, &device, address, false)?;
    recover(&bed)?;
    bed.finish()
}

#[test]
fn memory_of_a_socket_whose_queue_does_not_stop_stays_pinned() -> Result {
    const CHUNKS: u64 = 128;

    let bed = boot("stuck-xsk", &["XDP_SOCKETS"])?;
    bed.guest.allow_log(LEAKED_RINGS);
    for made_in in LEAKED_SOCKET {
        bed.guest.allow_log(&["unreferenced object 0x", made_in]);
    }
    let device = bed.pci_device(bed.local)?;
    let address = bar_address(&bed, &device)?;
    // Pages that the kernel has pinned.
    let pinned = || -> Result<u64> {
        // The counters are per CPU.
        bed.write_file("/proc/sys/vm/stat_refresh", "1")?;
        let text = bed.read_file("/proc/vmstat")?;
        let count = |name: &str| -> Result<u64> {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find(|(of, _)| *of == name);
            Ok(found.map_or("0", |(_, count)| count).parse()?)
        };
        Ok(count("nr_foll_pin_acquired")? - count("nr_foll_pin_released")?)
    };
    let before = pinned()?;
    let socket = bed.xdp_socket(0, CHUNKS as u32);
    let first = bed.guest.start(socket.clone())?;
    assert_eq!(pinned()? - before, CHUNKS);

    hide(&bed, &device, address, true)?;
    first.stop()?;
    bed.wait_logged("the memory of an AF_XDP socket is leaked", 1)?;
    hide(&bed, &device, address, false)?;
    recover(&bed)?;
    bed.wait_xsk_gone(bed.local)?;
    assert_eq!(pinned()? - before, CHUNKS, "the device may still write it");

    // Another socket takes its place, and is closed.
    let next = bed.guest.start(socket)?;
    next.stop()?;
    bed.wait_xsk_gone(bed.local)?;
    bed.wait_until(1, || Ok((pinned()? - before == CHUNKS).into()))?;
    bed.finish()
}
