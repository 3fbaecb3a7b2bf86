// SPDX-License-Identifier: MIT OR Apache-2.0

//! A device that stops transmitting is reset, and traffic resumes.

use cases::{Datagrams, Family, Result, Testbed};
use protocol::{
    ethtool::{GetLinkModes, LinkModeChange, SetLinkModes},
    netdev::{GetInterfaceQueueStats, ListQueues},
    pci::WriteRegister,
    timestamp::ClockChange,
};

const MIB: u64 = 1 << 20;

/// Offset of transmit control in the first BAR; its bit 1 enables transmission (82576 datasheet,
/// 8.12.1).
const TRANSMIT_CONTROL: u32 = 0x400;

/// Enables RX timestamps (82576 datasheet).
const TSYNCRXCTL: u32 = 0xb620;

/// `HWTSTAMP_FILTER_PTP_V2_L2_SYNC`
const PTP_V2_L2_SYNC: u32 = 10;

/// How often a TX queue of the NIC under test has timed out.
fn timeouts(bed: &Testbed) -> Result<u64> {
    let of_queue = |queue| bed.tx_queue(bed.local.interface, queue, "tx_timeout");
    Ok(of_queue(0)? + of_queue(1)?)
}

#[test]
fn a_device_that_stops_to_send_is_reset_and_what_is_bound_stays_bound() -> Result {
    let bed = Testbed::devmem_options()
        .needs_kernel(["BQL", "PTP_1588_CLOCK"])
        .boot_steered("transmit-timeout")?;
    bed.guest.allow_log(&["NETDEV WATCHDOG"]);
    let device = bed.pci_device(bed.local)?;
    let counters = || bed.guest.call(GetInterfaceQueueStats::on(bed.local));
    let offered = || -> Result<_> {
        let link = bed.guest.call(GetLinkModes::on(bed.local))?;
        Ok(link.modes)
    };
    // A reset makes the device forget this.
    let everything = offered()?;
    bed.guest.call(SetLinkModes::on(
        bed.local,
        LinkModeChange {
            autoneg: Some(true),
            advertise: Some(
                ["Autoneg", "TP", "1000baseT/Full"]
                    .map(str::to_owned)
                    .into(),
            ),
            ..LinkModeChange::default()
        },
    ))?;
    bed.wait_carrier_of(bed.local, true)?;
    let gigabit = offered()?;
    assert_ne!(gigabit, everything);
    let flows = bed.both_ways(MIB)?;
    // Only a full queue times out. TCP's data in flight may not fill one, and a socket's datagrams only
    // a short one.
    bed.set_transmit_ring(bed.local, 64)?;
    let filler = Datagrams {
        pause_us: 200,
        ..bed.datagrams(bed.local, bed.peer, Family::V4, 64)
    };
    let datagrams = filler.sink(&bed)?;
    let filler = filler.source(&bed, None)?;

    // A time and a rate that the device's clock would not have by itself.
    bed.change_clock(ClockChange::Set(1_800_000_000_000_000_000))?;
    bed.change_clock(ClockChange::Rate(400_000))?;
    bed.set_hwtstamp(true, PTP_V2_L2_SYNC)?;
    let rx_timestamping = || bed.read_register(bed.local, TSYNCRXCTL);
    let wanted = rx_timestamping()?;
    assert_ne!(wanted, 0);
    let clock = bed.read_clock()?;
    for time in 1..=2 {
        let before = counters()?;
        bed.guest
            .call(WriteRegister::new(&device, TRANSMIT_CONTROL, 0))?;
        bed.wait_until(time, || timeouts(&bed))?;
        let after = counters()?;
        let less = before.iter().filter(|(name, value)| after[*name] < **value);
        assert_eq!(less.count(), 0, "{before:?} then {after:?}");
        bed.wait_carrier_of(bed.local, true)?;
        assert_eq!(offered()?, gigabit);
        let queues = bed.guest.call(ListQueues::on(bed.local))?;
        assert!(
            queues.iter().any(|queue| queue.dmabuf.is_some()),
            "{queues:?}"
        );
        // The clock has kept running, and timestamps sent frames.
        let now = bed.read_clock()?;
        let (slowest, fastest) = clock.rate_to(now);
        assert!(
            slowest < 1.45 && fastest > 1.35,
            "reset {time}: between {slowest} and {fastest}"
        );
        // The datagrams that fill the queue may leave no room for one to timestamp.
        let mut timestamps = Vec::new();
        bed.wait_until(1, || {
            timestamps = bed.tx_timestamps(Family::V4, 1, 64)?;
            Ok(timestamps.len() as u64)
        })?;
        assert!(
            timestamps[0] > now.time,
            "reset {time}: {timestamps:?}, {now:?}"
        );
        assert_eq!(rx_timestamping()?, wanted, "reset {time}");
        // It transmits again, and both flows go on.
        let now = bed.link_stats(bed.local)?;
        bed.wait_until(now.tx_packets + 1000, || {
            Ok(bed.link_stats(bed.local)?.tx_packets)
        })?;
        bed.wait_until(now.rx_packets + 1000, || {
            Ok(bed.link_stats(bed.local)?.rx_packets)
        })?;
    }

    filler.finish()?;
    let report = datagrams.stop()?;
    assert_eq!((report.corrupt, report.error), (0, None));
    flows.finish()?;
    // Frames on the ring that was reset are not waited for.
    bed.wait_all_sent(bed.local.interface, 0..2)?;
    bed.finish()
}
