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

/// What that file says of a plan, with the reason why it is there.
#[must_use]
pub fn corpus_line(device: Device, seed: u64, why: &str) -> String {
    let lies = device.plan(seed).lies;
    let kinds: Vec<_> = lies.iter().map(|lie| lie.kind.to_string()).collect();
    let why: Vec<_> = why.split_whitespace().collect();
    format!("{device} {seed} {} {}", kinds.join(","), why.join(" "))
}

/// The plans, each with the kinds of its lies.
fn entries() -> impl Iterator<Item = (Device, u64, Vec<Kind>)> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).expect("a line has a device, a seed, kinds of lies and a reason"))
}

fn parse(line: &str) -> Option<(Device, u64, Vec<Kind>)> {
    let mut words = line.split_whitespace();
    let device = named(words.next()?)?;
    let seed = words.next()?.parse().ok()?;
    let kinds = words.next()?.split(',').map(named).collect::<Option<_>>()?;
    words.next()?;
    Some((device, seed, kinds))
}

fn named<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(Value::from(word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_the_corpus_make_the_plans_that_they_made() {
        for (device, seed, kinds) in entries() {
            let lies = device.plan(seed).lies;
            let made: Vec<_> = lies.iter().map(|lie| lie.kind).collect();
            assert_eq!(made, kinds, "the plan of {device} {seed} has changed");
        }
    }

    #[test]
    fn a_plan_is_read_as_it_is_written() {
        for device in [Device::Nic, Device::Engine] {
            for seed in 0..100 {
                let line = corpus_line(device, seed, "the guest\n  did not answer");
                let kinds = device.plan(seed).lies.iter().map(|lie| lie.kind).collect();
                assert_eq!(parse(&line), Some((device, seed, kinds)), "{line}");
                assert!(line.ends_with(" the guest did not answer"), "{line}");
            }
        }
    }
}
