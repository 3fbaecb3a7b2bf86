// SPDX-License-Identifier: MIT OR Apache-2.0

//! NAPIs: their settings persist, and they poll in threads as they do in softirqs.

use std::collections::BTreeMap;

use cases::{Ability, Family, Result, Testbed, assert_refused};
use libc::EOPNOTSUPP;
use protocol::{
    Memory, Release,
    netdev::{ListNapis, Napi, NapiChange, SetNapi, Threading},
    rings::TcpDataSplit,
    snmp,
};

const MIB: u64 = 1 << 20;
const CPUS: u32 = 3;

fn napis(bed: &Testbed) -> Result<Vec<Napi>> {
    Ok(bed.guest.call(ListNapis::on(bed.local))?)
}

fn affinity(bed: &Testbed, irq: u32) -> Result<u32> {
    let text = bed.read_file(format!("/proc/irq/{irq}/smp_affinity"))?;
    Ok(u32::from_str_radix(text.trim(), 16).unwrap_or_default())
}

fn set_affinity(bed: &Testbed, irq: u32, processors: u32) -> Result {
    let file = format!("/proc/irq/{irq}/smp_affinity");
    bed.write_file(file, format!("{processors:x}"))
}

fn affinities(bed: &Testbed, napis: &[Napi]) -> Result<BTreeMap<u32, u32>> {
    let irqs = napis.iter().filter_map(|napi| napi.irq);
    irqs.map(|irq| Ok((irq, affinity(bed, irq)?))).collect()
}

/// Turns threaded NAPI on or off for the NIC under test.
fn set_threading(bed: &Testbed, threaded: bool) -> Result {
    let file = format!("/sys/class/net/{}/threaded", bed.local.interface);
    bed.write_file(file, u32::from(threaded).to_string())
}

#[test]
fn what_users_set_on_a_napi_and_its_interrupt_stays_whatever_is_reconfigured() -> Result {
    let bed = Testbed::options()
        .needs([Ability::NapiIds])
        .cpus(CPUS)
        .header_split()
        .boot("napi-settings")?;
    let spread = affinities(&bed, &napis(&bed)?)?;
    let mut processors: Vec<_> = spread.values().copied().collect();
    processors.sort_unstable();
    assert_eq!(processors, [1, 2, 4], "a processor for each: {spread:?}");

    for (number, napi) in (1..).zip(napis(&bed)?) {
        let Some(irq) = napi.irq else {
            panic!("no interrupt: {napi:?}");
        };
        set_affinity(&bed, irq, 7 & !(1 << (number % CPUS)))?;
        bed.guest.call(SetNapi {
            ns: bed.local.ns,
            id: napi.id,
            change: NapiChange {
                threading: Some(match number {
                    1 => Threading::Thread,
                    _ => Threading::Softirq,
                }),
                defer_hard_irqs: Some(number),
                gro_flush_timeout: Some(1000 * number),
            },
        })?;
    }
    // The kernel records affinities in a work item.
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;

    let settings = || -> Result<_> {
        let mut napis = napis(&bed)?;
        let affinities = affinities(&bed, &napis)?;
        assert_eq!(affinities.len(), CPUS as usize, "{napis:?}");
        for napi in &mut napis {
            // The thread may be another one.
            napi.pid = napi.pid.map(|_| 0);
        }
        Ok((napis, affinities))
    };
    let before = settings()?;
    assert_ne!(before.1, spread);

    bed.set_interface(bed.local, false)?;
    assert_eq!(napis(&bed)?, [], "an interface that is down has none");
    bed.set_interface(bed.local, true)?;
    assert_eq!(settings()?, before, "down and up");
    bed.set_mtu(bed.local, 9000)?;
    assert_eq!(settings()?, before, "MTU");
    bed.set_receive_ring(bed.local, 256)?;
    assert_eq!(settings()?, before, "ring");
    bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?.stop()?;
    assert_eq!(settings()?, before, "restart of a queue");
    bed.set_header_split(bed.local, TcpDataSplit::Off)?;
    assert_eq!(settings()?, before, "header split");

    for family in Family::BOTH {
        bed.wait_carrier(true)?;
        bed.transfer(bed.peer, bed.local, family, MIB)?;
    }
    bed.finish()
}

