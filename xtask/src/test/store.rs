// SPDX-License-Identifier: MIT OR Apache-2.0

//! cargo-nextest's configuration: where it keeps its reports, which is beside what is built, as the checkout may be
//! read-only; and which cases are a NIC's.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use fs_err as fs;

use crate::cmd::Cmd;
use crate::project::Project;

/// The line of `.config/nextest.toml` that says so where nextest is run without us.
const STORE: &str = "dir = \"target/nextest\"";

/// The line there with the cases of the profile `nic`: those that may run on a NIC take its place.
const ALL: &str = "default-filter = \"all()\"";

/// What nextest does with tests.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    Run,
    List,
}

/// `cargo nextest run` or `list` with a profile.
///
/// # Errors
///
/// When its configuration can't be read or written.
pub(super) fn nextest(project: &Project, nextest: &Path, verb: Verb, profile: &str) -> Result<Cmd> {
    let text = configuration(project, &folder(project), None)?;
    nextest_in(project, nextest, verb, profile, &project.out(""), &text)
}

/// As [`nextest()`], with a configuration in a folder: of runs at the same time each has its own.
///
/// # Errors
///
/// When the configuration can't be written.
pub(super) fn nextest_in(
    project: &Project,
    nextest: &Path,
    verb: Verb,
    profile: &str,
    own: &Path,
    text: &str,
) -> Result<Cmd> {
    let config = own.join("nextest.toml");
    // Another run may be reading it.
    if fs::read_to_string(&config).ok().as_deref() != Some(text) {
        fs::write(&config, text)?;
    }
    let verb = match verb {
        Verb::Run => "run",
        Verb::List => "list",
    };
    Ok(project
        .built_here(Cmd::new(nextest))
        .args(["nextest", verb, "--profile", profile, "--config-file"])
        .arg(config))
}

/// The configuration, with reports in a folder, and in the profile `nic` the cases of a set of nextest's. What the user
/// chooses is chosen from these.
///
/// # Errors
///
/// When `.config/nextest.toml` can't be read.
pub(crate) fn configuration(
    project: &Project,
    reports: &Path,
    of_nic: Option<&str>,
) -> Result<String> {
    let committed = project.root.join(".config/nextest.toml");
    let mut text = fs::read_to_string(&committed)?;
    let committed = committed.display();
    let cases = of_nic.map(|set| (ALL, format!("default-filter = {set:?}")));
    for (line, ours) in [(STORE, format!("dir = {reports:?}"))]
        .into_iter()
        .chain(cases)
    {
        ensure!(text.contains(line), "{committed} has no line `{line}`");
        text = text.replace(line, &ours);
    }
    Ok(text)
}

fn folder(project: &Project) -> PathBuf {
    project.target.join("nextest")
}

/// A profile's JUnit XML.
pub(super) fn junit(project: &Project, profile: &str) -> PathBuf {
    junit_in(&folder(project), profile)
}

/// Removes a report: what is there after a run is of that run.
///
/// # Errors
///
/// When it can't be removed.
pub(super) fn forget(junit: &Path) -> Result<()> {
    match junit.exists() {
        true => Ok(fs::remove_file(junit)?),
        false => Ok(()),
    }
}

/// The same, of reports in this folder.
pub(super) fn junit_in(reports: &Path, profile: &str) -> PathBuf {
    reports.join(profile).join("junit.xml")
}
