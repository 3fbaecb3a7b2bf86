// SPDX-License-Identifier: MIT OR Apache-2.0

//! Room on a disk, asked for before something that would fill it: what ends in the middle says no more than that.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::fs::statvfs;

/// Checks that `need` bytes are free where `dir` is.
///
/// # Errors
///
/// When less is free; says what for, how much, and the way out.
pub fn require(dir: &Path, need: u64, what: &str, way_out: &str) -> Result<()> {
    let fs = statvfs(dir).with_context(|| format!("can't look at {}", dir.display()))?;
    let free = fs.f_bavail.saturating_mul(fs.f_frsize);
    if free < need {
        bail!(
            "{what} needs {:.1} GB in {}, where {:.1} GB are free; {way_out}",
            gigabytes(need),
            dir.display(),
            gigabytes(free)
        );
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a figure for a message")]
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_names_the_need_and_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        require(dir.path(), 1, "nothing", "").unwrap();
        let error = require(dir.path(), u64::MAX, "everything", "buy a disk").unwrap_err();
        let text = error.to_string();
        for part in ["everything needs 18446744073.7 GB", "buy a disk"] {
            assert!(text.contains(part), "no {part}: {text}");
        }
        assert!(text.contains(&dir.path().display().to_string()), "{text}");
    }
}
