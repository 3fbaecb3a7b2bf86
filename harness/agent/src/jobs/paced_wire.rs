// SPDX-License-Identifier: MIT OR Apache-2.0

//! A wire with a bit rate between two interfaces.

use std::{
    io::{ErrorKind, Read, Write},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use protocol::{PacedWire, measure::PacedWireReport};
use rustix::{
    thread::{ClockId, clock_nanosleep_absolute},
    time::Timespec,
};
use socket2::Socket;

use super::{job::Ready, measured::in_threads, switch::Switch};
use crate::{failure, netns, packet};

/// How many bytes may queue in front of the wire: more than TCP has in flight.
const ROOM: usize = 64 << 20;
/// More than a frame.
const FRAME: usize = 64 << 10;
/// How often to check whether the wire must end.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn set_up(spec: &PacedWire) -> Result<Ready> {
    ensure!(spec.rate != 0, "a wire without a rate carries nothing");
    let rate = spec.rate;
    let [left, right] = &spec.interfaces;
    let taps = netns::within(spec.ns, || {
        Ok([packet::tap(left, ROOM)?, packet::tap(right, ROOM)?])
    })?;
    for tap in &taps {
        tap.set_read_timeout(Some(LOOK))
            .context("setting SO_RCVTIMEO")?;
        // From the first query on, frames are timestamped.
        let _ = packet::arrival(tap);
    }
    let switch = Switch::new("PacedWire");
    Ok(Ready::new::<PacedWire, _>(switch, move |switch| {
        let [left, right] = &taps;
        let ways = [(left, right), (right, left)];
        let carried = in_threads(ways, |(from, to)| carry(from, to, rate, switch));
        let mut report = PacedWireReport::default();
        for (way, carried) in carried.into_iter().enumerate() {
            match carried {
                Ok((frames, dropped)) => {
                    report.frames[way] = frames;
                    report.dropped[way] = dropped;
                }
                Err(error) => report.error = Some(failure::from_error(&error)),
            }
        }
        report
    }))
}

/// Carries frames in one direction; returns how many, and how many found no room.
fn carry(mut from: &Socket, mut to: &Socket, rate: u64, switch: &Switch) -> Result<(u64, u64)> {
    let mut frame = vec![0; FRAME];
    let mut frames = 0;
    // When the wire has finished carrying all earlier frames.
    let mut free = 0;
    while !switch.finishing() {
        let length = match from.read(&mut frame) {
            Ok(length) => length,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                continue;
            }
            Err(error) => return Err(error).context("receiving a frame"),
        };
        // A wire does not wait for the program that emulates it: what counts is when the frame
        // arrived, not when it was read.
        let bits = (length as u64 + PacedWire::PER_FRAME) * 8;
        free = packet::arrival(from)?.max(free) + bits * 1_000_000_000 / rate;
        sleep_until(free)?;
        to.write_all(&frame[..length]).context("sending a frame")?;
        frames += 1;
    }
    Ok((frames, packet::dropped(from)?))
}

/// Sleeps until a wall clock time in nanoseconds, as in frames' timestamps.
fn sleep_until(nanoseconds: u64) -> Result<()> {
    let time = Timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as _,
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    };
    clock_nanosleep_absolute(ClockId::Realtime, &time).context("sleeping")
}
