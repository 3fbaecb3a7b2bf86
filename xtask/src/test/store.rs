// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where cargo-nextest keeps its reports: beside what is built, as the checkout may be read-only.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::cmd::Cmd;
use crate::project::Project;

/// The line of `.config/nextest.toml` that says so where nextest is run without us.
const STORE: &str = "dir = \"target/nextest\"";

/// `cargo nextest run` with a profile.
///
/// # Errors
///
/// When its configuration can't be read or written.
pub(super) fn run(project: &Project, nextest: &Path, profile: &str) -> Result<Cmd> {
    run_in(
        project,
        nextest,
        profile,
        &project.out(""),
        &folder(project),
    )
}

/// As [`run`], with its configuration in a folder, and its reports in another: of runs at the same time
/// each has its own.
///
/// # Errors
///
/// When its configuration can't be read or written.
pub(super) fn run_in(
    project: &Project,
    nextest: &Path,
    profile: &str,
    own: &Path,
    reports: &Path,
) -> Result<Cmd> {
    let ours = project.root.join(".config/nextest.toml");
    let text =
        fs::read_to_string(&ours).with_context(|| format!("can't read {}", ours.display()))?;
    ensure!(
        text.contains(STORE),
        "{} has no line `{STORE}`",
        ours.display()
    );
    let text = text.replace(STORE, &format!("dir = {reports:?}"));
    let config = own.join("nextest.toml");
    // Another run may be reading it.
    if fs::read_to_string(&config).ok().as_ref() != Some(&text) {
        fs::write(&config, &text).with_context(|| format!("can't write {}", config.display()))?;
    }
    Ok(project
        .built_here(Cmd::new(nextest))
        .args(["nextest", "run", "--profile", profile, "--config-file"])
        .arg(config))
}

fn folder(project: &Project) -> PathBuf {
    project.target.join("nextest")
}

/// A profile's JUnit XML.
pub(super) fn junit(project: &Project, profile: &str) -> PathBuf {
    junit_in(&folder(project), profile)
}

/// The same, of reports in this folder.
pub(super) fn junit_in(reports: &Path, profile: &str) -> PathBuf {
    reports.join(profile).join("junit.xml")
}
