// SPDX-License-Identifier: MIT OR Apache-2.0

//! A copy of the drivers, with a fault or without, and a guest that has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use vm::Images;

use super::list::Mutation;
use crate::kernel::{self, Kernel, Use};
use crate::project::Project;
use crate::stamp;
use crate::{guest, module, snapshots};

/// What is copied of the checkout: what Kbuild reads, and what cargo reads beside it.
const FILES: &[&str] = &["Kbuild", "Cargo.lock"];
const DRIVERS: &str = "drivers";

/// What ends host tests that hang.
const NEXTEST: &str =
    "[profile.default]\nslow-timeout = { period = \"60s\", terminate-after = 2 }\n";

/// The copy, in a folder of its own: Kbuild and cargo see what has changed.
pub(super) struct Scratch {
    dir: PathBuf,
    root: PathBuf,
    log: PathBuf,
    kernel: Kernel,
    agent: PathBuf,
    images: Images,
}

impl Scratch {
    /// Prepares the guest of the checkout, and what to build another one of.
    ///
    /// # Errors
    ///
    /// Those of the preparation.
    pub(super) fn prepare(project: &Project) -> Result<Self> {
        let images = guest::prepare_for_cases(project)?;
        let dir = project.out("mutate");
        let snapshots = Some(dir.join("snapshots"));
        let scratch = Self {
            root: project.root.clone(),
            log: project.log("mutate-module"),
            kernel: kernel::prepare(project, Use::Guest)?,
            agent: guest::agent(project)?,
            images: Images {
                initramfs: dir.join("initramfs.cpio"),
                logs: dir.join("vm"),
                snapshots,
                ..images
            },
            dir,
        };
        fs::create_dir_all(&scratch.images.logs)?;
        guest::write_manifest(&scratch.manifest(), &scratch.images)?;
        Ok(scratch)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the copy is.
    pub(super) fn sources(&self) -> PathBuf {
        self.dir.join("src")
    }

    /// The manifest of its guest.
    pub(super) fn manifest(&self) -> PathBuf {
        self.dir.join("guest.json")
    }

    /// What its guest is but for the drivers.
    pub(super) fn images(&self) -> &Images {
        &self.images
    }

    /// Builds the modules with a fault, or without any, and the initramfs with them.
    ///
    /// # Errors
    ///
    /// When they can't be built.
    pub(super) fn build(&self, mutation: Option<&Mutation>) -> Result<()> {
        self.write_sources(mutation)?;
        let out = self.dir.join("module");
        let modules = module::build_in(&self.sources(), &out, &self.kernel, &self.log)?;
        guest::pack(&self.images.initramfs, &self.agent, &self.kernel, &modules)?;
        if let Some(snapshots) = &self.images.snapshots {
            snapshots::forget(snapshots)?;
        }
        Ok(())
    }

    /// Makes the copy what the checkout is, but for a fault. What is the same already keeps its
    /// time, so that little has to be built.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written, or the mutation not applied.
    pub(super) fn write_sources(&self, mutation: Option<&Mutation>) -> Result<()> {
        let mut wanted = BTreeMap::new();
        let mut paths: Vec<_> = FILES.iter().map(PathBuf::from).collect();
        paths.extend(stamp::files(&self.root, DRIVERS)?);
        for path in paths {
            let from = self.root.join(&path);
            let bytes = fs::read(&from)?;
            wanted.insert(path, bytes);
        }
        wanted.insert("Cargo.toml".into(), self.workspace()?.into_bytes());
        wanted.insert(".config/nextest.toml".into(), NEXTEST.into());
        if let Some(mutation) = mutation {
            let file = wanted
                .get_mut(Path::new(&mutation.file))
                .with_context(|| format!("there is no {}", mutation.file))?;
            let text = String::from_utf8_lossy(file).into_owned();
            *file = mutation.apply(&text)?.into_bytes();
        }
        let copy = self.sources();
        make_same(&copy, &wanted)
    }

    /// A workspace of those drivers that cargo can compile.
    fn workspace(&self) -> Result<String> {
        let text = fs::read_to_string(self.root.join("Cargo.toml"))?;
        let mut manifest: toml::Table = toml::from_str(&text)?;
        let members = manifest
            .get_mut("workspace")
            .and_then(|workspace| workspace.get_mut("members"))
            .and_then(toml::Value::as_array_mut)
            .context("Cargo.toml names no members of the workspace")?;
        members.retain(|member| {
            member
                .as_str()
                .is_some_and(|member| Path::new(member).starts_with(DRIVERS))
        });
        Ok(toml::to_string(&manifest)?)
    }
}

/// Writes what is not yet as `wanted`, and removes drivers that are not.
fn make_same(copy: &Path, wanted: &BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for (path, bytes) in wanted {
        let to = copy.join(path);
        if fs::read(&to).is_ok_and(|there| there == *bytes) {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&to, bytes)?;
    }
    let there = stamp::files(copy, DRIVERS)?;
    for path in there.iter().filter(|path| !wanted.contains_key(*path)) {
        fs::remove_file(copy.join(path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_the_same_and_what_was_the_same_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let one = PathBuf::from("drivers/one.rs");
        let two = PathBuf::from("drivers/net/two.rs");
        let mut wanted = BTreeMap::from([(one.clone(), b"1".to_vec()), (two, b"2".to_vec())]);
        make_same(dir.path(), &wanted).unwrap();
        let time = |path: &str| fs::metadata(dir.path().join(path)).unwrap().modified();
        let before = time("drivers/net/two.rs").unwrap();

        fs::write(dir.path().join("drivers/gone.rs"), "").unwrap();
        wanted.insert(one, b"other".to_vec());
        make_same(dir.path(), &wanted).unwrap();
        let text = fs::read_to_string(dir.path().join("drivers/one.rs")).unwrap();
        assert_eq!(text, "other");
        assert_eq!(time("drivers/net/two.rs").unwrap(), before);
        assert!(!dir.path().join("drivers/gone.rs").exists());
    }
}
