// SPDX-License-Identifier: MIT OR Apache-2.0

//! mount(2), with an error that says what was mounted where.

use std::{ffi::CStr, path::Path};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount};

/// Mounts a file system of some kind.
pub(super) fn mount_at(
    source: &str,
    target: &Path,
    kind: &str,
    flags: MountFlags,
    options: Option<&CStr>,
) -> Result<()> {
    mount(source, target, kind, flags, options)
        .with_context(|| format!("mounting {source} on {}", target.display()))
}
