// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests that a run leaves out, which JUnit XML has as skipped.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;
use quick_junit::{Report, TestCase, TestCaseStatus, TestSuite};
use serde::Deserialize;

use crate::cmd::Cmd;
use crate::ui;

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

/// Writes JUnit XML that has each test as skipped which `list` prints, a `cargo nextest list`.
///
/// # Errors
///
/// When they don't compile, or the file can't be written.
pub(super) fn report(list: Cmd, junit: &Path, reason: &str) -> Result<()> {
    let list = list.args(["--message-format", "json"]).output()?;
    let report = skipped(&list, reason)?;
    if let Some(folder) = junit.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = fs::File::create(junit)?;
    report.serialize(file)?;
    ui::note(&format!("JUnit XML: {}", junit.display()));
    Ok(())
}

/// As nextest names suites and cases.
fn skipped(list: &str, reason: &str) -> Result<Report> {
    let list: List = serde_json::from_str(list).context("cargo nextest list printed no list")?;
    let mut report = Report::new("nobounce");
    for (name, suite) in list.rust_suites {
        let cases = suite
            .testcases
            .into_iter()
            .filter(|(_, case)| case.filter_match.status == "matches");
        let mut left_out = TestSuite::new(&name);
        for (case, _) in cases {
            let mut status = TestCaseStatus::skipped();
            status.set_message(reason);
            let mut case = TestCase::new(case, status);
            case.set_classname(&name);
            left_out.add_test_case(case);
        }
        if !left_out.test_cases.is_empty() {
            report.add_test_suite(left_out);
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_reported_as_skipped_with_the_reason() {
        let list = r#"{"rust-suites": {
            "cases::faults": {"testcases": {
                "in": {"ignored": true, "filter-match": {"status": "matches"}},
                "out": {"ignored": false, "filter-match": {"status": "mismatch", "reason": "x"}}}},
            "cases::rss": {"testcases": {
                "out": {"ignored": false, "filter-match": {"status": "mismatch", "reason": "x"}}}}}}"#;
        let report = skipped(list, "no time").unwrap();
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
