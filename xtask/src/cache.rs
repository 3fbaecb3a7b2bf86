// SPDX-License-Identifier: MIT OR Apache-2.0

//! The user's cache: kernel source, kernel builds and tools, shared by all
//! checkouts. What is in it is complete: things are made under `tmp` and
//! renamed, except kernel builds, which carry a stamp (`kernel::build`).

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock, statvfs};

use crate::{program, ui};

/// `$XDG_CACHE_HOME/nobounce`, or `~/.cache/nobounce`.
pub(crate) struct Cache {
    dir: PathBuf,
}

/// Holds the lock of the cache: no other process builds in it.
pub(crate) struct CacheLock {
    _file: File,
}

impl Cache {
    /// Finds the folder and creates it.
    ///
    /// # Errors
    ///
    /// When neither `XDG_CACHE_HOME` nor `HOME` names a folder, or it can't be made.
    pub(crate) fn open() -> Result<Self> {
        let dir = folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?;
        fs::create_dir_all(&dir).with_context(|| {
            format!(
                "can't create the cache {}; set XDG_CACHE_HOME to a folder that you may write to",
                dir.display()
            )
        })?;
        Ok(Self { dir })
    }

    /// A cache in a folder of a test's.
    #[cfg(test)]
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The cache folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A path in the cache.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Waits until no other run builds in the cache, then keeps others out.
    /// Also removes what an interrupted run left in `tmp`.
    ///
    /// # Errors
    ///
    /// When the lock file can't be opened or locked.
    pub(crate) fn lock(&self) -> Result<CacheLock> {
        let path = self.path("lock");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .with_context(|| format!("can't open {}", path.display()))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            ui::note(&format!(
                "waiting: the cache is in use by {}",
                if holder.is_empty() {
                    "another run"
                } else {
                    &holder
                }
            ));
            // A signal may interrupt the wait without ending it.
            while let Err(e) = flock(&file, FlockOperation::LockExclusive) {
                if e != rustix::io::Errno::INTR {
                    return Err(e).context(format!("can't lock {}", path.display()));
                }
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        let args: Vec<String> = std::env::args().skip(1).collect();
        write!(
            file,
            "process {} (`{} {}` in {})",
            std::process::id(),
            program::name(),
            args.join(" "),
            std::env::current_dir().unwrap_or_default().display()
        )?;
        // What a program of a killed run still writes to goes the next time.
        let _ = remove_dir(&self.path("tmp"));
        Ok(CacheLock { _file: file })
    }

    /// Returns `name` in the cache; where it isn't there yet, has `make` make
    /// it in an empty folder first, which becomes `name` only when `make` succeeds.
    ///
    /// # Errors
    ///
    /// What `make` returns, or a folder that can't be created or renamed.
    pub(crate) fn once(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let place = self.path(name);
        if place.is_dir() {
            return Ok(place);
        }
        let work = self.scratch(&name.replace('/', "-"))?;
        make(&work)?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::rename(&work, &place)
            .with_context(|| format!("can't move {} into place", place.display()))?;
        Ok(place)
    }

    /// An empty folder that the next run removes. It is this process's own: a program that a killed
    /// run left behind may go on writing to its.
    ///
    /// # Errors
    ///
    /// When it can't be created.
    pub(crate) fn scratch(&self, name: &str) -> Result<PathBuf> {
        let own = self.path("tmp").join(std::process::id().to_string());
        let work = own.join(name);
        remove_dir(&work)?;
        fs::create_dir_all(&work).with_context(|| format!("can't create {}", work.display()))?;
        Ok(work)
    }

    /// The folders directly under `name`, sorted.
    pub(crate) fn list(&self, name: &str) -> Vec<PathBuf> {
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
    pub(crate) fn require_space(&self, need: u64, what: &str) -> Result<()> {
        let fs = statvfs(&self.dir)?;
        let free = fs.f_bavail.saturating_mul(fs.f_frsize);
        if free < need {
            bail!(
                "{what} needs {:.1} GB in {}, where {:.1} GB are free; free some space or set \
                 XDG_CACHE_HOME to a larger disk",
                gigabytes(need),
                self.dir.display(),
                gigabytes(free)
            );
        }
        Ok(())
    }

    /// Removes the whole cache.
    ///
    /// # Errors
    ///
    /// When something in it can't be removed.
    pub(crate) fn clear(&self) -> Result<()> {
        remove_dir(&self.dir)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for a message")]
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
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
pub(crate) fn remove_dir(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(e).with_context(|| format!("can't remove {}", dir.display()))
        }
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
    fn the_lock_is_exclusive_and_names_its_holder() {
        let (_dir, cache) = cache();
        let held = cache.lock().unwrap();
        let other = File::open(cache.path("lock")).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        let holder = fs::read_to_string(cache.path("lock")).unwrap();
        assert!(holder.contains(&std::process::id().to_string()), "{holder}");
        drop(held);
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_does_not_get_in_the_way() {
        let (_dir, cache) = cache();
        let left = cache.path("tmp").join("1").join("tools-x");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("half"), "").unwrap();
        drop(cache.lock().unwrap());
        assert!(!left.exists());
        // A process of that run that is still alive creates its folder again.
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("half"), "").unwrap();
        let made = cache.once("tools/x", |_| Ok(())).unwrap();
        assert_eq!(fs::read_dir(made).unwrap().count(), 0);
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
