// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files, as [`std::fs`] has them, with errors that name the path.

#![expect(
    clippy::missing_errors_doc,
    reason = "each fails where the file can't be read or written"
)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Serialize, de::DeserializeOwned};

/// Bytes of a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    fs::read(path).with_context(|| format!("can't read {}", path.display()))
}

/// Text of a file.
pub fn read_to_string(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}

/// Paths of what is in a folder, sorted.
pub fn entries(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    let entries =
        fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths = paths
        .collect::<Result<Vec<_>>>()
        .with_context(|| format!("can't read {}", folder.display()))?;
    paths.sort();
    Ok(paths)
}

/// Makes a file, or empties it.
pub fn create(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    File::create(path).with_context(|| format!("can't write {}", path.display()))
}

/// Writes a whole file.
pub fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> Result<()> {
    let path = path.as_ref();
    fs::write(path, contents).with_context(|| format!("can't write {}", path.display()))
}

/// Makes a folder, and those above it.
pub fn create_dir_all(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    fs::create_dir_all(path).with_context(|| format!("can't create {}", path.display()))
}

/// Reads what [`write_json`] wrote, or the like.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = read_to_string(path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
}

/// Writes a value as JSON in lines.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    write(path, serde_json::to_string_pretty(value)? + "\n")
}
