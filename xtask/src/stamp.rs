// SPDX-License-Identifier: MIT OR Apache-2.0

//! Remembers what something was made of, so that it isn't made again: even a compiler that finds
//! nothing to do takes seconds to find that out.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;
use provision::files;

use crate::hash;

/// What something is about to be made of.
pub(crate) struct Stamp {
    file: PathBuf,
    inputs: String,
}

impl Stamp {
    /// `file` remembers what was made of these texts and files the last time.
    ///
    /// # Errors
    ///
    /// When an input can't be read.
    pub(crate) fn new(file: PathBuf, texts: &[&str], inputs: &[PathBuf]) -> Result<Self> {
        let mut parts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        for path in inputs {
            parts.push(path.to_string_lossy().into_owned());
            parts.push(hash::of_file(path)?);
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        Ok(Self {
            file,
            inputs: hash::of_parts(&parts),
        })
    }

    /// Whether these outputs are what was made of the same the last time.
    pub(crate) fn is_of(&self, outputs: &[PathBuf]) -> bool {
        let kept = fs::read_to_string(&self.file);
        kept.is_ok_and(|kept| self.text(outputs).is_ok_and(|text| text == kept))
    }

    /// Remembers that these outputs were made of it.
    ///
    /// # Errors
    ///
    /// When one isn't there, or the file can't be written.
    pub(crate) fn keep(&self, outputs: &[PathBuf]) -> Result<()> {
        Ok(fs::write(&self.file, self.text(outputs)?)?)
    }

    fn text(&self, outputs: &[PathBuf]) -> Result<String> {
        let mut text = format!("{}\n", self.inputs);
        for output in outputs {
            text += &format!("{} {}\n", hash::of_file(output)?, output.display());
        }
        Ok(text)
    }
}

/// All files below `folder` of `root`, as paths from `root`, sorted.
///
/// # Errors
///
/// When a folder can't be read.
pub(crate) fn files(root: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    find(root, &root.join(folder), &mut found)?;
    Ok(found)
}

fn find(root: &Path, folder: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for path in files::entries(folder)? {
        match path.is_dir() && !path.is_symlink() {
            true => find(root, &path, into)?,
            false => into.push(path.strip_prefix(root)?.to_owned()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_again_when_an_input_or_an_output_is_another_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (source, made) = (at("a.rs"), at("a.ko"));
        let stamp = |text: &str| Stamp::new(at("stamp"), &[text], &[at("a.rs")]).unwrap();
        let outputs = std::slice::from_ref(&made);
        fs::write(&source, "x").unwrap();

        assert!(!stamp("rustc 1").is_of(outputs), "it was never made");
        fs::write(&made, "y").unwrap();
        assert!(!stamp("rustc 1").is_of(outputs), "nobody says of what");
        stamp("rustc 1").keep(outputs).unwrap();
        assert!(stamp("rustc 1").is_of(outputs));
        assert!(!stamp("rustc 2").is_of(outputs));
        fs::write(&source, "xx").unwrap();
        assert!(!stamp("rustc 1").is_of(outputs));
        fs::write(&source, "x").unwrap();
        fs::write(&made, "yy").unwrap();
        assert!(!stamp("rustc 1").is_of(outputs));
        fs::remove_file(&made).unwrap();
        assert!(!stamp("rustc 1").is_of(outputs));
    }

    #[test]
    fn files_are_found_in_folders_of_folders_and_in_the_same_order() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("d/e")).unwrap();
        for name in ["d/b", "d/e/a", "d/a", "c"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let found = files(dir.path(), "d").unwrap();
        assert_eq!(found, ["d/a", "d/b", "d/e/a"].map(PathBuf::from));
    }
}
