// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans that are worth to be carried out again.

use model::lies::Kind;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::victim::Device;

const CORPUS: &str = include_str!("../../corpus/plans.txt");

/// Seeds of a device's plans that once did harm, or that its driver did not come through by itself: those
/// of `harness/cases/corpus/plans.txt`.
///
/// # Panics
///
/// If the committed file is wrong, which a test would show.
#[must_use]
pub fn corpus(device: Device) -> Vec<u64> {
    let of_it = entries().filter(|(whose, ..)| *whose == device);
    of_it.map(|(_, seed, _)| seed).collect()
}

/// The plans, each with a kind of lie that it has.
fn entries() -> impl Iterator<Item = (Device, u64, Kind)> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).expect("a line has a device, a seed, a kind of lie and a reason"))
}

fn parse(line: &str) -> Option<(Device, u64, Kind)> {
    let mut words = line.split_whitespace();
    let device = named(words.next()?)?;
    let seed = words.next()?.parse().ok()?;
    let kind = named(words.next()?)?;
    words.next()?;
    Some((device, seed, kind))
}

fn named<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(Value::from(word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_the_corpus_make_the_plans_that_they_made() {
        for (device, seed, kind) in entries() {
            let plan = device.plan(seed);
            let has = plan.lies.iter().any(|lie| lie.kind == kind);
            assert!(has, "the plan of {device} {seed} has changed: {plan:?}");
        }
    }
}
