// SPDX-License-Identifier: MIT OR Apache-2.0

//! The clock of the NIC under test, and the stamps of it.

use protocol::{
    ethtool::GetTimestamping,
    stamp::{
        ChangeClock, ClockChange, ClockReading, ReadClock, SetStamping, StampDatagrams, Stamper,
        Stamping,
    },
};

use crate::{CaseError, Family, Result, Testbed, testbed::PATIENCE_MS};

/// How long to wait for a stamp that must not come, or need not, in milliseconds.
const SHORT_MS: u64 = 5000;

impl Testbed {
    /// The number of the NIC's clock.
    fn clock(&self) -> Result<u32> {
        let stamps = self.guest.call(GetTimestamping {
            ns: self.local.ns,
            interface: self.local.name(),
        })?;
        stamps
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

    /// Has the NIC stamp what it sends, or not, and what a filter lets through
    /// (`HWTSTAMP_FILTER_*`).
    pub fn set_stamping(
        &self,
        tx: bool,
        rx_filter: u32,
    ) -> std::result::Result<Stamping, vm::Error> {
        self.guest.call(SetStamping {
            ns: self.local.ns,
            interface: self.local.name(),
            stamping: Stamping { tx, rx_filter },
        })
    }

    /// Sends a datagram of so many bytes to the peer; the NIC's stamp of it, which has to come.
    pub fn stamp_sent(&self, family: Family, size: usize) -> Result<u64> {
        let stamps = self.send_for_stamps(family, 1, size, PATIENCE_MS)?;
        let first = stamps.first().copied();
        first.ok_or_else(|| CaseError::new("the NIC stamped nothing"))
    }

    /// Sends datagrams of so many bytes to the peer; the NIC's stamps of them, as many as come.
    pub fn stamps_of(&self, family: Family, count: usize, size: usize) -> Result<Vec<u64>> {
        self.send_for_stamps(family, count, size, SHORT_MS)
    }

    fn send_for_stamps(
        &self,
        family: Family,
        count: usize,
        size: usize,
        timeout_ms: u64,
    ) -> Result<Vec<u64>> {
        Ok(self.guest.call(StampDatagrams {
            ns: self.local.ns,
            to: self.peer.socket(family, self.port()),
            count,
            size,
            by: Stamper::Hardware,
            timeout_ms,
        })?)
    }
}
