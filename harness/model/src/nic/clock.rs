// SPDX-License-Identifier: MIT OR Apache-2.0

//! The system time and timestamps (82576 datasheet, chapter "Time SYNC").

use i82576::regs::{
    RXSATRH, RXSTMPH, RXSTMPL, SYSTIMH, SYSTIML, TIMINCA, TSYNCRXCTL, TSYNCTXCTL, TXSTMPH, TXSTMPL,
    tsyncrxctl, tsynctxctl,
};

use super::registers::Registers;

/// Nanoseconds between two ticks at 1000 Mb/s.
const TICK: u64 = 16;
/// TIMINCA: what is added, and shift of the ticks in between.
const INCREMENT: u32 = 0x00ff_ffff;
const PERIOD_SHIFT: u32 = 24;

/// The system time. It stands still until TIMINCA is written.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Its value at a tick.
    value: u64,
    /// When that was, in nanoseconds.
    at: u64,
}

impl Clock {
    /// Goes on to `now`.
    fn advance(&mut self, registers: &Registers, now: u64) {
        let timinca = registers.get(TIMINCA);
        let period = TICK * u64::from(timinca >> PERIOD_SHIFT).max(1);
        let increments = now.saturating_sub(self.at) / period;
        let step = u64::from(timinca & INCREMENT);
        self.value = self.value.wrapping_add(increments.wrapping_mul(step));
        self.at += increments * period;
    }

    /// Reads the low half, and holds the high half for a read that follows.
    pub(crate) fn read(&mut self, registers: &mut Registers, now: u64) -> u32 {
        self.advance(registers, now);
        registers.set(SYSTIMH, (self.value >> 32) as u32);
        self.value as u32
    }

    /// Sets the time once its high half is written, to that and the low half that was written before.
    pub(crate) fn write(&mut self, registers: &Registers, now: u64) {
        self.value = u64::from(registers.get(SYSTIMH)) << 32 | u64::from(registers.get(SYSTIML));
        self.at = now;
    }

    /// Runs at the rate that TIMINCA has from now on.
    pub(crate) fn set_rate(&mut self, registers: &mut Registers, timinca: u32, now: u64) {
        self.advance(registers, now);
        registers.set(TIMINCA, timinca);
        self.at = now;
    }

    /// Jumps, and has a timestamp that nobody asked for.
    pub(crate) fn lie(&mut self, registers: &mut Registers, value: u64) {
        self.value = self.value.wrapping_add(value);
        registers.set(TXSTMPL, value as u32);
        registers.modify(TSYNCTXCTL, 0, tsynctxctl::VALID);
    }

    /// Takes the timestamp of a frame that is sent, unless the last one was not read.
    pub(crate) fn timestamp_sent(&mut self, registers: &mut Registers, now: u64) {
        let control = registers.get(TSYNCTXCTL);
        if control & (tsynctxctl::ENABLE | tsynctxctl::VALID) != tsynctxctl::ENABLE {
            return;
        }
        self.advance(registers, now);
        registers.set(TXSTMPL, self.value as u32);
        registers.set(TXSTMPH, (self.value >> 32) as u32);
        registers.modify(TSYNCTXCTL, 0, tsynctxctl::VALID);
    }

    /// Takes the timestamp of a frame that was received, unless the last one was not read. Says whether
    /// it was taken.
    pub(crate) fn timestamp_received(&mut self, registers: &mut Registers, now: u64) -> bool {
        let control = registers.get(TSYNCRXCTL);
        if control & (tsyncrxctl::ENABLE | tsyncrxctl::VALID) != tsyncrxctl::ENABLE {
            return false;
        }
        self.advance(registers, now);
        registers.set(RXSTMPL, self.value as u32);
        registers.set(RXSTMPH, (self.value >> 32) as u32);
        registers.modify(TSYNCRXCTL, 0, tsyncrxctl::VALID);
        true
    }

    /// The high half of the sent frame's timestamp was read: there is room for the next.
    pub(crate) fn release_sent(registers: &mut Registers) {
        registers.modify(TSYNCTXCTL, tsynctxctl::VALID, 0);
    }

    /// As [`Self::release_sent`], for [`RXSATRH`], the last word of a received frame's.
    pub(crate) fn release_received(registers: &mut Registers) {
        registers.modify(TSYNCRXCTL, tsyncrxctl::VALID, 0);
        registers.set(RXSATRH, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use i82576::regs::timinca;

    #[test]
    fn the_time_stands_still_until_it_has_a_rate_and_then_counts_nanoseconds() {
        let (mut clock, mut registers) = (Clock::default(), Registers::default());
        assert_eq!(clock.read(&mut registers, 1_000_000), 0);
        clock.set_rate(&mut registers, timinca::NANOSECONDS, 1_000_000);
        let time = clock.read(&mut registers, 1_000_160);
        assert_eq!(time, 160 << timinca::FRACTION);
        clock.read(&mut registers, 2_000_000_000);
        let high = u64::from(registers.get(SYSTIMH)) << 32;
        assert_eq!(high >> timinca::FRACTION, 1_999_000_000 >> 13 << 13);
    }

    #[test]
    fn a_timestamp_stays_until_it_is_read() {
        let (mut clock, mut registers) = (Clock::default(), Registers::default());
        clock.set_rate(&mut registers, timinca::NANOSECONDS, 0);
        registers.set(TSYNCRXCTL, tsyncrxctl::ENABLE);
        assert!(clock.timestamp_received(&mut registers, 16));
        assert!(!clock.timestamp_received(&mut registers, 32));
        assert_eq!(registers.get(RXSTMPL), 16 << timinca::FRACTION);
        Clock::release_received(&mut registers);
        assert!(clock.timestamp_received(&mut registers, 48));
    }
}
