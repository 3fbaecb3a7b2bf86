// SPDX-License-Identifier: MIT OR Apache-2.0

//! Results: files of them, and what is expected.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, Verdict, named, place};

/// A sub-case, of one driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The test, without `.py` or `.sh`.
    pub test: String,
    /// The sub-case, as the test calls it.
    pub case: String,
    /// What came of it.
    pub result: Verdict,
    /// Why it did not pass, in the test's own words.
    pub reason: String,
    /// What [`cases::Driver::name`] says.
    pub driver: String,
}

impl Outcome {
    fn same_test(&self, other: &Self) -> bool {
        (&self.test, &self.driver) == (&other.test, &other.driver)
    }

    fn same_case(&self, other: &Self) -> bool {
        self.same_test(other) && self.case == other.case
    }
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
    let mut all = old;
    all.retain(|old| !new.iter().any(|new| new.same_test(old)));
    all.extend_from_slice(new);
    all.sort_by_key(|outcome| (place(&outcome.test), outcome.driver != "rigb"));
    all
}

/// Fails when something of a test that is required of its driver passed and did not pass now, or failed
/// now and did not fail then: what the kernel complained about is a sub-case that is there only when it
/// fails. Tests that did not run are not judged, nor those that are not required: of them some depend on
/// how fast the machine is.
///
/// # Errors
///
/// [`Error::Lost`] names every such sub-case.
pub fn compare(old: &[Outcome], new: &[Outcome]) -> Result<()> {
    let required = |outcome: &&Outcome| {
        named(&outcome.test).is_ok_and(|test| test.is_required(&outcome.case, &outcome.driver))
    };
    let mut lost = Vec::new();
    for now in new.iter().filter(required) {
        let then = old.iter().find(|then| then.same_case(now));
        let worse = match (then.map(|then| then.result), now.result) {
            (_, Verdict::Pass) | (Some(Verdict::Fail), _) => false,
            (Some(Verdict::Pass), _) | (_, Verdict::Fail) => true,
            _ => false,
        };
        if worse {
            let (test, case, result) = (&now.test, &now.case, now.result);
            lost.push(format!("{test}.{case}: {result:?}, {}", now.reason));
        }
    }
    let passed = |then: &&Outcome| then.result == Verdict::Pass;
    for then in old.iter().filter(required).filter(passed) {
        let ran = new.iter().any(|now| now.same_test(then));
        if ran && !new.iter().any(|now| now.same_case(then)) {
            lost.push(format!("{}.{}: it did not run", then.test, then.case));
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
    fn what_fails_and_did_not_fail_before_is_named() {
        let old = [
            outcome("ping", "v4", Verdict::Pass, "rigb"),
            outcome("ping", "xdp", Verdict::Fail, "rigb"),
            outcome("ping", "offload", Verdict::Skip, "rigb"),
        ];
        let mut new = old.to_vec();
        new.push(outcome("ping", "(kernel log)", Verdict::Fail, "rigb"));
        new.push(outcome("ping", "new", Verdict::Skip, "rigb"));
        new[2].result = Verdict::Fail;
        let error = compare(&old, &new).unwrap_err().to_string();
        assert!(error.contains("ping.(kernel log)"), "{error}");
        assert!(error.contains("ping.offload"), "{error}");
        assert!(!error.contains("ping.xdp"), "it failed before: {error}");
        assert!(!error.contains("ping.new"), "it was left out: {error}");
    }

    #[test]
    fn a_test_is_judged_with_the_drivers_that_have_to_pass_it() {
        for (test, driver, judged) in [
            ("devmem", "rigb-model", true),
            ("devmem", "rigb", false),
            ("csum", "igb-model", true),
            ("csum", "igb", false),
        ] {
            let old = [outcome(test, "one", Verdict::Pass, driver)];
            for (case, result) in [
                ("one", Verdict::Fail),
                ("(kernel log)", Verdict::Fail),
                ("(whole)", Verdict::Fail),
            ] {
                let new = [outcome(test, case, result, driver)];
                assert_eq!(
                    compare(&old, &new).is_err(),
                    judged,
                    "{test} {case} {driver}"
                );
            }
        }
        let slow = |result| {
            [outcome(
                "rss_ctx",
                "test_hitless_key_update",
                result,
                "rigb-model",
            )]
        };
        compare(&slow(Verdict::Pass), &slow(Verdict::Fail)).unwrap();
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
