// SPDX-License-Identifier: MIT OR Apache-2.0

//! Timestamps of frames, and the clocks that they are of (Documentation/networking/timestamping.rst
//! and Documentation/driver-api/ptp.rst of the kernel).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests, traffic::ExchangeFrames};

/// Which frames a device timestamps (`struct hwtstamp_config`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hwtstamp {
    /// Frames that are sent, if they ask for it.
    pub tx: bool,
    /// Frames that are received: `HWTSTAMP_FILTER_*`.
    pub rx_filter: u32,
}

interface_requests! {
    /// Gets which frames an interface timestamps (`SIOCGHWTSTAMP`).
    GetHwtstamp {},
    /// Sets which frames an interface timestamps (`SIOCSHWTSTAMP`). The answer is what was set.
    SetHwtstamp {
        /// The new settings.
        hwtstamp: Hwtstamp,
    },
}

/// What takes a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimestampSource {
    /// The driver, just before it posts the frame to the device.
    Software,
    /// The device, when it sends the frame.
    Hardware,
}

/// Sends datagrams in a burst, and asks for a TX timestamp of each (`SO_TIMESTAMPING`).
///
/// The answer is the timestamps, in nanoseconds of the source's clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TimestampDatagrams {
    /// Namespace to send from.
    pub ns: Ns,
    /// Where to; no socket needs to listen there.
    pub to: SocketAddr,
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub size: usize,
    /// What takes the timestamps.
    pub by: TimestampSource,
    /// How long to wait for each timestamp, in milliseconds. Waiting ends at the first that does
    /// not come.
    pub timeout_ms: u64,
}

/// Exchanges frames, one after the other. The answer is the RX timestamp of each, in nanoseconds of
/// the receiving device's clock, and `None` for a frame without one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TimestampFrames {
    /// The frames. Each must arrive before the next is sent; their `count` is not used.
    pub exchange: ExchangeFrames,
}

/// Reads a clock of the guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadClock {
    /// Its number, behind `/dev/ptp`.
    pub clock: u32,
}

/// Answer to [`ReadClock`], all in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The clock.
    pub time: u64,
    /// The guest's monotonic clock before it was read.
    pub before: u64,
    /// The same, afterwards.
    pub after: u64,
}

impl ClockReading {
    /// The clock's rate from this reading to a later one, as a multiple of the guest's: its lower
    /// and upper bounds.
    #[must_use]
    pub fn rate_to(&self, later: Self) -> (f64, f64) {
        let elapsed = later.time as f64 - self.time as f64;
        (
            elapsed / (later.after - self.before) as f64,
            elapsed / (later.before - self.after) as f64,
        )
    }
}

/// A change of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockChange {
    /// Sets it to so many nanoseconds.
    Set(u64),
    /// Sets it forward by so many nanoseconds.
    Shift(i64),
    /// Speeds it up by so many parts per million.
    Rate(i32),
}

/// Changes a clock of the guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeClock {
    /// Its number, behind `/dev/ptp`.
    pub clock: u32,
    /// How.
    pub change: ClockChange,
}
