// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs of Debian's packages, unpacked in the cache and run through their own loader, so that
//! none of the machine's libraries matter.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;

use crate::apt::Apt;
use crate::cache::Cache;
use crate::cmd::Cmd;
use crate::program;
use crate::project::Project;
use crate::ui::Step;

/// Where unpacked packages have their loader.
pub const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
/// Where they have their libraries.
pub const LIBRARY: &str = "usr/lib/x86_64-linux-gnu";

/// Packages that are unpacked into one folder, with everything that they need.
pub struct Packages {
    /// What messages call them.
    pub what: &'static str,
    /// The folder in the cache, with one in it for each version.
    pub folder: &'static str,
    /// The suites that they are of.
    pub suites: fn(&Project) -> Apt,
    /// Their names.
    pub names: &'static [&'static str],
    /// One more, without what else it depends on. The version is this one's, else the first's.
    pub alone: Option<&'static str>,
    /// What the version starts with.
    pub version: &'static str,
    /// How much is unpacked, in bytes.
    pub space: u64,
    /// What is removed of it: files and folders.
    pub not_needed: &'static [&'static str],
}

impl Packages {
    /// The folder in the cache with the newest, whose name is the version and `key`.
    pub fn find(&self, cache: &Cache, key: &str) -> Option<PathBuf> {
        let suits = |folder: &PathBuf| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(self.version) && name.ends_with(key)
        };
        cache.list(self.folder).into_iter().rfind(suits)
    }

    /// The same, or else unpacks the newest that Debian offers, and has `finish` do the rest.
    ///
    /// # Errors
    ///
    /// No apt, no network, no space: see [`Apt`]; what `finish` returns.
    pub fn get(
        &self,
        project: &Project,
        key: &str,
        finish: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let find = || self.find(&project.cache, key);
        let fetch = || self.fetch(project, key, finish);
        project.cache.find_or_make(self.folder, find, fetch)
    }

    fn fetch(
        &self,
        project: &Project,
        key: &str,
        finish: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        project.cache.require_space(self.space, self.what)?;
        let step = Step::begin(
            self.folder,
            &format!("getting Debian's newest {}", self.what),
        );
        let apt = (self.suites)(project);
        let first = self.alone.unwrap_or(self.names[0]);
        let offers = apt.offers(&step, first)?;
        let offer = offers
            .first()
            .with_context(|| format!("Debian offers no package {first}, for {}", self.what))?;
        // A colon would separate library paths; the epoch says nothing here.
        let version = offer.split_once(':').map_or(offer.as_str(), |(_, v)| v);
        let place = format!("{}/{version}{key}", self.folder);
        let root = project.cache.once(&place, |work| {
            apt.unpack_whole(&step, &project.cache, self.names, self.not_needed, work)?;
            if let Some(alone) = self.alone {
                apt.unpack(&step, &project.cache, alone, Some(offer), work)?;
            }
            finish(work)
        })?;
        step.done(&format!("{} {version} in {}", self.what, root.display()));
        Ok(root)
    }

    /// What `program --version` in `root` prints.
    ///
    /// # Errors
    ///
    /// When it doesn't run; says how to have it fetched again.
    pub fn version(&self, root: &Path, program: &str) -> Result<String> {
        Cmd::new(root.join(program))
            .arg("--version")
            .output()
            .with_context(|| self.broken(root))
    }

    /// That what was unpacked doesn't run, and the way out.
    pub fn broken(&self, root: &Path) -> String {
        format!(
            "the {} in {} doesn't run; `{} clean --cache` removes it",
            self.what,
            root.display(),
            program::name()
        )
    }
}

/// Runs a program of `root` on this machine.
pub fn run(root: &Path, program: &str) -> Cmd {
    Cmd::new(root.join(LOADER))
        .arg("--library-path")
        .arg(root.join(LIBRARY))
        .arg(root.join(program))
}

/// The words of a script that run a program of the packages in `$root`, with their libraries after those
/// in `first`, folders that end in a colon. The loader's options and the program follow.
pub fn loader(first: &str) -> String {
    format!("exec \"$root/{LOADER}\" \\\n\t--library-path \"{first}$root/{LIBRARY}\" \\\n\t")
}

/// Writes a script that runs `program` of the packages with their own loader and their libraries, after
/// those in `first`, folders that end in a colon. `prepare` is a line before that. The script finds its
/// packages from where it is: their folder is moved into place when it is whole.
///
/// # Errors
///
/// When the file can't be written.
pub fn write_script(script: &Path, program: &str, prepare: &str, first: &str) -> Result<()> {
    let bin = script.parent().unwrap_or(script);
    // With a merged /usr it may be a symlink.
    if fs::symlink_metadata(bin).is_ok_and(|data| data.is_symlink()) {
        fs::remove_file(bin)?;
    }
    fs::create_dir_all(bin)?;
    let text = format!(
        "#!/bin/sh\nroot=${{0%/*}}/..\n{prepare}{}\"$root/{program}\" \"$@\"\n",
        loader(first)
    );
    write_program(script, &text)
}

/// Writes a program, such as a script.
///
/// # Errors
///
/// When the file can't be written.
pub fn write_program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}
