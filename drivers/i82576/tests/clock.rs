// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The clock, against arithmetic that cannot overflow.

use i82576::clock::{Clock, MAX_ADJUSTMENT};
use proptest::prelude::*;

/// The system time after so many nanoseconds.
fn system(nanoseconds: u64) -> u64 {
    nanoseconds << 19
}

/// Parts per billion as the kernel gives them to a driver.
fn scaled_ppm(ppb: i64) -> i64 {
    (ppb << 16) / 1000
}

const HOUR: u64 = 3_600_000_000_000;

#[test]
fn a_clock_counts_nanoseconds() {
    let clock = Clock::new(system(5), 1_000_000);
    assert_eq!(clock.at(system(5)), 1_000_000);
    assert_eq!(clock.at(system(6) - 1), 1_000_000, "not a whole one");
    assert_eq!(clock.at(system(6)), 1_000_001);
    assert_eq!(clock.at(system(5 + HOUR)), 1_000_000 + HOUR);
}

#[test]
fn a_timestamp_may_be_older_than_what_the_clock_counts_from() {
    let mut clock = Clock::new(system(0), 1_000_000);
    clock.advance(system(500));
    assert_eq!(clock.at(system(100)), 1_000_100);
}

#[test]
fn a_clock_goes_on_when_the_system_time_wraps() {
    let last = u64::MAX >> 19;
    let clock = Clock::new(system(last - 10), 7);
    assert_eq!(clock.at(system(last)), 17);
    assert_eq!(clock.at(0), 18);
    assert_eq!(clock.at(system(HOUR)), 18 + HOUR);
}

#[test]
fn a_clock_that_is_set_or_shifted_goes_on_from_there() {
    let mut clock = Clock::new(0, 0);
    clock.set(system(100), 5_000);
    assert_eq!(clock.at(system(101)), 5_001);
    clock.shift(-1_000);
    assert_eq!(clock.at(system(101)), 4_001);
    clock.shift(2_000);
    assert_eq!(clock.at(system(101)), 6_001);
}

#[test]
fn a_clock_goes_on_when_the_system_time_begins_anew() {
    let mut clock = Clock::new(system(77), 1_000);
    clock.restart(system(3), 500);
    assert_eq!(clock.at(system(3)), 1_500);
    assert_eq!(clock.at(system(4)), 1_501);

    clock.set_rate(system(4), scaled_ppm(500_000_000));
    clock.restart(0, 2_000);
    assert_eq!(clock.at(0), 1_501 + 3_000, "at its own rate");
}

#[test]
fn a_rate_holds_from_when_it_is_set() {
    let mut clock = Clock::new(0, 0);
    clock.set_rate(system(1_000_000), scaled_ppm(1_000_000));
    assert_eq!(clock.at(system(1_000_000)), 1_000_000);
    // A thousandth more of the second million, less than a nanosecond of it lost.
    let time = clock.at(system(2_000_000));
    assert!((2_000_999..=2_001_000).contains(&time), "{time}");
    clock.set_rate(system(2_000_000), 0);
    assert_eq!(clock.at(system(3_000_000)), time + 1_000_000);
}

proptest! {
    #[test]
    fn a_clock_is_as_far_off_as_its_rate_says(
        start: u64,
        time in 0u64..1 << 62,
        elapsed in 0..4 * HOUR,
        ppb in -i64::from(MAX_ADJUSTMENT)..=i64::from(MAX_ADJUSTMENT),
    ) {
        let mut clock = Clock::new(start, time);
        clock.set_rate(start, scaled_ppm(ppb));
        let later = (start >> 19).wrapping_add(elapsed) << 19;

        let expected = i128::from(time)
            + i128::from(elapsed)
            + i128::from(elapsed) * i128::from(ppb) / 1_000_000_000;
        let off = i128::from(clock.at(later)) - expected;
        // A rate is a multiple of 2^-32, a quarter of a part per billion.
        let lost = i128::from(elapsed) / 4_000_000_000 + 2;
        prop_assert!(off.abs() <= lost, "off by {off} ns, not {lost}");
    }

    #[test]
    fn a_clock_never_goes_back(
        start in 0u64..1 << 40,
        ppb in -i64::from(MAX_ADJUSTMENT)..=i64::from(MAX_ADJUSTMENT),
        steps in proptest::collection::vec(0u64..10_000_000_000, 1..50),
    ) {
        let mut clock = Clock::new(system(start), start);
        let mut now = start;
        let mut last = start;
        clock.set_rate(system(start), scaled_ppm(ppb));
        for step in steps {
            now += step;
            let time = clock.at(system(now));
            prop_assert!(time >= last, "{time} after {last}");
            last = time;
            clock.advance(system(now));
            prop_assert_eq!(clock.at(system(now)), last);
        }
    }

    #[test]
    fn a_rate_beyond_the_bounds_is_cut(beyond in 1i64..i64::MAX / 2) {
        let max = scaled_ppm(MAX_ADJUSTMENT.into());
        for (rate, bound) in [(max.saturating_add(beyond), max), (-max.saturating_add(beyond), -max)] {
            let (mut cut, mut exact) = (Clock::new(0, 0), Clock::new(0, 0));
            cut.set_rate(0, rate);
            exact.set_rate(0, bound);
            prop_assert_eq!(cut, exact);
        }
    }
}
