// SPDX-License-Identifier: MIT OR Apache-2.0

//! By how much counters grew.

use std::time::Duration;

use super::state::{Counters, Shown};

impl Shown {
    /// Adds to each interface by how much its statistics grew since `before`.
    pub(super) fn add_rates(&mut self, before: &Self, elapsed: Duration) {
        for state in &mut self.interfaces {
            let old = before
                .interfaces
                .iter()
                .find(|old| old.index == state.index);
            let old = old.and_then(|old| old.statistics.known());
            state.rates = old
                .zip(state.statistics.known())
                .map(|(old, new)| rates(old, new, elapsed));
        }
    }
}

/// By how much counters of queues grew in a second. A queue or counter that is new has none; one that
/// started anew did not grow.
fn rates(old: &[Counters<u64>], new: &[Counters<u64>], elapsed: Duration) -> Vec<Counters<f64>> {
    let rate = |then: u64, now: u64| now.saturating_sub(then) as f64 / elapsed.as_secs_f64();
    new.iter()
        .filter_map(|new| {
            let old = old
                .iter()
                .find(|old| (old.kind, old.id) == (new.kind, new.id))?;
            let counters = new.counters.iter().filter_map(|(name, &now)| {
                let &then = old.counters.get(name)?;
                Some((name.clone(), rate(then, now)))
            });
            Some(Counters {
                kind: new.kind,
                id: new.id,
                counters: counters.collect(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::state::Kind;
    use super::*;

    fn of<T: Copy>(id: u32, counters: &[(&str, T)]) -> Counters<T> {
        let counters = counters
            .iter()
            .map(|&(name, count)| (name.to_owned(), count));
        Counters {
            kind: Kind::Rx,
            id,
            counters: counters.collect(),
        }
    }

    #[test]
    fn a_rate_is_growth_in_a_second() {
        let old = [of(0, &[("rx-packets", 10), ("rx-bytes", 500)])];
        let new = [
            of(
                0,
                &[("rx-packets", 30), ("rx-bytes", 400), ("rx-hw-drops", 1)],
            ),
            of(1, &[("rx-packets", 7)]),
        ];
        assert_eq!(
            rates(&old, &new, Duration::from_millis(500)),
            [of(0, &[("rx-packets", 40.0), ("rx-bytes", 0.0)])],
            "queue 1 and its drops are new; the bytes started anew"
        );
    }
}
