// SPDX-License-Identifier: GPL-2.0

//! The device's time, and the timestamps that it takes.

use i82576::{
    regs::{
        self,
        Reg, //
    },
    timestamping::{
        self,
        Timestamping, //
    },
};

use super::{
    Hw,
    GONE, //
};

impl Hw<'_> {
    /// The system time; `None` if it is stopped, as after a reset, or the device is gone.
    pub(crate) fn system_time(&self) -> Option<u64> {
        let time = self.time(regs::SYSTIML, regs::SYSTIMH);

        // A reset would have come in between.
        (self.read(regs::TIMINCA) == regs::timinca::NANOSECONDS).then_some(time)
    }

    /// Starts the system time.
    pub(crate) fn start_system_time(&self) {
        self.write(regs::TIMINCA, regs::timinca::NANOSECONDS);
    }

    /// Takes these timestamps from now on. An RX timestamp that has not been read is lost.
    pub(crate) fn set_timestamping(&self, timestamping: &Timestamping) {
        self.write(regs::TSYNCTXCTL, timestamping.tsynctxctl());
        self.write(regs::TSYNCRXCFG, timestamping.tsyncrxcfg());
        self.write(regs::etqf(timestamping::FILTER), timestamping.etqf());
        self.write(regs::TSYNCRXCTL, timestamping.tsyncrxctl());
        self.read(regs::RXSATRH);
    }

    /// Reads the TX timestamp, if there is one, so that the next can be taken.
    pub(crate) fn take_tx_timestamp(&self) -> Option<u64> {
        self.has(regs::TSYNCTXCTL, regs::tsynctxctl::VALID)
            .then(|| self.time(regs::TXSTMPL, regs::TXSTMPH))
    }

    /// Returns whether there is an RX timestamp.
    pub(crate) fn has_rx_timestamp(&self) -> bool {
        self.has(regs::TSYNCRXCTL, regs::tsyncrxctl::VALID)
    }

    /// Reads the RX timestamp, if there is one, so that the next can be taken.
    pub(crate) fn take_rx_timestamp(&self) -> Option<u64> {
        self.has_rx_timestamp().then(|| {
            let time = self.time(regs::RXSTMPL, regs::RXSTMPH);

            self.read(regs::RXSATRH);
            time
        })
    }

    fn has(&self, reg: Reg, bit: u32) -> bool {
        let value = self.read(reg);

        value != GONE && value & bit != 0
    }

    /// A time. Its low half must be read first.
    fn time(&self, low: Reg, high: Reg) -> u64 {
        let low = u64::from(self.read(low));

        u64::from(self.read(high)) << 32 | low
    }
}
