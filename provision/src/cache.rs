// SPDX-License-Identifier: MIT OR Apache-2.0

//! The user's cache: kernel source, kernel builds and tools, shared by all
//! checkouts. What is in it is complete: things are made under `tmp` and
//! renamed, except kernel builds, which carry a stamp (`kernel::build`).
//! Several runs use it at once: who makes something has a lock on that.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use fs_err::{self as fs, File};

use crate::lock::{self, Lock};
use crate::space;

/// `$XDG_CACHE_HOME/nobounce`, or `~/.cache/nobounce`.
pub struct Cache {
    dir: PathBuf,
    /// This process's folder under `tmp`, which it has locked.
    own: Mutex<Option<(PathBuf, File)>>,
}

impl Cache {
    /// Finds the folder and creates it.
    ///
    /// # Errors
    ///
    /// When neither `XDG_CACHE_HOME` nor `HOME` names a folder, or it can't be made.
    pub fn open() -> Result<Self> {
        let dir = folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?;
        fs::create_dir_all(&dir).with_context(|| {
            format!(
                "can't create the cache {}; set XDG_CACHE_HOME to a folder that you may write to",
                dir.display()
            )
        })?;
        Ok(Self::at(dir))
    }

    /// The cache in this folder.
    pub fn at(dir: PathBuf) -> Self {
        let own = Mutex::default();
        Self { dir, own }
    }

    /// The cache folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A path in the cache.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Keeps the cache from being cleared.
    ///
    /// # Errors
    ///
    /// When the lock can't be had.
    pub fn keep(&self) -> Result<Lock> {
        Lock::share(&self.path("lock"), "the cache")
    }

    /// Returns what `find` finds; where that is nothing, what `make` makes, unless another run makes
    /// `name` meanwhile.
    ///
    /// # Errors
    ///
    /// What `make` returns, or when the lock can't be had.
    pub fn find_or_make<T>(
        &self,
        name: &str,
        find: impl Fn() -> Option<T>,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(found) = find() {
            return Ok(found);
        }
        let _making = self.making(name)?;
        find().map_or_else(make, Ok)
    }

    /// Waits until no other run makes `name`, and keeps others from it.
    ///
    /// # Errors
    ///
    /// When the lock can't be had.
    pub fn making(&self, name: &str) -> Result<Lock> {
        let path = self.path("locks").join(name.replace('/', "-"));
        Lock::hold(&path, name)
    }

    /// Returns `name` in the cache; where it isn't there yet, has `make` make
    /// it in an empty folder first, which becomes `name` only when `make` succeeds.
    ///
    /// # Errors
    ///
    /// What `make` returns, or a folder that can't be created or renamed.
    pub fn once(&self, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let place = self.path(name);
        let find = || place.is_dir().then(|| place.clone());
        self.find_or_make(name, find, || {
            let work = self.scratch(&name.replace('/', "-"))?;
            make(&work)?;
            if let Some(parent) = place.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::rename(&work, &place)?;
            Ok(place.clone())
        })
    }

    /// An empty folder of this process's own, which a later run removes: a program that a killed run
    /// left behind may go on writing to its.
    ///
    /// # Errors
    ///
    /// When it can't be created.
    pub fn scratch(&self, name: &str) -> Result<PathBuf> {
        let work = self.own_folder()?.join(name);
        remove_dir(&work)?;
        fs::create_dir_all(&work)?;
        Ok(work)
    }

    /// This process's folder under `tmp`. The first time, what others left there goes, but for those
    /// that still run.
    fn own_folder(&self) -> Result<PathBuf> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, _)) = &*own {
            return Ok(path.clone());
        }
        // No other run takes a new folder for one that was left.
        let _alone = self.making("tmp")?;
        for left in self.list("tmp") {
            if lock::try_folder(&left)?.is_some() {
                // What a program still writes to goes the next time.
                let _ = remove_dir(&left);
            }
        }
        let process = std::process::id();
        let path = (0..)
            .map(|number| self.path("tmp").join(format!("{process}-{number}")))
            .find(|path| !path.exists())
            .context("no name is free")?;
        fs::create_dir_all(&path)?;
        let folder = lock::try_folder(&path)?.context("a new folder is locked")?;
        *own = Some((path.clone(), folder));
        Ok(path)
    }

    /// The folders directly under `name`, sorted.
    pub fn list(&self, name: &str) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = fs::read_dir(self.path(name))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        found.sort();
        found
    }

    /// Checks that `need` bytes are free where the cache is.
    ///
    /// # Errors
    ///
    /// When less is free; says what for, how much, and the way out.
    pub fn require_space(&self, need: u64, what: &str) -> Result<()> {
        let way_out = "free some space or set XDG_CACHE_HOME to a larger disk";
        space::require(&self.dir, need, what, way_out)
    }

    /// Removes the whole cache, when no other run uses it.
    ///
    /// # Errors
    ///
    /// When something in it can't be removed.
    pub fn clear(&self) -> Result<()> {
        let _alone = Lock::hold(&self.path("lock"), "the cache")?;
        remove_dir(&self.dir)
    }
}

