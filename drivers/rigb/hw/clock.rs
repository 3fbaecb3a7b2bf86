// SPDX-License-Identifier: GPL-2.0

//! The device's time, and the stamps that it takes of it.

use i82576::{
    regs::{
        self,
        Reg, //
    },
    stamping::{
        self,
        Stamping, //
    },
};

use super::{
    Hw,
    GONE, //
};

impl Hw<'_> {
    /// The system time; `None` if it does not go, as after a reset or when the device is gone.
    pub(crate) fn system_time(&self) -> Option<u64> {
        let time = self.time(regs::SYSTIML, regs::SYSTIMH);

        // A reset would have come in between.
        (self.read(regs::TIMINCA) == regs::timinca::NANOSECONDS).then_some(time)
    }

    /// Lets the system time go.
    pub(crate) fn start_system_time(&self) {
        self.write(regs::TIMINCA, regs::timinca::NANOSECONDS);
    }

    /// Stamps this from now on. A stamp of what was received that nobody has taken is lost.
    pub(crate) fn set_stamping(&self, stamping: &Stamping) {
        self.write(regs::TSYNCTXCTL, stamping.tsynctxctl());
        self.write(regs::TSYNCRXCFG, stamping.tsyncrxcfg());
        self.write(regs::etqf(stamping::FILTER), stamping.etqf());
        self.write(regs::TSYNCRXCTL, stamping.tsyncrxctl());
        self.read(regs::RXSATRH);
    }

    /// The system time at which a frame was sent that asked for it, if there is one; the next one may
    /// come.
    pub(crate) fn take_tx_stamp(&self) -> Option<u64> {
        self.has(regs::TSYNCTXCTL, regs::tsynctxctl::VALID)
            .then(|| self.time(regs::TXSTMPL, regs::TXSTMPH))
    }

    /// Returns whether there is a stamp of a message that was received.
    pub(crate) fn has_rx_stamp(&self) -> bool {
        self.has(regs::TSYNCRXCTL, regs::tsyncrxctl::VALID)
    }

    /// The system time at which a message was received, if there is one; the next one may come.
    pub(crate) fn take_rx_stamp(&self) -> Option<u64> {
        self.has_rx_stamp().then(|| {
            let time = self.time(regs::RXSTMPL, regs::RXSTMPH);

            self.read(regs::RXSATRH);
            time
        })
    }

    fn has(&self, reg: Reg, bit: u32) -> bool {
        let value = self.read(reg);

        value != GONE && value & bit != 0
    }

    /// A time, whose low half has to be read first.
    fn time(&self, low: Reg, high: Reg) -> u64 {
        let low = u64::from(self.read(low));

        u64::from(self.read(high)) << 32 | low
    }
}
