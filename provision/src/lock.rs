// SPDX-License-Identifier: MIT OR Apache-2.0

//! Locks between runs. Each is a file that says who holds it; the kernel releases it when its holder
//! ends, however that may be.

use std::ffi::OsStr;
use std::io::{Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result};
use fs_err::{self as fs, File, OpenOptions};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::{program, ui};

/// A lock, held until it is dropped.
pub struct Lock(File);

impl Lock {
    /// Waits until no other run holds the lock, and says what for.
    ///
    /// # Errors
    ///
    /// When the file can't be opened or locked.
    pub fn hold(path: &Path, what: &str) -> Result<Self> {
        let mut file = open(path)?;
        lock(&mut file, path, what, Exclusive)?;
        let args: Vec<_> = std::env::args_os().skip(1).collect();
        let holder = format!(
            "{}(`{} {}` in {})",
            this_process(),
            program::name(),
            args.join(OsStr::new(" ")).to_string_lossy(),
            std::env::current_dir().unwrap_or_default().display()
        );
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(holder.as_bytes()))?;
        Ok(Self(file))
    }

    /// As [`Self::hold`], but others may share it.
    ///
    /// # Errors
    ///
    /// When the file can't be opened or locked.
    pub fn share(path: &Path, what: &str) -> Result<Self> {
        let mut file = open(path)?;
        lock(&mut file, path, what, Shared)?;
        Ok(Self(file))
    }

    /// Has the programs that this process runs hold it, too, as long as they live: they may outlive
    /// this process.
    ///
    /// # Errors
    ///
    /// When the kernel doesn't let it.
    pub fn inherited(self) -> Result<Self> {
        fcntl_setfd(&self.0, FdFlags::empty())?;
        Ok(self)
    }
}

/// Locks a folder, unless another process has it locked.
///
/// # Errors
///
/// When it can't be opened.
pub fn try_folder(path: &Path) -> Result<Option<File>> {
    let folder = File::open(path)?;
    let locked = flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(locked.then_some(folder))
}

fn this_process() -> String {
    format!("process {} ", std::process::id())
}

enum Kind {
    Exclusive,
    Shared,
}
use Kind::{Exclusive, Shared};

fn open(path: &Path) -> Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)?;
    Ok(file)
}

fn lock(file: &mut File, path: &Path, what: &str, kind: Kind) -> Result<()> {
    let (now, wait) = match kind {
        Exclusive => (
            FlockOperation::NonBlockingLockExclusive,
            FlockOperation::LockExclusive,
        ),
        Shared => (
            FlockOperation::NonBlockingLockShared,
            FlockOperation::LockShared,
        ),
    };
    if flock(&*file, now).is_ok() {
        return Ok(());
    }
    let mut holder = String::new();
    file.read_to_string(&mut holder)?;
    if holder.is_empty() {
        holder = "another run".to_owned();
    }
    // Of what this very process does at the same time, nothing is said.
    if !holder.starts_with(&this_process()) {
        ui::note(&format!("waiting for {what}, which {holder} has"));
    }
    // A signal may interrupt the wait without ending it.
    while let Err(error) = flock(&*file, wait) {
        if error != Errno::INTR {
            return Err(error).context(format!("can't lock {}", path.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_others_out_and_names_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks/x");
        let held = Lock::hold(&path, "x").unwrap();
        let other = File::open(&path).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockShared).is_err());
        let holder = fs::read_to_string(&path).unwrap();
        assert!(holder.contains(&std::process::id().to_string()), "{holder}");
        drop(held);
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    }

    #[test]
    fn those_who_share_a_lock_keep_out_only_who_wants_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let shared = [(); 2].map(|()| Lock::share(&path, "x").unwrap());
        let other = File::open(&path).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(shared);
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    }

    #[test]
    fn an_inherited_lock_is_held_as_long_as_a_program_of_a_killed_run_lives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let held = Lock::hold(&path, "x").unwrap().inherited().unwrap();
        let mut program = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        // What being killed does to the run's own.
        drop(held);
        let other = File::open(&path).unwrap();
        let early = flock(&other, FlockOperation::NonBlockingLockExclusive);
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(early.is_err(), "it was released under a program");
        drop(other);
        Lock::hold(&path, "x").unwrap();
    }
}
