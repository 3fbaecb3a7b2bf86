// SPDX-License-Identifier: MIT OR Apache-2.0

//! Puts what commands write into pages, between marks.

use anyhow::{Context, Result};
use fs_err as fs;

use crate::cmd::Cmd;
use crate::project::Project;

const END: &str = "<!-- end -->";

/// Replaces what is between the marks of `page`, a path from the project's folder, for
/// `cargo xtask <command> --document`.
///
/// # Errors
///
/// When the file cannot be read or written, or has no marks.
pub(crate) fn write(project: &Project, page: &str, command: &str, text: &str) -> Result<()> {
    let path = project.root.join(page);
    let old = fs::read_to_string(&path)?;
    let new = replace(&old, &begin(command), text.trim_end())
        .with_context(|| format!("{} has no marks for the tables", path.display()))?;
    Ok(fs::write(&path, new)?)
}

/// What is there now.
///
/// # Errors
///
/// When the file cannot be read.
pub(crate) fn read(project: &Project, page: &str, command: &str) -> Result<String> {
    let path = project.root.join(page);
    let text = fs::read_to_string(&path)?;
    let tables = text.split_once(&begin(command));
    let tables = tables.and_then(|(_, rest)| rest.split_once(END));
    Ok(tables.map_or_else(String::new, |(tables, _)| tables.to_owned()))
}

/// The checkout's commit.
pub(crate) fn commit(project: &Project) -> String {
    let commit = Cmd::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .dir(&project.root)
        .output()
        .unwrap_or_else(|_| "unknown".to_owned());
    commit.trim().to_owned()
}

fn begin(command: &str) -> String {
    format!("<!-- begin: written by `cargo xtask {command} --document` -->")
}

fn replace(text: &str, begin: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{new}\n\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_dependencies_has_each_of_the_workspace() {
        let root = crate::project::root().unwrap();
        let manifest: toml::Table =
            toml::from_str(&fs::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap();
        let page = fs::read_to_string(root.join("Documentation/dependencies.md")).unwrap();
        let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
        let missing = dependencies.iter().filter(|(name, version)| {
            version.get("path").is_none()
                && !page.contains(&format!("[{name}](https://docs.rs/{name})"))
        });
        assert_eq!(missing.map(|(name, _)| name).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let begin = begin("bench");
        let text = format!("before\n{begin}\nold\n{END}\nafter\n");
        let once = replace(&text, &begin, "new").unwrap();
        assert_eq!(once, format!("before\n{begin}\n\nnew\n\n{END}\nafter\n"));
        assert_eq!(replace(&once, &begin, "new").unwrap(), once);
        assert_eq!(replace("no marks", &begin, "new"), None);
    }
}
