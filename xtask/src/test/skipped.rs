// SPDX-License-Identifier: MIT OR Apache-2.0

//! Cases that say themselves that they are skipped, which nextest takes for passed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err::{self as fs, File};
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};

use crate::cmd::Cmd;
use crate::ui;

/// The file that cases write.
pub(super) struct Skipped(PathBuf);

/// How many cases of a run did what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Counts {
    /// How many ran.
    pub(super) fn ran(&self) -> usize {
        self.passed + self.failed
    }
}

impl Skipped {
    /// Has cases that `command` runs write such a file into a folder.
    ///
    /// # Errors
    ///
    /// When that of another run can't be removed.
    pub(super) fn of(command: Cmd, folder: &Path) -> Result<(Self, Cmd)> {
        let path = folder.join("skipped");
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let command = command.env(cases::SKIPPED_ENV, &path);
        Ok((Self(path), command))
    }

    /// Says what was skipped and why, also in nextest's JUnit XML.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written.
    pub(super) fn report(&self, junit: &Path) -> Result<Counts> {
        let text = match self.0.exists() {
            true => fs::read_to_string(&self.0)?,
            false => String::new(),
        };
        let skipped = parse(&text);
        let read = fs::read_to_string(junit)?;
        let mut report = Report::deserialize_from_str(&read)?;
        let counts = mark(&mut report, &skipped);
        report.serialize(File::create(junit)?)?;

        let mut reasons = BTreeMap::<&str, usize>::new();
        for reason in skipped.values() {
            *reasons.entry(reason).or_default() += 1;
        }
        for (reason, count) in reasons {
            ui::note(&format!("skipped in {}: {reason}", cases(count)));
        }
        if !skipped.is_empty() {
            ui::note(&format!("the skipped cases: {}", self.0.display()));
        }
        ui::note(&format!("JUnit XML: {}", junit.display()));
        Ok(counts)
    }
}

/// So many cases.
pub(super) fn cases(count: usize) -> String {
    match count {
        1 => "1 case".to_owned(),
        _ => format!("{count} cases"),
    }
}

/// The skipped cases, as nextest names suite and case, with the reasons.
fn parse(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .collect()
}

/// Marks the skipped cases of a report, and counts all.
fn mark(report: &mut Report, skipped: &BTreeMap<&str, &str>) -> Counts {
    let mut counts = Counts::default();
    for suite in &mut report.test_suites {
        let before = counts.skipped;
        for case in &mut suite.test_cases {
            let name = format!("{} {}", &*suite.name, &*case.name);
            let failed = matches!(
                case.status,
                TestCaseStatus::NonSuccess {
                    kind: NonSuccessKind::Failure | NonSuccessKind::Error,
                    ..
                }
            );
            match skipped.get(name.as_str()) {
                Some(reason) => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(*reason);
                    case.status = status;
                    counts.skipped += 1;
                }
                None if failed => counts.failed += 1,
                None => counts.passed += 1,
            }
        }
        suite.skipped += counts.skipped - before;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_marked_with_the_reason_and_not_counted_as_passed() {
        let junit = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nobounce" tests="3" failures="1" errors="0" time="3.1">
    <testsuite name="cases::mtu" tests="3" disabled="0" errors="0" failures="1">
        <testcase name="a" classname="cases::mtu" time="1.0"/>
        <testcase name="b" classname="cases::mtu" time="1.0"/>
        <testcase name="c" classname="cases::mtu" time="1.0"><failure message="no"/></testcase>
    </testsuite>
</testsuites>"#;
        let skipped = parse("cases::mtu b\tigb lacks HeaderSplit\ncut off");
        let mut report = Report::deserialize_from_str(junit).unwrap();
        let counts = mark(&mut report, &skipped);
        let expected = Counts {
            passed: 1,
            failed: 1,
            skipped: 1,
        };
        assert_eq!(counts, expected);
        let text = report.to_string().unwrap();
        assert!(
            text.contains(r#"<skipped message="igb lacks HeaderSplit"/>"#),
            "{text}"
        );
        assert_eq!(text.matches("<skipped").count(), 1, "{text}");
    }
}
