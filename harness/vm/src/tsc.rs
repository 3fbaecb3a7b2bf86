// SPDX-License-Identifier: MIT OR Apache-2.0

//! The rate of the time-stamp counter that an emulated guest reads.
//!
//! It is the host's, and the guest's kernel would find out its rate by comparing it with a timer that
//! QEMU emulates. On a busy host that goes wrong: clocks were seen that ran at 2.6 times their rate,
//! with which every timeout in the guest comes too early.

use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::time::Instant;

/// The host's counter in kHz, if it has one whose rate is known.
pub(crate) fn khz() -> Option<u64> {
    static KHZ: OnceLock<Option<u64>> = OnceLock::new();
    *KHZ.get_or_init(measure)
}

/// The kernel parameter for it.
pub(crate) fn parameter(khz: u64) -> String {
    format!("tsc_early_khz={khz}")
}

#[cfg(not(target_arch = "x86_64"))]
fn measure() -> Option<u64> {
    None
}

#[cfg(target_arch = "x86_64")]
fn measure() -> Option<u64> {
    use std::{thread, time::Duration};

    /// How long it is watched, and how often: a busy host spoils a window now and then.
    const WINDOW: Duration = Duration::from_millis(10);
    const WINDOWS: usize = 60;
    /// How many in a row have to agree.
    const ENOUGH: usize = 3;

    let mut rates = Vec::new();
    let mut start = Moment::now();
    for _ in 0..WINDOWS {
        thread::sleep(WINDOW);
        let end = Moment::now();
        rates.push(start.khz_until(&end)?);
        start = end;
        let latest = rates.len().checked_sub(ENOUGH).map(|old| &rates[old..]);
        if let Some(khz) = latest.and_then(agreed) {
            return Some(khz);
        }
    }
    None
}

/// The counter and the clock at the same time.
#[cfg(target_arch = "x86_64")]
struct Moment {
    ticks: u64,
    clock: Instant,
}

#[cfg(target_arch = "x86_64")]
impl Moment {
    /// The closest of some pairs: between the two readings, this thread may have to wait.
    fn now() -> Self {
        // SAFETY: Every processor that runs this has the instruction.
        let ticks = || unsafe { core::arch::x86_64::_rdtsc() };
        let read = || {
            let before = ticks();
            let clock = Instant::now();
            let apart = ticks().saturating_sub(before);
            let ticks = before + apart / 2;
            (apart, Self { ticks, clock })
        };
        let mut closest = read();
        for _ in 0..16 {
            let next = read();
            if next.0 < closest.0 {
                closest = next;
            }
        }
        closest.1
    }

    fn khz_until(&self, end: &Self) -> Option<u64> {
        let nanoseconds = end.clock.duration_since(self.clock).as_nanos();
        let ticks = end.ticks.checked_sub(self.ticks)?;
        u64::try_from(u128::from(ticks) * 1_000_000 / nanoseconds.max(1)).ok()
    }
}

/// The median, if no rate is more than a thousandth away from it: else the counter doesn't run
/// evenly, and the guest's kernel has to see for itself.
#[cfg(any(target_arch = "x86_64", test))]
fn agreed(rates: &[u64]) -> Option<u64> {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable();
    let median = *sorted.get(sorted.len() / 2)?;
    let near = |rate: &u64| rate.abs_diff(median) <= median / 1000;
    (median > 0 && sorted.iter().all(near)).then_some(median)
}

#[cfg(test)]
mod tests {
    use super::agreed;

    #[test]
    fn rates_that_differ_are_not_believed() {
        assert_eq!(agreed(&[2_000_100, 2_000_000, 1_999_900]), Some(2_000_000));
        assert_eq!(agreed(&[2_000_000, 2_000_000, 5_200_000]), None);
        assert_eq!(agreed(&[0, 0, 0]), None);
        assert_eq!(agreed(&[]), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_hosts_counter_has_a_plausible_rate_that_does_not_change() {
        let khz = super::khz().expect("it doesn't run evenly");
        assert!((100_000..20_000_000).contains(&khz), "{khz}");
        assert_eq!(super::khz(), Some(khz));
    }
}
