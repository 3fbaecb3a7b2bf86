// SPDX-License-Identifier: MIT OR Apache-2.0

//! The list of mutations: `xtask/mutations/*.toml`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use provision::files;
use serde::Deserialize;

use crate::model::Model;

/// Where the list is, from the project's folder.
const FOLDER: &str = "xtask/mutations";

/// Crates with tests on the host, which are run first, and the sources that these are about.
const HOST_PACKAGES: &[(&str, &str)] = &[
    ("i82576", "drivers/i82576/"),
    ("page_ranges", "drivers/page_ranges/"),
    ("engine", "drivers/engine/"),
    ("net_host", "drivers/net/spsc.rs"),
];

/// A small fault.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutation {
    /// What is wrong then, as a sentence.
    pub(super) name: String,
    /// The file, from the project's folder.
    pub(super) file: String,
    /// Text that is in the file exactly once.
    pub(super) find: String,
    /// What stands there instead.
    pub(super) replace: String,
    /// Names of the cases that are likely to catch it.
    #[serde(default)]
    pub(super) cases: Vec<String>,
    /// The NIC that these cases are for. All others run on QEMU's.
    #[serde(default)]
    pub(super) model: Model,
    /// Why no test can tell it from the original, if that is so.
    pub(super) equivalent: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mutation: Vec<Mutation>,
}

impl Mutation {
    /// Whether its name or file contains one of `words`, or there are none.
    pub(super) fn has(&self, words: &[String]) -> bool {
        words.is_empty()
            || words
                .iter()
                .any(|word| self.name.contains(word) || self.file.contains(word))
    }

    /// `text` of the file with the fault.
    ///
    /// # Errors
    ///
    /// If the text to replace is not there exactly once, or nothing would change.
    pub(super) fn apply(&self, text: &str) -> Result<String> {
        let found = text.matches(&self.find).count();
        ensure!(
            found == 1,
            "`{}`: the text is {found} times in {}, and must be there once:\n{}",
            self.name,
            self.file,
            self.find
        );
        ensure!(self.find != self.replace, "`{}` changes nothing", self.name);
        Ok(text.replacen(&self.find, &self.replace, 1))
    }

    /// The package with tests on the host of the file, if it has any.
    pub(super) fn host_package(&self) -> Option<&'static str> {
        let of = |(_, sources): &&(_, &str)| self.file.starts_with(sources);
        HOST_PACKAGES.iter().find(of).map(|(package, _)| *package)
    }
}

/// Reads the list, and sees to it that each mutation still has its place.
///
/// # Errors
///
/// When a file can't be read, or a mutation can't be applied.
pub(super) fn read(root: &Path) -> Result<Vec<Mutation>> {
    let mut list = Vec::new();
    for path in files::entries(root.join(FOLDER))? {
        let text = fs::read_to_string(&path)?;
        let file: File =
            toml::from_str(&text).with_context(|| format!("{} is wrong", path.display()))?;
        list.extend(file.mutation);
    }
    for mutation in &list {
        let path = root.join(&mutation.file);
        let text = fs::read_to_string(&path).with_context(|| format!("`{}`", mutation.name))?;
        mutation.apply(&text)?;
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checkout that this is part of.
    fn root() -> std::path::PathBuf {
        crate::project::root().unwrap()
    }

    fn mutation(find: &str, replace: &str) -> Mutation {
        Mutation {
            name: "one is two".to_owned(),
            file: "drivers/i82576/ring.rs".to_owned(),
            find: find.to_owned(),
            replace: replace.to_owned(),
            cases: Vec::new(),
            model: Model::Qemu,
            equivalent: None,
        }
    }

    #[test]
    fn each_mutation_has_its_place_in_the_drivers_and_a_name_of_its_own() {
        let list = read(&root()).unwrap();
        assert!(list.len() >= 40, "there are only {}", list.len());
        let mut names: Vec<_> = list.iter().map(|mutation| &mutation.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), list.len(), "two have the same name");
    }

    #[test]
    fn each_mutation_has_a_row_in_the_documentation() {
        let page = fs::read_to_string(root().join("Documentation/testing.md")).unwrap();
        let missing: Vec<_> = read(&root())
            .unwrap()
            .into_iter()
            .filter(|mutation| !page.contains(&format!("\n| {} | `", mutation.name)))
            .map(|mutation| mutation.name)
            .collect();
        assert!(
            missing.is_empty(),
            "run `cargo xtask mutate --document` for {missing:?}"
        );
    }

    #[test]
    fn the_cases_that_mutations_name_exist() {
        let mut sources = String::new();
        let mut folders = vec![root().join("harness/cases/tests")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => sources += &fs::read_to_string(path).unwrap(),
                }
            }
        }
        for mutation in read(&root()).unwrap() {
            for case in &mutation.cases {
                // By itself, or by a macro that has a list of them.
                let written = [format!("fn {case}("), format!("    {case}: ")];
                let found = written.iter().any(|text| sources.contains(text));
                assert!(found, "`{}` names {case}", mutation.name);
            }
            assert!(
                !mutation.cases.is_empty() || mutation.host_package().is_some(),
                "`{}` names no case",
                mutation.name
            );
        }
    }

    #[test]
    fn what_has_tests_on_the_host_is_known_by_its_file() {
        let package = |file: &str| {
            let file = file.to_owned();
            let mutation = mutation("1", "2");
            Mutation { file, ..mutation }.host_package()
        };
        assert_eq!(package("drivers/i82576/ring/window.rs"), Some("i82576"));
        assert_eq!(package("drivers/net/spsc.rs"), Some("net_host"));
        assert_eq!(package("drivers/net/tx.rs"), None);
    }

    #[test]
    fn text_that_is_not_there_exactly_once_is_an_error() {
        assert_eq!(mutation("1", "2").apply("x = 1;").unwrap(), "x = 2;");
        for text in ["x = 3;", "x = 11;"] {
            let error = mutation("1", "2").apply(text).unwrap_err().to_string();
            assert!(error.contains("one is two"), "{error}");
        }
        assert!(mutation("1", "1").apply("1").is_err());
    }

    #[test]
    fn mutations_are_chosen_by_name_or_file() {
        let words = |word: &str| [word.to_owned()];
        let mutation = mutation("1", "2");
        assert!(mutation.has(&[]) && mutation.has(&words("two")) && mutation.has(&words("ring")));
        assert!(!mutation.has(&words("napi")));
        assert_eq!(mutation.host_package(), Some("i82576"));
    }
}
