// SPDX-License-Identifier: MIT OR Apache-2.0

//! The oldest Rust that the workspace promises to build with: that of Debian 13, unpacked in the cache.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::apt::Apt;
use crate::project::Project;
use crate::ui::Step;
use crate::unpacked::{Packages, write_script};

/// What `rust-version` in Cargo.toml says.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Debian's packages: 60 MB, and what they unpack to.
const PACKAGES: Packages = Packages {
    what: "oldest rustc",
    folder: "rustc",
    suites: Apt::trixie,
    names: &["libstd-rust-dev"],
    alone: Some("rustc"),
    version: "",
    space: 500_000_000,
    not_needed: &["etc", "usr/libexec", "usr/share", "var"],
};
/// The script that runs it.
const SCRIPT: &str = "bin/rustc";

/// Commands, library and tool build with it; what tests them need not.
///
/// # Errors
///
/// When they don't, or it can't be had.
pub(crate) fn check(project: &Project) -> Result<()> {
    let step = Step::begin("oldest Rust", "checking the workspace with it");
    project
        .cargo()
        .args(["check", "--workspace", "--all-features", "--target-dir"])
        .arg(project.target.join("msrv"))
        .env("RUSTC", rustc(project)?)
        .step(&step, &project.log("msrv"))?;
    step.done(&format!("the workspace builds with Rust {RUST}"));
    Ok(())
}

/// That rustc, unpacked on first use.
///
/// # Errors
///
/// No apt, no network, no space: see [`Packages::get`]; one of another version than is promised.
fn rustc(project: &Project) -> Result<PathBuf> {
    let root = PACKAGES.get(project, "", |work| {
        write_script(&work.join(SCRIPT), "usr/bin/rustc", "", "")
    })?;
    let version = PACKAGES.version(&root, SCRIPT)?;
    ensure!(
        version.contains(&format!(" {RUST}.")),
        "Debian 13 has {}, and Cargo.toml says rust-version = \"{RUST}\"",
        version.trim()
    );
    Ok(root.join(SCRIPT))
}
