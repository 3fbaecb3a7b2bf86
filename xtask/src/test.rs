// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs the host tests and the end-to-end cases with cargo-nextest.

use anyhow::{Result, bail};

use crate::cache::CacheLock;
use crate::cmd::Cmd;
use crate::project::Project;
use crate::{guest, tools, ui};

/// The nextest profile of `.config/nextest.toml` that writes JUnit XML.
const PROFILE: &str = "ci";

/// Runs the tests whose names contain one of `filters` (all, without any).
/// Words after `--` go to nextest, such as `-E 'package(cases)'`. With the debug kernel only
/// tests that boot it.
///
/// # Errors
///
/// When a test fails, none matches, or the guest can't be prepared.
pub(crate) fn run(project: &Project, lock: CacheLock, filters: &[String]) -> Result<()> {
    guest::prepare(project)?;
    let nextest = tools::nextest(project)?;
    // The tests only read what is in the cache.
    drop(lock);
    let junit = project
        .root
        .join("target/nextest")
        .join(PROFILE)
        .join("junit.xml");
    // What is there afterwards is of this run.
    if junit.exists() {
        std::fs::remove_file(&junit)?;
    }
    // Tests that are ignored otherwise want this kernel.
    let which: &[&str] = match project.kernel.debug {
        true => &[
            "--package",
            "cases",
            "--package",
            "vm",
            "--run-ignored",
            "all",
        ],
        false => &["--workspace"],
    };
    let status = Cmd::new(nextest)
        .args(["nextest", "run", "--profile", PROFILE])
        .args(which)
        .args(filters)
        .env(vm::ENV, guest::manifest_path(project))
        .dir(&project.root)
        .shown_to_user()?;
    if junit.exists() {
        ui::note(&format!("JUnit XML: {}", junit.display()));
    }
    ui::note(&format!(
        "logs of the machines: {}",
        project.out("vm").display()
    ));
    if !status.success() {
        bail!("tests failed ({status})");
    }
    Ok(())
}
