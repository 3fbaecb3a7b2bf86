// SPDX-License-Identifier: MIT OR Apache-2.0

//! The device's clock, and the frames it timestamps: sent frames, and received PTP messages.

use std::{thread, time::Duration};

use cases::{Ability, Family, PATIENCE_MS, Result, Testbed, assert_refused, ethernet};
use libc::ERANGE;
use protocol::{
    XdpAction, XdpProgram,
    ethtool::GetTxTimestampStats,
    timestamp::{ClockChange, ClockReading, Hwtstamp, TimestampFrames},
    traffic::ExchangeFrames,
    xdp::AttachXdp,
};

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// The EtherType of PTP, and two of its messages.
const PTP: u16 = 0x88f7;
const SYNC: u8 = 0;
const DELAY_REQ: u8 = 1;

/// `HWTSTAMP_FILTER_*`.
const NONE: u32 = 0;
const ALL: u32 = 1;
const PTP_V2_L2_EVENT: u32 = 9;
const PTP_V2_L2_SYNC: u32 = 10;
const PTP_V2_L2_DELAY_REQ: u32 = 11;

/// A PTP message of version 2.
fn message(bed: &Testbed, kind: u8) -> Vec<u8> {
    let mut frame = ethernet(bed.peer.mac(), bed.local.mac(), PTP);
    frame.extend([kind, 2]);
    frame.extend([0; 50]);
    frame
}

/// Has the peer send messages; returns when they arrived, where the device says.
fn receive(bed: &Testbed, kinds: &[u8]) -> Result<Vec<Option<u64>>> {
    Ok(bed.guest.call(TimestampFrames {
        exchange: ExchangeFrames {
            from: bed.peer.ns,
            through: bed.peer.name(),
            frames: kinds.iter().map(|&kind| message(bed, kind)).collect(),
            to: bed.local.ns,
            at: bed.local.name(),
            ethertype: PTP,
            hash: None,
            count: kinds.len(),
            timeout_ms: PATIENCE_MS,
        },
    })?)
}

/// Asserts that timestamps lie between two readings, each later than the one before.
#[track_caller]
fn assert_between(before: ClockReading, timestamps: &[u64], after: ClockReading) {
    let times: Vec<u64> = [&[before.time], timestamps, &[after.time]].concat();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn the_device_timestamps_what_it_sends_with_its_clock() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Timestamps])
        .boot("timestamps-sent")?;

    assert!(
        bed.tx_timestamps(Family::V4, 1, 64)?.is_empty(),
        "nobody had it timestamp"
    );
    assert_eq!(
        bed.set_hwtstamp(true, NONE)?,
        Hwtstamp {
            tx: true,
            rx_filter: NONE
        }
    );
    let mut timestamped = 0;
    for (family, size) in [(Family::V4, 1), (Family::V6, 64), (Family::V4, 1400)] {
        for _ in 0..5 {
            let before = bed.read_clock()?;
            let timestamp = bed.tx_timestamp(family, size)?;
            assert_between(before, &[timestamp], bed.read_clock()?);
            timestamped += 1;
        }
    }

    // One frame at a time can wait for its timestamp: others go without, and all are counted. The
    // program waits a few seconds for each, and a slow guest's timestamps can be later than that.
    let timestamps = bed.tx_timestamps(Family::V4, 30, 64)?;
    assert!(timestamps.is_sorted(), "{timestamps:?}");
    let counted = || bed.guest.call(GetTxTimestampStats::on(bed.local));
    bed.wait_until(timestamped + 30, || {
        let counted = counted()?;
        Ok(counted.delivered.unwrap_or(0) + counted.failed.unwrap_or(0))
    })?;
    let counted = counted()?;
    let done = timestamped + timestamps.len().max(1) as u64;
    assert!(counted.delivered >= Some(done), "{counted:?}");
    assert_eq!(counted.lost, Some(0), "{counted:?}");

    // The frames were sent all the same, and other traffic goes on alongside timestamps.
    bed.transfer(bed.local, bed.peer, Family::V4, MIB)?;
    bed.finish()
}

