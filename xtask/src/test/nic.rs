// SPDX-License-Identifier: MIT OR Apache-2.0

//! The cases on another NIC or driver than rigb: what it lacks is skipped, with the reason.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cases::Nic;
use quick_junit::{Report, TestCaseStatus};

use crate::cmd::Cmd;
use crate::guest;
use crate::project::Project;
use crate::ui;

/// nextest's words for the cases that any NIC may pass: not those about rigb, about the other driver
/// of the tree, and about the harness.
const CASES: [&str; 4] = [
    "-p",
    "cases",
    "-E",
    "kind(test) - binary(rigb) - binary(rwire) - binary(snapshots)",
];

/// The nextest profile of `.config/nextest.toml`.
pub(super) const PROFILE: &str = "nic";

/// Descriptions of NICs whose cases are part of `make test`.
pub(super) const COMMITTED: [&str; 4] = [
    "harness/nics/igb.toml",
    "harness/nics/e1000e.toml",
    "harness/nics/virtio-net.toml",
    "harness/nics/rwire.toml",
];

/// A NIC, and the guest that it is tested in.
pub(super) struct Prepared {
    file: PathBuf,
    nic: Nic,
    manifest: PathBuf,
    skipped: PathBuf,
}

/// Builds what a description names, and packs a guest's initramfs with it.
///
/// # Errors
///
/// When the description is wrong, a module is missing or can't be built, or the guest can't be
/// prepared.
pub(super) fn prepare(project: &Project, file: &Path) -> Result<Prepared> {
    let nic = Nic::read(file).map_err(crate::error)?;
    let out = project.out("nics").join(&nic.name);
    fs::create_dir_all(&out).with_context(|| format!("can't create {}", out.display()))?;
    let manifest = guest::prepare_nic(project, &nic, &out)?;
    Ok(Prepared {
        file: fs::canonicalize(file)?,
        nic,
        manifest,
        skipped: out.join("skipped"),
    })
}

impl Prepared {
    /// What reports call it.
    pub(super) fn name(&self) -> &str {
        &self.nic.name
    }

    /// Has `nextest` run the cases on the NIC, or those that `filters` choose.
    pub(super) fn command(&self, nextest: Cmd, filters: &[String]) -> Result<Cmd> {
        if self.skipped.exists() {
            fs::remove_file(&self.skipped)?;
        }
        Ok(nextest
            .args(CASES)
            .args(filters)
            .env(vm::ENV, &self.manifest)
            .env(cases::NIC_ENV, &self.file)
            .env(cases::SKIPPED_ENV, &self.skipped))
    }

    /// Says what was skipped and why, also in nextest's JUnit XML, for which it has passed.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written, or each case was skipped.
    pub(super) fn report(&self, junit: &Path) -> Result<()> {
        let text = match self.skipped.exists() {
            true => fs::read_to_string(&self.skipped)?,
            false => String::new(),
        };
        let skipped = parse(&text);
        let read =
            fs::read_to_string(junit).with_context(|| format!("can't read {}", junit.display()))?;
        let mut report = Report::deserialize_from_str(&read)?;
        let ran = mark(&mut report, &skipped);
        report.serialize(File::create(junit)?)?;

        let mut reasons = BTreeMap::<&str, usize>::new();
        for reason in skipped.values() {
            *reasons.entry(reason).or_default() += 1;
        }
        for (reason, count) in reasons {
            ui::note(&format!("{count} cases skipped: {reason}"));
        }
        ui::note(&format!(
            "{}: {ran} cases ran, {} were skipped ({})",
            self.nic.name,
            skipped.len(),
            self.skipped.display()
        ));
        if ran == 0 {
            bail!("no case ran on {}", self.nic.name);
        }
        Ok(())
    }
}

/// The skipped cases, as nextest names suite and case, with the reasons.
fn parse(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .collect()
}

/// Marks the skipped cases of a report; returns how many others there are.
fn mark(report: &mut Report, skipped: &BTreeMap<&str, &str>) -> usize {
    let mut ran = 0;
    for suite in &mut report.test_suites {
        let mut count = 0;
        for case in &mut suite.test_cases {
            let name = format!("{} {}", &*suite.name, &*case.name);
            let Some(reason) = skipped.get(name.as_str()) else {
                ran += 1;
                continue;
            };
            let mut status = TestCaseStatus::skipped();
            status.set_message(*reason);
            case.status = status;
            count += 1;
        }
        suite.skipped += count;
    }
    ran
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_marked_with_the_reason_and_not_counted_as_run() {
        let junit = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nobounce" tests="2" failures="0" errors="0" time="3.1">
    <testsuite name="cases::mtu" tests="2" disabled="0" errors="0" failures="0">
        <testcase name="a" classname="cases::mtu" time="1.0"/>
        <testcase name="b" classname="cases::mtu" time="1.0"/>
    </testsuite>
</testsuites>"#;
        let skipped = parse("cases::mtu b\tigb lacks HeaderSplit\ncut off");
        let mut report = Report::deserialize_from_str(junit).unwrap();
        assert_eq!(mark(&mut report, &skipped), 1);
        let text = report.to_string().unwrap();
        assert!(
            text.contains(r#"<skipped message="igb lacks HeaderSplit"/>"#),
            "{text}"
        );
        assert_eq!(text.matches("<skipped").count(), 1, "{text}");
    }
}
