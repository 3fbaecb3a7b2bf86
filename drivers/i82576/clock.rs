// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A clock that counts nanoseconds, made of the device's system time.
//!
//! The system time is 64 bits, of which 19 are below a nanosecond: it wraps after 9.7 hours, and
//! goes as fast as the device's crystal. What a user sets is kept beside it: where the clock stood
//! at one moment, and how much faster than the device it goes.
//!
//! The device could go faster itself (TIMINCA), in steps of 119 parts per billion. This is finer, and
//! QEMU's model jumps whenever TIMINCA is written.

use crate::regs::timinca::FRACTION;

/// Bits of the system time that are whole nanoseconds.
const BITS: u32 = u64::BITS - FRACTION;

/// The clock may differ from the device's by half of it, in parts per billion.
pub const MAX_ADJUSTMENT: i32 = 500_000_000;

/// Parts per million that are the whole.
const MILLION: i64 = 1_000_000;

/// A clock.
///
/// A system time is told from what it was up to 4.8 hours before or after the last
/// [`advance`](Self::advance), which must come more often than that.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The system time of the moment, in nanoseconds.
    device: u64,
    /// The clock's time of the moment, in nanoseconds.
    time: u64,
    /// How much faster than the device it goes, in 2^-32; at most 2^31.
    rate: i64,
}

/// The whole nanoseconds of a system time.
const fn nanoseconds(system: u64) -> u64 {
    system >> FRACTION
}

impl Clock {
    /// A clock that stands at `time` nanoseconds when the system time is `system`, and goes as fast
    /// as the device.
    pub const fn new(system: u64, time: u64) -> Self {
        Self {
            device: nanoseconds(system),
            time,
            rate: 0,
        }
    }

    /// The clock's time when the system time is, or was, `system`, in nanoseconds.
    pub const fn at(&self, system: u64) -> u64 {
        // The sign tells before from after.
        let unused = u64::BITS - BITS;
        let elapsed = nanoseconds(system).wrapping_sub(self.device) << unused;

        self.after(elapsed as i64 >> unused)
    }

    /// The clock's time so many nanoseconds of the device after the moment, at most 2^44, in
    /// nanoseconds.
    const fn after(&self, elapsed: i64) -> u64 {
        // The product has up to 75 bits: it is made of two, and the bits below a nanosecond go.
        let (high, low) = (elapsed >> 16, elapsed & 0xffff);
        let faster = (high * self.rate + ((low * self.rate) >> 16)) >> 16;

        self.time.wrapping_add_signed(elapsed.wrapping_add(faster))
    }

    /// Counts from the moment at which the system time is `system`.
    pub const fn advance(&mut self, system: u64) {
        self.time = self.at(system);
        self.device = nanoseconds(system);
    }

    /// Goes on after a reset of the device: the system time has begun anew, and is `system`, so many
    /// nanoseconds after the moment that the clock counts from.
    pub const fn restart(&mut self, system: u64, elapsed: u64) {
        const LONGEST: u64 = 1 << (BITS - 1);

        // CAST: Cut to what `after` has room for.
        self.time = self.after(if elapsed < LONGEST { elapsed } else { LONGEST } as i64);
        self.device = nanoseconds(system);
    }

    /// Sets the clock when the system time is `system`. It goes on as fast as before.
    pub const fn set(&mut self, system: u64, time: u64) {
        self.time = time;
        self.device = nanoseconds(system);
    }

    /// Sets the clock forward, or back, by so many nanoseconds.
    pub const fn shift(&mut self, nanoseconds: i64) {
        self.time = self.time.wrapping_add_signed(nanoseconds);
    }

    /// From system time `system` on, goes faster than the device by so many parts per million, which
    /// have a fraction of 16 bits; slower if that is negative. What is beyond [`MAX_ADJUSTMENT`] is
    /// cut.
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
