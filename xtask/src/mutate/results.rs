// SPDX-License-Identifier: MIT OR Apache-2.0

//! What became of mutations: kept for each, so that a run goes on where another was interrupted, and
//! shown.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::list::Mutation;
use super::scratch::Scratch;
use crate::hash;
use crate::project::Project;
use crate::stamp;

/// What results depend on, beside the mutation.
const FOLDERS: &[&str] = &["drivers", "harness"];
const FILES: &[&str] = &["Kbuild", "Cargo.lock"];

/// What became of a mutation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// A test failed.
    pub(super) caught: bool,
    /// That test.
    pub(super) by: Option<String>,
}

impl Outcome {
    pub(super) fn caught(by: String) -> Self {
        Self {
            caught: true,
            by: Some(by),
        }
    }

    pub(super) fn survived() -> Self {
        Self {
            caught: false,
            by: None,
        }
    }

    /// Whether it is what the list says: caught, or equivalent.
    pub(super) fn expected(&self, mutation: &Mutation) -> bool {
        self.caught == mutation.equivalent.is_none()
    }
}

/// The results of this tree.
pub(super) struct Results {
    dir: PathBuf,
    tree: String,
}

impl Results {
    /// Finds them by what they depend on.
    ///
    /// # Errors
    ///
    /// When a file of the tree can't be read.
    pub(super) fn open(project: &Project, scratch: &Scratch) -> Result<Self> {
        let dir = scratch.dir().join("results");
        fs::create_dir_all(&dir)?;
        let images = scratch.images();
        let mut paths: Vec<_> = FILES.iter().map(PathBuf::from).collect();
        for folder in FOLDERS {
            paths.extend(stamp::files(&project.root, folder)?);
        }
        paths.sort();
        let mut parts = vec![
            images.kernel.to_string_lossy().into_owned(),
            images.qemu.version.clone(),
        ];
        for path in paths {
            parts.push(path.to_string_lossy().into_owned());
            parts.push(hash::of_file(&project.root.join(path))?);
        }
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        Ok(Self {
            dir,
            tree: hash::of_parts(&parts),
        })
    }

    fn path(&self, parts: &[&str]) -> PathBuf {
        let mut all = vec![self.tree.as_str()];
        all.extend(parts);
        self.dir
            .join(format!("{}.json", &hash::of_parts(&all)[..16]))
    }

    fn of(&self, mutation: &Mutation) -> PathBuf {
        self.path(&[
            "mutation",
            &mutation.file,
            &mutation.find,
            &mutation.replace,
        ])
    }

    pub(super) fn has(&self, mutation: &Mutation) -> bool {
        self.of(mutation).exists()
    }

    /// What became of a mutation, if that is known.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub(super) fn find(&self, mutation: &Mutation) -> Result<Option<Outcome>> {
        let path = self.of(mutation);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path)?;
        // One that was being written when the run was interrupted is none.
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Keeps what became of a mutation.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub(super) fn keep(&self, mutation: &Mutation, outcome: &Outcome) -> Result<()> {
        let outcome = serde_json::to_string_pretty(outcome)?;
        Ok(fs::write(self.of(mutation), outcome)?)
    }

    /// Whether a case has passed without any mutation.
    pub(super) fn passed(&self, case: &str) -> bool {
        self.path(&["case", case]).exists()
    }

    /// Keeps that a case has passed without any mutation.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub(super) fn note_passed(&self, case: &str) -> Result<()> {
        Ok(fs::write(self.path(&["case", case]), "true")?)
    }
}

/// A result as others read it.
#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    file: &'a str,
    caught: bool,
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    equivalent: Option<&'a str>,
}

/// Writes results as JSON.
///
/// # Errors
///
/// When the file can't be written.
pub(super) fn write_json(path: &Path, outcomes: &[(&Mutation, Outcome)]) -> Result<()> {
    let records: Vec<_> = outcomes
        .iter()
        .map(|(mutation, outcome)| Record {
            name: &mutation.name,
            file: &mutation.file,
            caught: outcome.caught,
            by: outcome.by.as_deref(),
            equivalent: mutation.equivalent.as_deref(),
        })
        .collect();
    Ok(fs::write(path, serde_json::to_string_pretty(&records)?)?)
}

