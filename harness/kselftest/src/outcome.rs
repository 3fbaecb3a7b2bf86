// SPDX-License-Identifier: MIT OR Apache-2.0

//! Results: files of them, and what is expected.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, Verdict, named, place};

/// A sub-case, of one driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The test, without `.py`.
    pub test: String,
    /// The sub-case, as the test calls it.
    pub case: String,
    /// What came of it.
    pub result: Verdict,
    /// Why it did not pass, in the test's own words.
    pub reason: String,
    /// `rigb` or `igb`.
    pub driver: String,
}

/// Reads results.
///
/// # Errors
///
/// [`Error::Unreadable`], [`Error::Invalid`].
pub fn read(path: &Path) -> Result<Vec<Outcome>> {
    let text = fs::read_to_string(path).map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|source| Error::Invalid {
        path: path.to_owned(),
        source,
    })
}

/// Writes results, one to a line, so that changes can be read.
///
/// # Errors
///
/// [`Error::Unwritable`].
pub fn write(path: &Path, outcomes: &[Outcome]) -> Result<()> {
    let lines: serde_json::Result<Vec<String>> =
        outcomes.iter().map(serde_json::to_string).collect();
    let lines = lines.map_err(|source| Error::Invalid {
        path: path.to_owned(),
        source,
    })?;
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    fs::write(path, text).map_err(|source| Error::Unwritable {
        path: path.to_owned(),
        source,
    })
}

/// `old`, with what `new` has of a test and a driver in the place of what it had; in the order of
/// the list.
pub fn replace(old: Vec<Outcome>, new: &[Outcome]) -> Vec<Outcome> {
    let same = |a: &Outcome, b: &Outcome| (&a.test, &a.driver) == (&b.test, &b.driver);
    let mut all = old;
    all.retain(|old| !new.iter().any(|new| same(old, new)));
    all.extend_from_slice(new);
    all.sort_by_key(|outcome| (place(&outcome.test), outcome.driver != "rigb"));
    all
}

/// Fails when something that passed, of the required tests and the driver that ran, did not pass now.
/// Of the others some depend on how fast the machine is.
///
/// # Errors
///
/// [`Error::Lost`] names every such sub-case.
pub fn compare(old: &[Outcome], new: &[Outcome]) -> Result<()> {
    let ran = |old: &&Outcome| {
        old.result == Verdict::Pass
            && named(&old.test).is_ok_and(|test| test.required)
            && new
                .iter()
                .any(|new| (&new.test, &new.driver) == (&old.test, &old.driver))
    };
    let mut lost = Vec::new();
    for old in old.iter().filter(ran) {
        let same = |new: &&Outcome| {
            (&new.test, &new.case, &new.driver) == (&old.test, &old.case, &old.driver)
        };
        match new.iter().find(same) {
            Some(now) if now.result == Verdict::Pass => {}
            Some(now) => lost.push(format!(
                "{}.{}: {:?}, {}",
                old.test, old.case, now.result, now.reason
            )),
            None => lost.push(format!("{}.{}: it did not run", old.test, old.case)),
        }
    }
    match lost.is_empty() {
        true => Ok(()),
        false => Err(Error::Lost(lost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(test: &str, case: &str, result: Verdict, driver: &str) -> Outcome {
        Outcome {
            test: test.to_owned(),
            case: case.to_owned(),
            result,
            reason: String::new(),
            driver: driver.to_owned(),
        }
    }

    #[test]
    fn what_passed_and_does_not_any_more_is_named() {
        let old = [
            outcome("ping", "v4", Verdict::Pass, "rigb"),
            outcome("ping", "v6", Verdict::Pass, "rigb"),
            outcome("ping", "xdp", Verdict::Fail, "rigb"),
            outcome("irq", "one", Verdict::Pass, "rigb"),
            outcome("so_txtime", "late", Verdict::Pass, "rigb"),
        ];
        let mut new = vec![
            outcome("ping", "v4", Verdict::Pass, "rigb"),
            outcome("ping", "v6", Verdict::Pass, "rigb"),
            outcome("so_txtime", "late", Verdict::Fail, "rigb"),
        ];
        compare(&old, &new).unwrap();
        new[0].result = Verdict::Skip;
        new.remove(1);
        let error = compare(&old, &new).unwrap_err().to_string();
        assert!(
            error.contains("ping.v4") && error.contains("ping.v6"),
            "{error}"
        );
        assert!(!error.contains("irq"), "what did not run can't be judged");
        assert!(!error.contains("so_txtime"), "it is not required");
    }

    #[test]
    fn results_of_a_test_and_a_driver_are_replaced_as_a_whole() {
        let old = vec![
            outcome("queues", "a", Verdict::Pass, "rigb"),
            outcome("ping", "gone", Verdict::Pass, "rigb"),
            outcome("ping", "v4", Verdict::Pass, "igb"),
        ];
        let new = [outcome("ping", "v4", Verdict::Fail, "rigb")];
        let names: Vec<_> = replace(old, &new)
            .into_iter()
            .map(|o| format!("{} {} {}", o.test, o.case, o.driver))
            .collect();
        assert_eq!(names, ["ping v4 rigb", "ping v4 igb", "queues a rigb"]);
    }
}
