// SPDX-License-Identifier: MIT OR Apache-2.0

//! Puts the tables into `Documentation/performance.md`.

use std::fs;

use anyhow::{Context, Result};
use vm::Images;

use crate::cmd::Cmd;
use crate::project::Project;

const BEGIN: &str = "<!-- begin: written by `cargo xtask bench --document` -->";
const END: &str = "<!-- end -->";

/// Replaces what is between the marks.
///
/// # Errors
///
/// When the file cannot be read or written, or has no marks.
pub(crate) fn write(project: &Project, versions: &str, tables: &str) -> Result<()> {
    let path = project.root.join("Documentation/performance.md");
    let text =
        fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
    let new = format!("{versions}.\n\n{}", tables.trim_end());
    let text = replace(&text, &new)
        .with_context(|| format!("{} has no marks for the tables", path.display()))?;
    fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
}

/// What was measured with.
pub(crate) fn versions(project: &Project, images: &Images, window: u64) -> String {
    let commit = Cmd::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .dir(&project.root)
        .output()
        .unwrap_or_else(|_| "unknown".to_owned());
    format!(
        "Commit {}, Linux {}, QEMU {}; windows of {window} MiB",
        commit.trim(),
        images.kernel_release,
        images.qemu.version
    )
}

fn replace(text: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{new}\n\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let once = replace(&text, "new").unwrap();
        assert_eq!(once, format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        assert_eq!(replace(&once, "new").unwrap(), once);
        assert_eq!(replace("no marks", "new"), None);
    }
}
