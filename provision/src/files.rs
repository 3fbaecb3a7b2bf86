// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is in a folder, and values in files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use serde::{Serialize, de::DeserializeOwned};

/// Paths of what is in a folder, sorted.
///
/// # Errors
///
/// When it can't be read.
pub fn entries(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder.as_ref())?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Reads what [`write_json`] wrote, or the like.
///
/// # Errors
///
/// When the file can't be read or is not understood.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
}

/// Writes a value as JSON in lines.
///
/// # Errors
///
/// When the file can't be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    Ok(fs::write(
        path,
        serde_json::to_string_pretty(value)? + "\n",
    )?)
}
