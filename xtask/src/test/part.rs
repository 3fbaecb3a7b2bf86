// SPDX-License-Identifier: MIT OR Apache-2.0

//! The part of the debug kernel's cases that a change must pass: when it is skipped, and how that is
//! reported.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};
use quick_junit::{Report, TestCase, TestCaseStatus, TestSuite};
use serde::Deserialize;

use crate::cmd::Cmd;
use crate::project::Project;
use crate::tools;

/// The nextest profile of `.config/nextest.toml` that says which cases these are.
pub(super) const PROFILE: &str = "debug-part";

/// nextest's words for all cases, also those that want the debug kernel and are ignored elsewhere.
pub(super) const CASES: [&str; 4] = ["-p", "cases", "--run-ignored", "all"];

/// What building the debug kernel and running the part may take where other things run, too.
const MINUTES: i64 = 45;

/// Why the part is skipped, if it is, with so many minutes left.
pub(super) fn skipped(kernel_is_ready: bool, minutes_left: i64) -> Option<String> {
    (!kernel_is_ready && minutes_left < MINUTES).then(|| {
        format!(
            "the debug kernel is not in the cache, and building it and running them may take \
             {MINUTES} minutes, of which {} are left",
            minutes_left.max(0)
        )
    })
}

/// What `cargo nextest list` prints.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    rust_suites: BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
struct Suite {
    testcases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Case {
    filter_match: Match,
}

#[derive(Deserialize)]
struct Match {
    status: String,
}

/// Writes JUnit XML that has each case of the part as skipped.
///
/// # Errors
///
/// When they don't compile, or the file can't be written.
pub(super) fn report_skipped(project: &Project, junit: &Path, reason: &str) -> Result<()> {
    let list = project
        .built_here(Cmd::new(tools::nextest(project)?))
        .args(["nextest", "list", "--message-format", "json", "--profile"])
        .arg(PROFILE)
        .args(CASES)
        .output()?;
    let report = report(&list, reason)?;
    if let Some(folder) = junit.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = File::create(junit).with_context(|| format!("can't write {}", junit.display()))?;
    Ok(report.serialize(file)?)
}

/// As nextest names suites and cases.
fn report(list: &str, reason: &str) -> Result<Report> {
    let list: List = serde_json::from_str(list).context("cargo nextest list printed no list")?;
    let mut report = Report::new("nobounce");
    for (name, suite) in list.rust_suites {
        let cases = suite
            .testcases
            .into_iter()
            .filter(|(_, case)| case.filter_match.status == "matches");
        let mut skipped = TestSuite::new(&name);
        for (case, _) in cases {
            let mut status = TestCaseStatus::skipped();
            status.set_message(reason);
            let mut case = TestCase::new(case, status);
            case.set_classname(&name);
            skipped.add_test_case(case);
        }
        if !skipped.test_cases.is_empty() {
            report.add_test_suite(skipped);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_skipped_only_without_kernel_and_time() {
        assert_eq!(skipped(true, 90), None);
        assert_eq!(skipped(true, 0), None);
        assert_eq!(skipped(false, MINUTES), None);
        let late = skipped(false, MINUTES - 1).unwrap();
        assert!(late.contains("44 are left"), "{late}");
        let over = skipped(false, -3).unwrap();
        assert!(over.contains("0 are left"), "{over}");
    }

    #[test]
    fn each_case_of_the_part_is_reported_as_skipped_with_the_reason() {
        let list = r#"{"rust-suites": {
            "cases::faults": {"testcases": {
                "in": {"ignored": true, "filter-match": {"status": "matches"}},
                "out": {"ignored": false, "filter-match": {"status": "mismatch", "reason": "x"}}}},
            "cases::rss": {"testcases": {
                "out": {"ignored": false, "filter-match": {"status": "mismatch", "reason": "x"}}}}}}"#;
        let report = report(list, "no time").unwrap();
        assert_eq!((report.tests, report.test_suites.len()), (1, 1));
        let text = report.to_string().unwrap();
        for part in [
            r#"<testsuite name="cases::faults" tests="1" skipped="1""#,
            r#"<testcase name="in" classname="cases::faults""#,
            r#"<skipped message="no time"/>"#,
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
}