#[test]
fn the_device_timestamps_the_messages_that_are_asked_for() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Timestamps])
        .needs_kernel(["BPF_SYSCALL"])
        .boot("timestamps-received")?;
    let kinds = [SYNC, DELAY_REQ, SYNC, SYNC, DELAY_REQ];
    // QEMU's model timestamps one kind only.
    let events: &[_] = match bed.can(Ability::EventTimestamps)? {
        true => &[SYNC, DELAY_REQ],
        false => &[SYNC],
    };

    for (filter, timestamped) in [
        (NONE, &[][..]),
        (PTP_V2_L2_SYNC, &[SYNC][..]),
        (PTP_V2_L2_DELAY_REQ, &[DELAY_REQ]),
        (PTP_V2_L2_EVENT, events),
        (NONE, &[]),
    ] {
        assert_eq!(
            bed.set_hwtstamp(false, filter)?,
            Hwtstamp {
                tx: false,
                rx_filter: filter
            }
        );
        let before = bed.read_clock()?;
        let timestamps = receive(&bed, &kinds)?;
        let after = bed.read_clock()?;
        let expected = kinds.map(|kind| timestamped.contains(&kind));
        assert_eq!(
            timestamps.iter().map(Option::is_some).collect::<Vec<_>>(),
            expected,
            "filter {filter}: {timestamps:?}"
        );
        let timestamps: Vec<u64> = timestamps.into_iter().flatten().collect();
        assert_between(before, &timestamps, after);
    }

    // An XDP program that sees the frames first does not affect timestamps.
    bed.set_hwtstamp(false, PTP_V2_L2_SYNC)?;
    bed.guest.call(AttachXdp::on(
        bed.local,
        XdpProgram {
            ethertype: Some(PTP),
            action: XdpAction::Pass,
            fragments: false,
        },
    ))?;
    let before = bed.read_clock()?;
    let timestamps: Vec<u64> = receive(&bed, &[SYNC; 5])?.into_iter().flatten().collect();
    assert_eq!(timestamps.len(), 5, "beside a program: {timestamps:?}");
    assert_between(before, &timestamps, bed.read_clock()?);

    // The device cannot timestamp all frames.
    bed.set_hwtstamp(true, PTP_V2_L2_SYNC)?;
    let refused = bed.set_hwtstamp(true, ALL);
    assert_refused(refused, ERANGE, "timestamps of all frames");
    assert_eq!(receive(&bed, &[SYNC])?.iter().flatten().count(), 1);
    bed.finish()
}

#[test]
fn a_timestamp_that_nobody_took_does_not_keep_others_away() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Timestamps])
        .boot("timestamps-left")?;
    bed.set_hwtstamp(false, PTP_V2_L2_SYNC)?;

    // To another address: the device timestamps it, and drops it.
    let mut frame = message(&bed, SYNC);
    frame[..6].copy_from_slice(&[0x02, 0, 0, 0, 0, 0x99]);
    bed.send_frame(bed.peer, frame)?;
    let mut tries = 0;
    while receive(&bed, &[SYNC])? == [None] {
        tries += 1;
        assert!(tries < 60, "it timestamps no more");
        thread::sleep(Duration::from_secs(1));
    }
    bed.finish()
}

#[test]
fn the_clock_can_be_set_and_made_faster_or_slower() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Timestamps])
        .boot("clock")?;

    for (ppm, factor) in [(0, 1.0), (400_000, 1.4), (-250_000, 0.75), (0, 1.0)] {
        bed.change_clock(ClockChange::Rate(ppm))?;
        let first = bed.read_clock()?;
        // Until the bounds are tight enough, however slow the machine is.
        let (slowest, fastest) = loop {
            thread::sleep(Duration::from_secs(1));
            let (slowest, fastest) = first.rate_to(bed.read_clock()?);
            if fastest - slowest < 0.1 {
                break (slowest, fastest);
            }
        };
        assert!(
            slowest <= factor + 0.001 && fastest >= factor - 0.001,
            "{ppm} ppm: between {slowest} and {fastest}"
        );
    }

    // It kept running, but for no longer than the guest's own clock says, which is only as accurate
    // as its calibration.
    let bounds = |from: u64, first: ClockReading, last: ClockReading| {
        let most = last.after - first.before;
        from <= last.time && last.time - from <= most + most / 1000
    };
    let first = bed.read_clock()?;
    let time = 1_800_000_000 * SECOND + 5;
    bed.change_clock(ClockChange::Set(time))?;
    let last = bed.read_clock()?;
    assert!(bounds(time, first, last), "{first:?}, {last:?}");
    for shift in [-1_500_000_000, 2_000_000_001] {
        let first = bed.read_clock()?;
        bed.change_clock(ClockChange::Shift(shift))?;
        let last = bed.read_clock()?;
        let from = first.time.wrapping_add_signed(shift);
        assert!(bounds(from, first, last), "{shift}: {first:?}, {last:?}");
    }
    bed.finish()
}

#[test]
fn clock_and_timestamps_go_on_when_the_interface_was_down() -> Result {
    let bed = Testbed::options()
        .needs([Ability::Timestamps])
        .boot("clock-down")?;
    bed.change_clock(ClockChange::Set(1_800_000_000 * SECOND))?;
    bed.set_hwtstamp(true, PTP_V2_L2_SYNC)?;

    let first = bed.read_clock()?;
    bed.set_interface(bed.local, false)?;
    let down = bed.read_clock()?;
    bed.set_interface(bed.local, true)?;
    bed.wait_carrier(true)?;
    let last = bed.read_clock()?;
    for (reading, what) in [(down, "down"), (last, "up again")] {
        let (slowest, fastest) = first.rate_to(reading);
        assert!(
            slowest < 1.1 && fastest > 0.9,
            "{what}: between {slowest} and {fastest}"
        );
    }
    let sent = bed.tx_timestamp(Family::V4, 64)?;
    let received = receive(&bed, &[SYNC])?;
    let timestamps: Vec<u64> = [sent]
        .into_iter()
        .chain(received.into_iter().flatten())
        .collect();
    assert_eq!(timestamps.len(), 2);
    assert_between(last, &timestamps, bed.read_clock()?);
    bed.finish()
}
