// SPDX-License-Identifier: MIT OR Apache-2.0

//! The clock of the NIC under test, and its timestamps.

use protocol::{
    ethtool::GetTimestamping,
    timestamp::{
        ChangeClock, ClockChange, ClockReading, Hwtstamp, ReadClock, SetHwtstamp,
        TimestampDatagrams, TimestampSource,
    },
};

use crate::{CaseError, Family, Result, Testbed, testbed::PATIENCE_MS};

/// How long to wait for a timestamp that must not, or need not, arrive, in milliseconds.
const SHORT_MS: u64 = 5000;

impl Testbed {
    /// The number of the NIC's clock.
    fn clock(&self) -> Result<u32> {
        let timestamps = self.guest.call(GetTimestamping::on(self.local))?;
        timestamps
            .clock
            .ok_or_else(|| CaseError::new("the NIC has no clock"))
    }

    /// Reads the NIC's clock.
    pub fn read_clock(&self) -> Result<ClockReading> {
        let clock = self.clock()?;
        Ok(self.guest.call(ReadClock { clock })?)
    }

    /// Changes the NIC's clock.
    pub fn change_clock(&self, change: ClockChange) -> Result {
        let clock = self.clock()?;
        Ok(self.guest.call(ChangeClock { clock, change })?)
    }

    /// Sets whether the NIC timestamps the frames that it sends, and which received frames it
    /// timestamps (`HWTSTAMP_FILTER_*`).
    pub fn set_hwtstamp(
        &self,
        tx: bool,
        rx_filter: u32,
    ) -> std::result::Result<Hwtstamp, vm::Error> {
        self.guest
            .call(SetHwtstamp::on(self.local, Hwtstamp { tx, rx_filter }))
    }

    /// Sends a datagram of `size` bytes to the peer; returns its timestamp, which must arrive.
    pub fn tx_timestamp(&self, family: Family, size: usize) -> Result<u64> {
        let timestamps = self.send_for_timestamps(family, 1, size, PATIENCE_MS)?;
        let first = timestamps.first().copied();
        first.ok_or_else(|| CaseError::new("the NIC timestamped nothing"))
    }

    /// Sends datagrams of `size` bytes to the peer; returns the timestamps that arrive.
    pub fn tx_timestamps(&self, family: Family, count: usize, size: usize) -> Result<Vec<u64>> {
        self.send_for_timestamps(family, count, size, SHORT_MS)
    }

    fn send_for_timestamps(
        &self,
        family: Family,
        count: usize,
        size: usize,
        timeout_ms: u64,
    ) -> Result<Vec<u64>> {
        Ok(self.guest.call(TimestampDatagrams {
            ns: self.local.ns,
            to: self.peer.socket(family, self.port()),
            count,
            size,
            by: TimestampSource::Hardware,
            timeout_ms,
        })?)
    }
}
