// SPDX-License-Identifier: MIT OR Apache-2.0

//! How many tests passed only on a retry: each is required, and may not need one.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use quick_junit::{Report, TestCaseStatus};

/// The tests that passed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Retries {
    passed: usize,
    /// Those that failed before.
    retried: Vec<String>,
}

impl Retries {
    /// Reads nextest's JUnit XML.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub(super) fn read(junit: &Path) -> Result<Self> {
        Self::parse(&fs::read_to_string(junit)?)
            .with_context(|| format!("{} is not understood", junit.display()))
    }

    fn parse(junit: &str) -> Result<Self> {
        let report = Report::deserialize_from_str(junit)?;
        let mut retries = Self::default();
        for suite in report.test_suites {
            for case in suite.test_cases {
                let TestCaseStatus::Success { flaky_runs } = case.status else {
                    continue;
                };
                retries.passed += 1;
                if !flaky_runs.is_empty() {
                    retries
                        .retried
                        .push(format!("{} {}", &*suite.name, &*case.name));
                }
            }
        }
        Ok(retries)
    }

    /// # Errors
    ///
    /// When a test passed only on a retry.
    pub(super) fn check(&self) -> Result<()> {
        match self.retried.is_empty() {
            true => Ok(()),
            false => bail!("tests needed a retry: {}", self.retried.join(", ")),
        }
    }
}

impl Display for Retries {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { passed, retried } = self;
        write!(
            f,
            "{} of {passed} tests passed only on a retry",
            retried.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nextest writes it.
    fn junit(cases: &str) -> String {
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nobounce" tests="3" failures="1" errors="0" time="3.1">
    <testsuite name="kselftest::required" tests="3" disabled="0" errors="0" failures="1">
        <testcase name="a" classname="kselftest::required" time="1.0"/>
        <testcase name="b" classname="kselftest::required" time="1.0">
            <failure message="no" type="test failure with exit code 101">no</failure>
        </testcase>
        {cases}
    </testsuite>
</testsuites>"#
        )
    }

    #[test]
    fn tests_that_passed_only_on_a_retry_are_counted_named_and_fail_the_run() {
        let flaky = r#"<testcase name="c" classname="kselftest::required" time="1.0">
            <flakyFailure message="late" type="test failure with exit code 101">late</flakyFailure>
        </testcase>"#;
        let retries = Retries::parse(&junit(flaky)).unwrap();
        assert_eq!(retries.to_string(), "1 of 2 tests passed only on a retry");
        let error = retries.check().unwrap_err().to_string();
        assert!(error.contains("kselftest::required c"), "{error}");
    }

    #[test]
    fn a_run_without_retries_is_no_failure() {
        let retries = Retries::parse(&junit("")).unwrap();
        assert_eq!(retries.to_string(), "0 of 1 tests passed only on a retry");
        retries.check().unwrap();
    }
}
