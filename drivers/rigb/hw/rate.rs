// SPDX-License-Identifier: GPL-2.0

//! Rate limits of TX queues (`queues/tx-N/tx_maxrate`).

use i82576::regs::{
    self,
    rttbcnrc,
    status, //
};

use super::{
    Hw,
    GONE, //
};

/// The speed of a link that is down: its limits are set again when it comes up.
const SPEED: u32 = 1000;
/// What a queue may make up for, in KiB: two of the longest frames (`igb_set_vf_rate_limit()`).
const WINDOW: u32 = 0x14;

impl Hw<'_> {
    /// Limits TX queue `queue` to `rate` Mb/s, or lifts the limit if that is zero.
    pub(crate) fn set_tx_rate(&self, queue: u32, rate: u32) {
        let mut rates = self.tx_rates.lock();

        if let Some(place) = rates.get_mut(queue as usize) {
            *place = rate;
            self.write_tx_rate(queue, rate, self.speed());
        }
    }

    /// Sets the limits again: the device was reset, or the link, to whose speed they are relative,
    /// has changed.
    pub(crate) fn keep_tx_rates(&self) {
        let rates = self.tx_rates.lock();

        if rates.iter().any(|rate| *rate != 0) {
            let speed = self.speed();

            for (queue, rate) in (0..).zip(rates.iter()) {
                self.write_tx_rate(queue, *rate, speed);
            }
        }
    }

    /// The lock must be held: the register of the limit is the selected queue's.
    fn write_tx_rate(&self, queue: u32, rate: u32, speed: u32) {
        self.write(regs::RTTDQSEL, queue);
        self.write(regs::RTTBCNRM, WINDOW);
        self.write(regs::RTTBCNRC, rttbcnrc::encode(speed, rate));
    }

    fn speed(&self) -> u32 {
        match self.read(regs::STATUS) {
            GONE => SPEED,
            value if value & status::LU == 0 => SPEED,
            value => status::speed(value),
        }
    }
}
