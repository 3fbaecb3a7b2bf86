// SPDX-License-Identifier: MIT OR Apache-2.0

//! The time of day, and clocks of network devices (Documentation/driver-api/ptp.rst of the kernel).

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use protocol::timestamp::{ClockChange, ClockReading};
use rustix::time::{
    ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic, clock_settime,
};

const NANOSECONDS: i64 = 1_000_000_000;

/// Sets the time of day.
pub(crate) fn set(time: Duration) -> Result<()> {
    let time = Timespec::try_from(time).context("a time before the year 2262")?;
    clock_settime(ClockId::Realtime, time).context("setting the time of day")
}

/// Reads a clock, and the monotonic time around the reading.
pub(crate) fn read(clock: u32) -> Result<ClockReading> {
    let device = open(clock)?;
    let before = clock_gettime(ClockId::Monotonic);
    let time = clock_gettime_dynamic(DynamicClockId::Dynamic(device.as_fd()))
        .with_context(|| format!("reading clock {clock}"))?;
    let after = clock_gettime(ClockId::Monotonic);
    Ok(ClockReading {
        time: nanoseconds(time),
        before: nanoseconds(before),
        after: nanoseconds(after),
    })
}

/// Changes a clock.
pub(crate) fn change(clock: u32, change: ClockChange) -> Result<()> {
    let device = open(clock)?;
    // As the kernel's FD_TO_CLOCKID.
    let id = (!device.as_raw_fd() << 3) | 3;
    // SAFETY: `timex` is plain old data, for which zeros are valid.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    match change {
        ClockChange::Set(time) => {
            let time = i64::try_from(time).context("a time before the year 2262")?;
            let to = libc::timespec {
                tv_sec: time / NANOSECONDS,
                tv_nsec: time % NANOSECONDS,
            };
            // SAFETY: `to` outlives the call.
            if unsafe { libc::clock_settime(id, &raw const to) } != 0 {
                return Err(io::Error::last_os_error())
                    .with_context(|| format!("setting clock {clock}"));
            }
            return Ok(());
        }
        ClockChange::Shift(by) => {
            timex.modes = libc::ADJ_SETOFFSET | libc::ADJ_NANO;
            timex.time.tv_sec = by.div_euclid(NANOSECONDS);
            timex.time.tv_usec = by.rem_euclid(NANOSECONDS);
        }
        ClockChange::Rate(ppm) => {
            timex.modes = libc::ADJ_FREQUENCY;
            timex.freq = i64::from(ppm) << 16;
        }
    }
    // SAFETY: The kernel reads and writes `timex`, which outlives the call.
    if unsafe { libc::clock_adjtime(id, &raw mut timex) } < 0 {
        bail!("adjusting clock {clock}: {}", io::Error::last_os_error());
    }
    Ok(())
}

fn open(clock: u32) -> Result<File> {
    let path = format!("/dev/ptp{clock}");
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .with_context(|| format!("opening {path}"))
}

fn nanoseconds(time: Timespec) -> u64 {
    // No clock here is set to before 1970.
    (time.tv_sec * NANOSECONDS + time.tv_nsec).unsigned_abs()
}
