// SPDX-License-Identifier: MIT OR Apache-2.0

//! Time stamps of frames, and the clocks that they are of (Documentation/networking/timestamping.rst
//! and Documentation/driver-api/ptp.rst of the kernel).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Ns, traffic::ExchangeFrames};

/// What a device stamps (`struct hwtstamp_config`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamping {
    /// Frames that are sent, if they ask for it.
    pub tx: bool,
    /// Frames that are received: `HWTSTAMP_FILTER_*`.
    pub rx_filter: u32,
}

/// What an interface stamps (`SIOCGHWTSTAMP`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetStamping {
    /// Namespace of the interface.
    pub ns: Ns,
    /// The interface.
    pub interface: String,
}

/// Has an interface stamp frames (`SIOCSHWTSTAMP`). The answer is what it stamps now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetStamping {
    /// Namespace of the interface.
    pub ns: Ns,
    /// The interface.
    pub interface: String,
    /// What it shall stamp.
    pub stamping: Stamping,
}

/// Statistics of the stamps of an interface, `ethtool -I -T`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetTxStamps {
    /// Namespace of the interface.
    pub ns: Ns,
    /// The interface.
    pub interface: String,
}

/// Answer to [`GetTxStamps`]; what is `None` is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxStamps {
    /// Frames that the device stamped when it sent them.
    pub stamped: Option<u64>,
    /// Frames whose stamps never came.
    pub lost: Option<u64>,
    /// Frames that it could not stamp.
    pub failed: Option<u64>,
}

/// Who takes a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stamper {
    /// The driver, just before it gives the frame to the device.
    Software,
    /// The device, when it sends the frame.
    Hardware,
}

/// Sends datagrams at once, and asks for a time stamp of the sending of each (`SO_TIMESTAMPING`).
///
/// The answer are the stamps, in nanoseconds of the stamper's clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StampDatagrams {
    /// Namespace that sends.
    pub ns: Ns,
    /// Whom to; nobody needs to listen there.
    pub to: SocketAddr,
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub size: usize,
    /// Who shall take the stamps.
    pub by: Stamper,
    /// How long to wait for each stamp, in milliseconds. The first that does not come is the last
    /// that is waited for.
    pub timeout_ms: u64,
}

/// Exchanges frames, one after the other. The answer is when the receiver's device received each, in
/// nanoseconds of its clock, and `None` for those that it did not stamp.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StampFrames {
    /// The frames. Each must come before the next is sent; their `count` is not used.
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
    /// How fast the clock went from this reading to a later one, as a multiple of the guest's: at
    /// least and at most.
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
    /// Has it go faster, by so many parts per million.
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