fn folder(xdg: Option<std::ffi::OsString>, home: Option<std::ffi::OsString>) -> Result<PathBuf> {
    // The XDG specification: a relative path is invalid and to be ignored.
    let absolute = |value: Option<std::ffi::OsString>| {
        value.map(PathBuf::from).filter(|path| path.is_absolute())
    };
    if let Some(cache) = absolute(xdg) {
        return Ok(cache.join("nobounce"));
    }
    match absolute(home) {
        Some(home) => Ok(home.join(".cache/nobounce")),
        None => bail!(
            "no place for the cache: neither XDG_CACHE_HOME nor HOME is an absolute path; set \
             XDG_CACHE_HOME to a folder with 5 GB free"
        ),
    }
}

/// Removes a folder, which need not be there.
///
/// # Errors
///
/// When it is there and can't be removed.
pub fn remove_dir(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_path_buf());
        (dir, cache)
    }

    #[test]
    fn the_folder_follows_xdg_then_home_and_ignores_relative_paths() {
        let os = |s: &str| Some(s.into());
        let at = |x, h| folder(x, h).unwrap();
        assert_eq!(at(os("/c"), os("/h")), Path::new("/c/nobounce"));
        assert_eq!(at(os("c"), os("/h")), Path::new("/h/.cache/nobounce"));
        assert_eq!(at(None, os("/h")), Path::new("/h/.cache/nobounce"));
        let error = folder(os(""), None).unwrap_err().to_string();
        assert!(error.contains("set XDG_CACHE_HOME"), "{error}");
    }

    #[test]
    fn what_fails_to_be_made_is_not_in_the_cache_and_is_made_again() {
        let (_dir, cache) = cache();
        let failed = cache.once("tools/x", |work| {
            fs::write(work.join("half"), "")?;
            bail!("interrupted")
        });
        assert!(failed.is_err());
        assert!(!cache.path("tools/x").exists());
        let made = cache
            .once("tools/x", |work| Ok(fs::write(work.join("whole"), "")?))
            .unwrap();
        assert!(made.join("whole").exists());
        assert!(!made.join("half").exists(), "left over from the first try");
        cache
            .once("tools/x", |_| panic!("made a second time"))
            .unwrap();
    }

    #[test]
    fn of_two_runs_that_want_the_same_one_makes_it_and_the_other_waits() {
        let (dir, cache) = cache();
        let (begun, is_begun) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|runs| {
            let first = runs.spawn(move || {
                cache.once("tools/x", |_| {
                    begun.send(())?;
                    Ok(may_go_on.recv()?)
                })
            });
            is_begun.recv().unwrap();
            let other = Cache::at(dir.path().to_path_buf());
            // What others make does not wait for it.
            other.once("tools/y", |_| Ok(())).unwrap();
            let second = runs.spawn(move || other.once("tools/x", |_| panic!("made again")));
            go_on.send(()).unwrap();
            assert_eq!(
                first.join().unwrap().unwrap(),
                second.join().unwrap().unwrap()
            );
        });
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_does_not_get_in_the_way() {
        let (_dir, cache) = cache();
        let left = cache.path("tmp/1-0");
        fs::create_dir_all(left.join("tools-x")).unwrap();
        let running = cache.path("tmp/2-0");
        fs::create_dir_all(&running).unwrap();
        let held = lock::try_folder(&running).unwrap();
        assert!(held.is_some());
        let made = cache.once("tools/x", |work| {
            assert!(!left.exists(), "it is still there");
            assert!(running.exists(), "it was taken from a run");
            Ok(fs::write(work.join("whole"), "")?)
        });
        // A process of the killed run that is still alive creates its folder again.
        fs::create_dir_all(left.join("tools-x")).unwrap();
        assert_eq!(fs::read_dir(made.unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn too_little_space_names_the_need_and_the_way_out() {
        let (_dir, cache) = cache();
        cache.require_space(1, "nothing").unwrap();
        let error = cache.require_space(u64::MAX, "everything").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("everything") && text.contains("XDG_CACHE_HOME"),
            "{text}"
        );
    }
}
