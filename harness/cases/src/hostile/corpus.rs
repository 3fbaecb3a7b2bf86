// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans that are worth to be carried out again.

use model::nic::Kind;
use serde_json::Value;

const CORPUS: &str = include_str!("../../corpus/plans.txt");

/// Seeds of plans that once did harm, or that the driver did not come through by itself: those of
/// `harness/cases/corpus/plans.txt`.
///
/// # Panics
///
/// If the committed file is wrong, which a test would show.
#[must_use]
pub fn corpus() -> Vec<u64> {
    entries().map(|(seed, _)| seed).collect()
}

/// Seeds, each with a kind of lie that its plan has.
fn entries() -> impl Iterator<Item = (u64, Kind)> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).expect("a line has a seed, a kind of lie and a reason"))
}

fn parse(line: &str) -> Option<(u64, Kind)> {
    let mut words = line.split_whitespace();
    let seed = words.next()?.parse().ok()?;
    let kind = serde_json::from_value(Value::from(words.next()?)).ok()?;
    words.next()?;
    Some((seed, kind))
}

#[cfg(test)]
mod tests {
    use model::nic::Plan;

    use super::*;

    #[test]
    fn seeds_of_the_corpus_make_the_plans_that_they_made() {
        for (seed, kind) in entries() {
            let plan = Plan::from_seed(seed);
            let has = plan.lies.iter().any(|lie| lie.kind == kind);
            assert!(has, "the plan of {seed} has changed: {plan:?}");
        }
    }
}
