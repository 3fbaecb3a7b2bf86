// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which snapshots of guests stay.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use fs_err as fs;
use provision::files;
use rustix::fs::{FlockOperation, flock};

use crate::cache;

/// How many the lab keeps, each of 100 to 200 MB.
const LAB: usize = 4;
/// When a machine that no guest came of is tried again.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes snapshots of guests that are no more. Tests of another run may be taking one.
///
/// # Errors
///
/// When they can't be removed.
pub(crate) fn forget(snapshots: &Path) -> Result<()> {
    let old = snapshots.with_extension("old");
    // What a run left that was stopped here.
    cache::remove_dir(&old)?;
    if snapshots.exists() {
        fs::rename(snapshots, &old)?;
        // The next time will do.
        let _ = cache::remove_dir(&old);
    }
    Ok(())
}

/// Removes all but those that guests of the lab resumed from last, or were taken of.
///
/// # Errors
///
/// When the folder can't be read. What can't be removed is the next time's.
pub(crate) fn keep_latest(snapshots: &Path) -> Result<()> {
    if !snapshots.exists() {
        return Ok(());
    }
    let mut folders = Vec::new();
    for path in files::entries(snapshots)? {
        // Another run removes them, too.
        let Ok(metadata) = path.metadata() else {
            continue;
        };
        let used = used(&metadata);
        let is_old = used.elapsed().is_ok_and(|age| age > DAY);
        match (path.extension(), metadata.is_dir()) {
            (None, _) => folders.push((used, path)),
            // One that is being taken or removed, or was when a run was killed.
            (Some(_), true) if is_old => drop(cache::remove_dir(&path)),
            (Some(_), false) if is_old => drop(fs::remove_file(path)),
            _ => {}
        }
    }
    folders.sort();
    let too_many = folders.len().saturating_sub(LAB);
    for (_, path) in folders.drain(..too_many) {
        remove(&path);
    }
    Ok(())
}

fn used(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Removes a snapshot, unless a run is resuming from it. It is renamed first, so that no run finds it
/// half removed.
fn remove(path: &Path) {
    let Ok(folder) = File::open(path) else {
        return;
    };
    if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let old = path.with_extension("old");
    let _ = fs::rename(path, &old);
    let _ = cache::remove_dir(&old);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshots_that_were_used_last_stay() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = dir.path().join("snapshots");
        keep_latest(&snapshots).unwrap();
        let now = SystemTime::now();
        let make = |name: &str, age: Duration| {
            let path = snapshots.join(name);
            if name.contains('.') {
                fs::write(&path, "").unwrap();
            } else {
                fs::create_dir_all(path.join("ram")).unwrap();
            }
            File::open(path).unwrap().set_modified(now - age).unwrap();
        };
        for (name, minutes) in [("c", 3), ("f", 1), ("a", 9), ("e", 2), ("d", 5), ("b", 7)] {
            make(name, Duration::from_secs(60 * minutes));
        }
        make("a.lock", Duration::from_secs(60));
        make("b.bad", 2 * DAY);
        // Somebody resumes from it.
        let read = File::open(snapshots.join("a")).unwrap();
        flock(&read, FlockOperation::LockShared).unwrap();
        keep_latest(&snapshots).unwrap();
        let mut left: Vec<_> = files::entries(&snapshots).unwrap();
        left.sort();
        let names = ["a", "a.lock", "c", "d", "e", "f"].map(|name| snapshots.join(name));
        assert_eq!(left, names);
    }
}
