// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A clock that counts nanoseconds, derived from the device's system time.
//!
//! The system time has 64 bits, 19 of them below a nanosecond: it wraps after 9.7 hours, and runs at
//! the rate of the device's crystal. The clock is kept in software: its time at a reference moment,
//! and its rate relative to the device's.
//!
//! The device could adjust its own rate (TIMINCA), in steps of 119 parts per billion. This is finer,
//! and the time in QEMU's model jumps whenever TIMINCA is written.

use crate::regs::timinca::FRACTION;

/// Bits of the system time that are whole nanoseconds.
const BITS: u32 = u64::BITS - FRACTION;

/// The largest rate adjustment, in parts per billion: half of the device's rate.
pub const MAX_ADJUSTMENT: i32 = 500_000_000;

/// Parts per million in one.
const MILLION: i64 = 1_000_000;

/// A clock.
///
/// It converts system times up to 4.8 hours before or after the last [`advance`](Self::advance),
/// which must be called more often than that.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The system time at the reference moment, in nanoseconds.
    device: u64,
    /// The clock's time at the reference moment, in nanoseconds.
    time: u64,
    /// The rate adjustment relative to the device, in 2^-32; at most 2^31.
    rate: i64,
}

/// The whole nanoseconds of a system time.
const fn nanoseconds(system: u64) -> u64 {
    system >> FRACTION
}

impl Clock {
    /// A clock that shows `time` nanoseconds when the system time is `system`, and runs at the
    /// device's rate.
    pub const fn new(system: u64, time: u64) -> Self {
        Self {
            device: nanoseconds(system),
            time,
            rate: 0,
        }
    }

    /// The clock's time when the system time is, or was, `system`, in nanoseconds.
    pub const fn at(&self, system: u64) -> u64 {
        // Sign-extends: the system time may be before the reference moment.
        let unused = u64::BITS - BITS;
        let elapsed = nanoseconds(system).wrapping_sub(self.device) << unused;

        self.after(elapsed as i64 >> unused)
    }

    /// The clock's time when the device has counted `elapsed` nanoseconds, at most 2^44, since the
    /// reference moment.
    const fn after(&self, elapsed: i64) -> u64 {
        // The product has up to 75 bits: it is computed in two parts, dropping fractions.
        let (high, low) = (elapsed >> 16, elapsed & 0xffff);
        let faster = (high * self.rate + ((low * self.rate) >> 16)) >> 16;

        self.time.wrapping_add_signed(elapsed.wrapping_add(faster))
    }

    /// Moves the reference moment to when the system time is `system`.
    pub const fn advance(&mut self, system: u64) {
        self.time = self.at(system);
        self.device = nanoseconds(system);
    }

    /// Continues after a reset of the device: the system time has restarted, and is `system`,
    /// `elapsed` nanoseconds after the reference moment.
    pub const fn restart(&mut self, system: u64, elapsed: u64) {
        const LONGEST: u64 = 1 << (BITS - 1);

        // CAST: Limited to what `after` accepts.
        self.time = self.after(if elapsed < LONGEST { elapsed } else { LONGEST } as i64);
        self.device = nanoseconds(system);
    }

    /// Sets the clock when the system time is `system`. Its rate is unchanged.
    pub const fn set(&mut self, system: u64, time: u64) {
        self.time = time;
        self.device = nanoseconds(system);
    }

    /// Shifts the clock by `nanoseconds`.
    pub const fn shift(&mut self, nanoseconds: i64) {
        self.time = self.time.wrapping_add_signed(nanoseconds);
    }

    /// From system time `system` on, runs faster than the device by `scaled_ppm` parts per million,
    /// with a fraction of 16 bits; slower if negative. Limited to [`MAX_ADJUSTMENT`].
    pub const fn set_rate(&mut self, system: u64, scaled_ppm: i64) {
        // Parts per billion are thousandths of parts per million.
        let max = (MAX_ADJUSTMENT as i64 / 1000) << 16;
        let scaled_ppm = if scaled_ppm > max {
            max
        } else if scaled_ppm < -max {
            -max
        } else {
            scaled_ppm
        };

        self.advance(system);
        // From 2^-16 to 2^-32.
        self.rate = (scaled_ppm << 16) / MILLION;
    }
}
