// SPDX-License-Identifier: MIT OR Apache-2.0

//! The directory of one boot.
//!
//! It is needed to investigate a failure, so it outlives the boot; but directories of the same name
//! do not pile up: those of the last few runs are kept. A directory whose boot goes on is locked
//! and never removed.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::SystemTime,
};

use rustix::fs::{FlockOperation, flock};

use crate::{Error, Logs, Result};

/// Room that a run may need: captures with a snap length and a chatty log.
const NEEDED: u64 = 64 << 20;

/// Runs whose directories stay, beside those of this process. A run is a process: it may boot
/// several guests of one name.
const EARLIER_RUNS: usize = 2;

/// How much of the console an error shows.
const TAIL_LINES: usize = 25;

#[derive(Debug, Clone)]
pub(crate) struct RunDir {
    path: PathBuf,
    /// Locked as long as the boot goes on.
    _lock: Option<Arc<File>>,
}

impl RunDir {
    /// Makes a directory below `root` that no other boot has, named after the run, and removes
    /// what is left of old runs of that name.
    pub(crate) fn create(root: &Path, name: &str) -> Result<Self> {
        let failed = Error::unwritable(root);
        fs::create_dir_all(root).map_err(&failed)?;
        // QEMU changes nothing, but relative paths would depend on who starts it.
        let canonical = root.canonicalize().map_err(&failed)?;
        // No other run creates or removes directories meanwhile: a new one is not locked at once.
        let alone = File::open(&canonical).map_err(&failed)?;
        let locked = flock(&alone, FlockOperation::LockExclusive).is_ok();
        if locked {
            prune(&canonical, name);
        }

        let room = rustix::fs::statvfs(&canonical).map_err(|error| failed(error.into()))?;
        let free = room.f_bavail.saturating_mul(room.f_frsize);
        if free < NEEDED {
            return Err(Error::DiskFull {
                path: root.to_owned(),
                free,
                needed: NEEDED,
            });
        }
        for attempt in 0.. {
            let path = canonical.join(format!("{name}-{}-{attempt}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let _lock = try_lock(&path).map(Arc::new);
                    return Ok(Self { path, _lock });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// No directory of any run.
    pub(crate) fn nowhere() -> Self {
        Self {
            path: PathBuf::new(),
            _lock: None,
        }
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

    /// The processors' registers, of a guest that hung.
    pub(crate) fn registers(&self) -> PathBuf {
        self.file("registers.log")
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
        let registers = fs::read_to_string(self.registers()).unwrap_or_default();
        let processors: Vec<_> = registers
            .lines()
            .filter(|line| line.starts_with("RIP="))
            .collect();
        Logs {
            directory: self.path.clone(),
            console_tail: lines[start..].join("\n"),
            processors: processors.join("\n").into(),
        }
    }
}

/// Locks a directory; `None` if it is locked already, or cannot be locked.
fn try_lock(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

/// Removes directories of earlier runs of `name`, but for those of the last ones. What cannot be
/// removed stays: that is no reason not to boot.
fn prune(root: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    // By run: when something was last made in one of its directories, and the directories.
    let mut runs: BTreeMap<u32, (SystemTime, Vec<PathBuf>)> = BTreeMap::new();
    for entry in entries.flatten() {
        let Some(run) = entry
            .file_name()
            .to_str()
            .and_then(|file| run_of(file, name))
        else {
            continue;
        };
        let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else {
            continue;
        };
        let (last, paths) = runs.entry(run).or_insert((modified, Vec::new()));
        *last = modified.max(*last);
        paths.push(entry.path());
    }
    runs.remove(&process::id());

    let mut runs: Vec<_> = runs.into_values().collect();
    runs.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
    for path in runs
        .into_iter()
        .skip(EARLIER_RUNS)
        .flat_map(|(_, paths)| paths)
    {
        if let Some(_lock) = try_lock(&path) {
            let removed = fs::remove_dir_all(&path);
            tracing::debug!(directory = %path.display(), ?removed, "logs of an old run");
        }
    }
}

/// The process that made a directory `<name>-<process>-<attempt>`; `None` for any other.
fn run_of(file: &str, name: &str) -> Option<u32> {
    let (run, attempt) = file
        .strip_prefix(name)?
        .strip_prefix('-')?
        .split_once('-')?;
    attempt.parse::<u32>().ok()?;
    run.parse().ok()
}

fn read_lossy(path: &Path) -> String {
    // A log that is not there yet is empty.
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A place for the directories of boots.
    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        /// A directory as another process left it, `age` seconds ago.
        fn left(&self, name: &str, age: u64) -> PathBuf {
            let path = self.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("console.log"), "a log").unwrap();
            let then = SystemTime::now() - Duration::from_secs(age);
            File::open(&path).unwrap().set_modified(then).unwrap();
            path
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.path()).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    /// Processes that do not exist: beyond the largest that the kernel gives.
    const NOBODY: [&str; 4] = ["4194305", "4194306", "4194307", "4194308"];

    #[test]
    fn two_boots_of_the_same_name_get_directories_of_their_own() {
        let root = Root::new();
        let one = RunDir::create(root.path(), "case").unwrap();
        let two = RunDir::create(root.path(), "case").unwrap();
        assert_ne!(one.path(), two.path());
        assert!(one.path().is_dir() && two.path().is_dir());
    }

    #[test]
    fn directories_of_the_last_runs_are_kept_and_older_ones_removed() {
        let root = Root::new();
        let [oldest, old, late, latest] = NOBODY;
        root.left(&format!("case-{oldest}-0"), 400);
        root.left(&format!("case-{old}-0"), 300);
        // A run that booted twice is one run, as old as its last boot.
        root.left(&format!("case-{late}-0"), 500);
        root.left(&format!("case-{late}-1"), 200);
        root.left(&format!("case-{latest}-0"), 100);
        // Other names, and what is no run.
        let others = [
            format!("case-long-{old}-0"),
            "case-7".into(),
            "case-a-b".into(),
        ];
        for other in &others {
            root.left(other, 1000);
        }

        let mine: Vec<_> = (0..5)
            .map(|_| RunDir::create(root.path(), "case").unwrap())
            .collect();
        let mut kept: Vec<_> = others.into();
        kept.extend([
            format!("case-{late}-0"),
            format!("case-{late}-1"),
            format!("case-{latest}-0"),
        ]);
        let own = mine.iter().map(|run| run.path().file_name().unwrap());
        kept.extend(own.map(|name| name.to_str().unwrap().to_owned()));
        kept.sort();
        assert_eq!(root.names(), kept);
    }

    #[test]
    fn a_directory_whose_boot_goes_on_is_not_removed_however_old() {
        let root = Root::new();
        let running = root.left(&format!("case-{}-0", NOBODY[0]), 1000);
        let lock = try_lock(&running).expect("nobody has it");
        let over = root.left(&format!("case-{}-0", NOBODY[1]), 900);
        for nobody in &NOBODY[2..] {
            root.left(&format!("case-{nobody}-0"), 10);
        }
        let mine = RunDir::create(root.path(), "case").unwrap();
        assert!(running.join("console.log").is_file() && !over.exists());
        // So it is with a boot of this process, for others.
        assert!(try_lock(mine.path()).is_none());

        drop(lock);
        RunDir::create(root.path(), "case").unwrap();
        assert!(!running.exists(), "its boot is over");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = RunDir::create(Path::new("/proc/nobounce"), "case").unwrap_err();
        assert!(error.to_string().contains("/proc/nobounce"), "{error}");
    }
}
