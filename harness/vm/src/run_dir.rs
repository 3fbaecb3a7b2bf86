// SPDX-License-Identifier: MIT OR Apache-2.0

//! The directory of one boot. It is never deleted here: whoever looks for a failure needs it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use crate::{Error, Logs, Result};

/// Room that a run may need: captures with a snap length and a chatty log.
const NEEDED: u64 = 64 << 20;

/// How much of the console an error shows.
const TAIL_LINES: usize = 25;

#[derive(Debug, Clone)]
pub(crate) struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes a directory below `root` that no other boot has, named after the run.
    pub(crate) fn create(root: &Path, name: &str) -> Result<Self> {
        let failed = |error| Error::RunDirectory {
            path: root.to_owned(),
            error,
        };
        fs::create_dir_all(root).map_err(failed)?;
        let room = rustix::fs::statvfs(root).map_err(|error| failed(error.into()))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        if free < NEEDED {
            return Err(Error::DiskFull {
                path: root.to_owned(),
                free,
                needed: NEEDED,
            });
        }
        // QEMU changes nothing, but relative paths would depend on who starts it.
        let root = root.canonicalize().map_err(failed)?;
        for attempt in 0.. {
            let path = root.join(format!("{name}-{}-{attempt}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The kernel's log.
    pub(crate) fn console(&self) -> PathBuf {
        self.file("console.log")
    }

    /// What QEMU prints.
    pub(crate) fn qemu_output(&self) -> PathBuf {
        self.file("qemu.log")
    }

    /// Every message between host and guest.
    pub(crate) fn transcript(&self) -> PathBuf {
        self.file("transcript.log")
    }

    /// The console's text so far; bytes that are no text are replaced.
    pub(crate) fn console_text(&self) -> String {
        read_lossy(&self.console())
    }

    pub(crate) fn qemu_text(&self) -> String {
        read_lossy(&self.qemu_output()).trim_end().to_owned()
    }

    /// What an error shows.
    pub(crate) fn logs(&self) -> Logs {
        let text = self.console_text();
        let lines: Vec<_> = text.lines().collect();
        let start = lines.len().saturating_sub(TAIL_LINES);
        Logs {
            directory: self.path.clone(),
            console_tail: lines[start..].join("\n"),
        }
    }
}

fn read_lossy(path: &Path) -> String {
    // A log that is not there yet is empty.
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_boots_of_the_same_name_get_directories_of_their_own() {
        let root = std::env::temp_dir().join(format!("nobounce-run-dir-{}", process::id()));
        let one = RunDir::create(&root, "case").unwrap();
        let two = RunDir::create(&root, "case").unwrap();
        assert_ne!(one.path(), two.path());
        assert!(one.path().is_dir() && two.path().is_dir());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = RunDir::create(Path::new("/proc/nobounce"), "case").unwrap_err();
        assert!(error.to_string().contains("/proc/nobounce"), "{error}");
    }
}
