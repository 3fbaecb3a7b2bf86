// SPDX-License-Identifier: MIT OR Apache-2.0

//! pahole, which makes the kernel's types for BPF of its debug information:
//! Debian's package, unpacked in the cache and run through its own loader.

use std::path::PathBuf;

use anyhow::Result;

use crate::apt::Apt;
use crate::project::Project;
use crate::unpacked::{Packages, write_script};

/// Debian's packages: 5 MB, and what they unpack to.
const PACKAGES: Packages = Packages {
    what: "pahole",
    folder: "pahole",
    suites: Apt::new,
    names: &["dwarves"],
    alone: None,
    version: "",
    space: 50_000_000,
    not_needed: &["etc", "usr/libexec", "usr/share", "var"],
};
/// The script that runs it.
const SCRIPT: &str = "bin/pahole";

/// A pahole in the cache.
pub struct Pahole {
    /// The script that runs it.
    pub program: PathBuf,
    /// What it says of itself, `v1.30`.
    pub version: String,
}

/// The pahole in the cache, unpacked on first use.
///
/// # Errors
///
/// No apt, no network, no space: see [`Packages::get`]; a pahole that doesn't run.
pub fn prepare(project: &Project) -> Result<Pahole> {
    let root = PACKAGES.get(project, "", |work| {
        // The kernel's build wants a program.
        write_script(&work.join(SCRIPT), "usr/bin/pahole", "", "")
    })?;
    let version = PACKAGES.version(&root, SCRIPT)?;
    Ok(Pahole {
        program: root.join(SCRIPT),
        version: version.trim().to_owned(),
    })
}