#[test]
fn an_affinity_that_is_set_while_the_interface_is_down_stays_when_it_comes_up() -> Result {
    let bed = Testbed::options()
        .needs([Ability::NapiIds])
        .cpus(CPUS)
        .boot("napi-affinity-down")?;
    let irqs: Vec<_> = napis(&bed)?
        .into_iter()
        .filter_map(|napi| napi.irq)
        .collect();
    assert_eq!(irqs.len(), CPUS as usize);
    let all = || -> Result<Vec<_>> { irqs.iter().map(|&irq| affinity(&bed, irq)).collect() };
    let set = |wanted: u32| -> Result {
        let mut irqs = irqs.iter();
        irqs.try_for_each(|&irq| set_affinity(&bed, irq, wanted))
    };

    bed.set_interface(bed.local, false)?;
    set(6)?;
    bed.set_interface(bed.local, true)?;
    assert_eq!(all()?, [6; CPUS as usize], "while it was down");
    // The other pairs' interrupts still exist.
    bed.set_channels(bed.local, 1)?;
    set(5)?;
    bed.set_channels(bed.local, CPUS)?;
    assert_eq!(all()?, [5; CPUS as usize], "while there was one pair");
    bed.down_and_up(bed.local)?;
    assert_eq!(all()?, [5; CPUS as usize], "down and up");

    bed.wait_carrier(true)?;
    bed.transfer(bed.peer, bed.local, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn threads_stay_over_down_and_up_and_cannot_be_turned_off_while_down() -> Result {
    let bed = Testbed::options()
        .needs([Ability::NapiIds])
        .boot("napi-threads-down")?;
    let threading = || -> Result<Vec<_>> {
        let napis = napis(&bed)?.into_iter();
        Ok(napis
            .map(|napi| (napi.threading, napi.pid.is_some()))
            .collect())
    };
    set_threading(&bed, true)?;
    assert_eq!(threading()?, [(Some(Threading::Thread), true); 2]);
    bed.set_interface(bed.local, false)?;
    // The kernel would wait for ever for a NAPI that is disabled and listed.
    // There is no NAPI: modify_napi_threaded() in net/core/net-sysfs.c.
    assert_refused(
        set_threading(&bed, false),
        EOPNOTSUPP,
        "threads off while down",
    );
    bed.set_interface(bed.local, true)?;
    assert_eq!(threading()?, [(Some(Threading::Thread), true); 2]);
    set_threading(&bed, false)?;
    assert_eq!(threading()?, [(Some(Threading::Softirq), false); 2]);

    // The same while there are fewer queue pairs.
    for (on, threads) in [(true, Threading::Thread), (false, Threading::Softirq)] {
        set_threading(&bed, !on)?;
        bed.set_channels(bed.local, 1)?;
        set_threading(&bed, on)?;
        bed.set_channels(bed.local, 2)?;
        assert_eq!(threading()?, [(Some(threads), on); 2]);
    }
    bed.finish()
}

#[test]
fn device_memory_is_received_in_threads_and_by_busy_polling() -> Result {
    let bytes = 16 * MIB;
    let bed = Testbed::devmem_options()
        .needs([Ability::NapiIds])
        .boot_steered("napi-polling")?;
    // Sockets created from now on poll the NAPI that their packets came from for this many
    // microseconds: long enough for packets to arrive on an emulated machine.
    let busy = |on| {
        let microseconds = if on { "500000" } else { "0" };
        bed.write_file("/proc/sys/net/core/busy_read", microseconds)
    };
    let polled = || -> Result<u64> {
        let text = bed.read_file("/proc/thread-self/net/netstat")?;
        let packets = snmp::value(&text, "TcpExt", "BusyPollRxPackets");
        Ok(packets.expect("the kernel counts it"))
    };

    for what in ["threads", "busy polling", "both", "a thread that polls on"] {
        set_threading(&bed, what == "threads" || what == "both")?;
        busy(what == "busy polling" || what == "both")?;
        if what == "a thread that polls on" {
            for napi in napis(&bed)? {
                bed.guest.call(SetNapi {
                    ns: bed.local.ns,
                    id: napi.id,
                    change: NapiChange {
                        threading: Some(Threading::BusyThread),
                        ..NapiChange::default()
                    },
                })?;
            }
        }
        let before = polled()?;
        for family in Family::BOTH {
            let stream = bed.stream(bed.peer, bed.local, family);
            // Binding and unbinding both restart the queue, whose NAPI is polled like this.
            let sink = stream.devmem_sink(&bed, 1, 8 * MIB, Release::Immediate)?;
            // A socket polls when it finds nothing to read.
            let source = stream.source(&bed, Some(bytes), &[64 << 10], 2000)?;
            let (report, source) = (sink.join()?, source.join()?);
            assert_eq!(
                (report.bytes, report.mismatch, report.linear_bytes),
                (bytes, None, 0),
                "{what}, {family:?}: {report:?} {source:?}"
            );
        }
        let grown = polled()? - before;
        // With both, whichever polls first gets the packets.
        if what != "both" {
            assert_eq!(
                grown > 0,
                what == "busy polling",
                "{what}: {grown} packets were polled by sockets"
            );
        }
    }
    bed.finish()
}