/// The first lines of the table.
pub(super) const HEAD: &str = "| mutation | file | caught by |\n|---|---|---|\n";

/// The results as a table of a page, in the order of the list: what was not run now is as in the `old`
/// table.
pub(super) fn table(list: &[Mutation], outcomes: &[(&Mutation, Outcome)], old: &str) -> String {
    let mut text = HEAD.to_owned();
    for mutation in list {
        let file = mutation.file.trim_start_matches("drivers/");
        let begin = format!("| {} | `{file}` | ", mutation.name);
        let now = outcomes.iter().find(|(of, _)| of.name == mutation.name);
        let row = match (now, old.lines().find(|line| line.starts_with(&begin))) {
            (Some((_, outcome)), _) => match (&outcome.by, &mutation.equivalent) {
                (Some(by), _) => format!("{begin}`{by}` |"),
                (None, Some(why)) => format!("{begin}nothing: {why} |"),
                (None, None) => format!("{begin}nothing |"),
            },
            (None, Some(row)) => row.to_owned(),
            (None, None) => continue,
        };
        text += &row;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    fn mutation(equivalent: Option<&str>) -> Mutation {
        Mutation {
            name: "one is two".to_owned(),
            file: "drivers/net/one.rs".to_owned(),
            find: "1".to_owned(),
            replace: "2".to_owned(),
            cases: Vec::new(),
            model: Model::Qemu,
            equivalent: equivalent.map(str::to_owned),
        }
    }

    fn results(dir: &Path, tree: &str) -> Results {
        Results {
            dir: dir.to_owned(),
            tree: tree.to_owned(),
        }
    }

    #[test]
    fn results_are_found_again_until_tree_or_mutation_change() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (results(dir.path(), "a"), results(dir.path(), "b"));
        let (one, caught) = (mutation(None), Outcome::caught("tokens::x".to_owned()));
        here.keep(&one, &caught).unwrap();
        assert_eq!(here.find(&one).unwrap(), Some(caught));
        assert_eq!(there.find(&one).unwrap(), None);
        let other = Mutation {
            replace: "3".to_owned(),
            ..one.clone()
        };
        assert!(!here.has(&other));
        // Which cases are tried first does not change what comes of it.
        let likely = Mutation {
            cases: vec!["x".to_owned()],
            ..one
        };
        assert!(here.has(&likely));
        here.note_passed("x").unwrap();
        assert!(here.passed("x") && !here.passed("y") && !there.passed("x"));
    }

    #[test]
    fn what_is_not_caught_must_be_equivalent_and_the_other_way_round() {
        let (caught, survived) = (Outcome::caught(String::new()), Outcome::survived());
        assert!(caught.expected(&mutation(None)));
        assert!(!survived.expected(&mutation(None)));
        assert!(survived.expected(&mutation(Some("no one looks"))));
        assert!(!caught.expected(&mutation(Some("no one looks"))));
    }

    #[test]
    fn the_table_says_what_caught_each_or_why_nothing_did() {
        let (one, same) = (mutation(None), mutation(Some("no one looks")));
        let same = Mutation {
            name: "it is the same".to_owned(),
            ..same
        };
        let list = [one.clone(), same.clone()];
        let outcome = |test: &str| (&one, Outcome::caught(test.to_owned()));
        let all = [outcome("tokens::x"), (&same, Outcome::survived())];
        let text = table(&list, &all, "");
        assert!(text.contains("| one is two | `net/one.rs` | `tokens::x` |"));
        assert!(text.contains("| nothing: no one looks |"));
        // A run of one of them leaves the other's row as it is.
        let again = table(&list, &[outcome("zcrx::y")], &text);
        assert_eq!(again, text.replace("tokens::x", "zcrx::y"));
    }
}
