// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a guest was when it had just booted, or was prepared: the next of a machine that is alike goes on
//! from there.
//!
//! Where a processor is emulated, booting is most of what a short case takes. A snapshot is a
//! directory: the guest's RAM as a sparse file, what QEMU says of all else (migration, with
//! `x-ignore-shared`: the RAM is not QEMU's to move), the kernel's log and the agent's first message. The
//! memory of an accelerator is kept like RAM.
//! Many processes do this at once. One at a time takes snapshots, under another name until all of it
//! is there; who goes on from one holds its directory, and never sees a part of another.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Read, Seek, SeekFrom},
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant, SystemTime},
};

use protocol::agent::AgentInfo;
use rustix::{
    fs::{FlockOperation, SeekFrom as Sparse, flock, seek, statvfs},
    io::Errno,
};
use serde_json::json;

use crate::{
    Error, Images, Machine, Result,
    machine::Moment,
    memory::Backing,
    qemu::{self, Inherited},
    qmp::Monitor,
    run_dir::RunDir,
    scan::scan,
    tsc,
};

/// How long QEMU may take to write or read the state of its devices, and the agent to answer then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Room that a snapshot has to leave for others, in bytes.
const ROOM: u64 = 1 << 30;

const RAM: &str = "ram";
const ACCELERATOR: &str = "accelerator";
const DEVICES: &str = "devices";
const CONSOLE: &str = "console.log";
const AGENT: &str = "agent.json";

/// Where the snapshot of a machine is, or would be.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

/// A snapshot that is whole, and stays so whatever becomes of its name.
#[derive(Debug)]
pub(crate) struct Snapshot {
    dir: File,
    /// What the agent said at its start.
    pub(crate) info: AgentInfo,
}

/// What the guest has that is not QEMU's to move.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memories<'a> {
    pub(crate) ram: &'a Backing,
    pub(crate) accelerator: Option<&'a Backing>,
}

impl<'a> Memories<'a> {
    /// Each with the name of its file.
    fn iter(self) -> impl Iterator<Item = (&'static str, &'a Backing)> {
        let accelerator = self.accelerator.map(|memory| (ACCELERATOR, memory));
        [(RAM, self.ram)].into_iter().chain(accelerator)
    }
}

impl Place {
    /// `None` for a machine that boots each time: one that did not ask, one that has other means
    /// (KVM) or another purpose (counting), and one whose kernel has to find out how fast its clock
    /// is.
    pub(crate) fn of(machine: &Machine, images: &Images, hypervisors: &[&str]) -> Option<Self> {
        let able = qemu::is_emulated(hypervisors) && !machine.counted && machine.cables.is_none();
        let root = images.snapshots.as_ref();
        let root = root.filter(|_| able)?;
        let moment = machine.snapshot.as_ref()?;
        let khz = tsc::khz()?;
        let mut hasher = DefaultHasher::new();

        lasting_arguments(machine, images, hypervisors, khz).hash(&mut hasher);
        // Rounded to MHz: it is measured each time.
        ((khz + 500) / 1000).hash(&mut hasher);
        files(machine, images).hash(&mut hasher);
        let rom = machine.nic_rom.as_ref();
        rom.and_then(|path| fs::read(path).ok()).hash(&mut hasher);
        moment.hash(&mut hasher);
        protocol::VERSION.hash(&mut hasher);
        Some(Self(root.join(format!("{:016x}", hasher.finish()))))
    }

    /// The snapshot, if there is one.
    pub(crate) fn open(&self) -> Option<Snapshot> {
        let dir = File::open(&self.0).ok()?;
        // Who removes old ones takes the lock alone.
        flock(&dir, FlockOperation::NonBlockingLockShared).ok()?;
        let text = fs::read(within(&dir, AGENT)).ok()?;
        let info = serde_json::from_slice(&text).ok()?;
        // Who removes old ones sees when they were of use.
        let _ = dir.set_modified(SystemTime::now());
        Some(Snapshot { dir, info })
    }

    /// No guest came of the snapshot: none will be tried again, or taken. The file that says so says why.
    pub(crate) fn give_up(&self, error: &Error) {
        let _ = fs::write(self.given_up(), error.to_string());
    }

    /// Whether machines of this kind boot, since no guest came of their snapshot.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up().exists()
    }

    fn given_up(&self) -> PathBuf {
        self.0.with_extension("bad")
    }

    /// Takes one of a guest, which goes on afterwards, unless somebody else is
    /// about to, or its kernel complained: all others would have complained.
    ///
    /// # Errors
    ///
    /// [`Error::Snapshot`] when there will be none; others when the guest is lost with it.
    pub(crate) fn take(
        &self,
        monitor: &mut Monitor,
        memories: Memories<'_>,
        run: &RunDir,
        info: &AgentInfo,
    ) -> Result<()> {
        let failed = |error: io::Error| Error::Snapshot {
            path: self.0.clone(),
            error,
        };
        if !scan(&run.console_text()).is_empty() {
            return Ok(());
        }
        let root = self.0.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(root).map_err(failed)?;
        let lock = File::create(self.0.with_extension("lock")).map_err(failed)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() || self.open().is_some()
        {
            return Ok(());
        }
        let room = statvfs(root).map_err(|error| failed(error.into()))?;
        let mut needed = ROOM;
        for (_, memory) in memories.iter() {
            needed += memory.file().metadata().map_err(failed)?.blocks() * 512;
        }
        if room.f_bavail.saturating_mul(room.f_frsize) < needed {
            return Err(failed(io::ErrorKind::StorageFull.into()));
        }
        // What a process left that was killed here.
        let new = self.0.with_extension("new");
        let _ = fs::remove_dir_all(&new);
        let _ = fs::remove_dir_all(&self.0);
        fs::create_dir(&new).map_err(failed)?;
        let dir = File::open(&new).map_err(failed)?;

        monitor.execute("stop", json!({}))?;
        let kept = migrate(monitor, "migrate", &dir).and_then(|migrated| {
            migrated.map_err(|message| failed(io::Error::other(message)))?;
            for (name, memory) in memories.iter() {
                let file = File::create(within(&dir, name)).map_err(failed)?;
                copy(memory.file(), &file).map_err(failed)?;
            }
            if let Some(memory) = memories.accelerator {
                let len = memory.file().metadata().map_err(failed)?.len();
                unmap_accelerator(&within(&dir, DEVICES), len).map_err(failed)?;
            }
            fs::copy(run.console(), within(&dir, CONSOLE)).map_err(failed)?;
            fs::write(within(&dir, AGENT), json!(info).to_string()).map_err(failed)?;
            fs::rename(&new, &self.0).map_err(failed)
        });
        monitor.execute("cont", json!({}))?;
        if let Err(error) = &kept {
            let _ = fs::remove_dir_all(&new);
            self.give_up(error);
        }
        kept
    }
}

impl Snapshot {
    /// Prepares what QEMU starts with: its memories, and the log so far.
    ///
    /// # Errors
    ///
    /// [`Error::Snapshot`].
    pub(crate) fn lay_out(&self, memories: Memories<'_>, run: &RunDir) -> Result<()> {
        let failed = |error| self.failed(error);
        for (name, memory) in memories.iter() {
            let source = File::open(within(&self.dir, name)).map_err(failed)?;
            copy(&source, memory.file()).map_err(failed)?;
        }
        fs::copy(within(&self.dir, CONSOLE), run.console()).map_err(failed)?;
        Ok(())
    }

    /// Has a QEMU that was started with `-incoming defer` go on.
    ///
    /// # Errors
    ///
    /// [`Error::Snapshot`], [`Error::Monitor`].
    pub(crate) fn resume(&self, monitor: &mut Monitor) -> Result<()> {
        // No announcements: no frame crosses its wires that would not after a boot.
        monitor.execute("migrate-set-parameters", json!({ "announce-rounds": 0 }))?;
        migrate(monitor, "migrate-incoming", &self.dir)?
            .map_err(|message| self.failed(io::Error::other(message)))?;
        // It was stopped when it was kept.
        monitor.execute("cont", json!({})).map(drop)
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Snapshot {
            path: fs::read_link(within(&self.dir, "")).unwrap_or_default(),
            error,
        }
    }
}

/// QEMU's arguments, except for those of a single run, and the clock's rate.
fn lasting_arguments(
    machine: &Machine,
    images: &Images,
    hypervisors: &[&str],
    khz: u64,
) -> Vec<String> {
    let (run, fds) = (RunDir::nowhere(), Inherited::NONE);
    let mut machine = machine.clone();
    // The guest has mounted none of these folders yet.
    for export in &mut machine.exports {
        export.path = PathBuf::new();
    }
    let arguments = qemu::arguments(&machine, images, &run, hypervisors, &fds, None, false);
    let rate = format!(" {}", tsc::parameter(khz));
    let arguments = arguments.iter().map(|word| word.to_string_lossy());
    let environment = images
        .qemu
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let program = images.qemu.argv.iter().cloned();

    program
        .chain(environment)
        .chain(arguments.map(|word| word.replace(&rate, "")))
        .collect()
}

/// What tells a file that a machine is made of from another of its name: inode, length, time of its
/// last change. QEMU's own are named among its first words. This program is one that prepares guests.
fn files(machine: &Machine, images: &Images) -> Vec<(u64, u64, i64, i64)> {
    let words = images.qemu.argv.iter().map(Path::new);
    let boot = [&images.kernel, &images.initramfs].map(PathBuf::as_path);

    let prepared = matches!(machine.snapshot, Some(Moment::Prepared(_)));
    let program = prepared.then_some(Path::new("/proc/self/exe"));

    words
        .chain(boot)
        .chain(program)
        .chain(machine.disk.as_deref())
        .filter_map(|file| fs::metadata(file).ok())
        .map(|found| (found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        .collect()
}

/// A file in a directory, whatever its name is by now; for this process and its children.
fn within(dir: &File, name: &str) -> PathBuf {
    let process = process::id();
    Path::new("/proc")
        .join(format!("{process}/fd/{}", dir.as_raw_fd()))
        .join(name)
}

/// Lets QEMU write all but shared memory to a snapshot, or read it, and waits until it has, or says
/// why not.
fn migrate(
    monitor: &mut Monitor,
    command: &str,
    dir: &File,
) -> Result<std::result::Result<(), String>> {
    let ignore = json!([{ "capability": "x-ignore-shared", "state": true }]);
    monitor.execute(
        "migrate-set-capabilities",
        json!({ "capabilities": ignore }),
    )?;
    let uri = format!("file:{}", within(dir, DEVICES).display());
    monitor.execute(command, json!({ "uri": uri }))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = monitor.execute("query-migrate", json!({}))?;
        // It is said to be completed a moment before the machine may go on.
        let state = monitor.execute("query-status", json!({}))?;
        let going_on = state["status"] == "finish-migrate";
        match status["status"].as_str() {
            Some("completed") if !going_on => return Ok(Ok(())),
            Some("failed" | "cancelled") if !going_on => return Ok(Err(status.to_string())),
            _ if Instant::now() > deadline => {
                return Err(Error::Monitor {
                    command: command.to_owned(),
                    message: format!("it takes too long: {status}"),
                });
            }
            _ => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Has what QEMU wrote say that the accelerator's memory was mapped nowhere.
///
/// QEMU looks whether memory that it does not move is where it was, before it restores the BAR that
/// this memory is behind: the new machine has not mapped it yet, and so its address is 0
/// (`parse_ramblock()` in QEMU's migration/ram.c). The memory's entry has its name, its length
/// and that address, numbers of 64 bits in network byte order.
fn unmap_accelerator(devices: &Path, len: u64) -> io::Result<()> {
    let mut bytes = fs::read(devices)?;
    let entry = [qemu::ACCELERATOR_MEMORY.as_bytes(), &len.to_be_bytes()].concat();
    let windows = bytes.windows(entry.len()).enumerate();
    let mut found = windows.filter(|(_, window)| *window == entry);
    let address = match (found.next(), found.next()) {
        (Some((at, _)), None) => at + entry.len(),
        _ => {
            return Err(io::Error::other(
                "QEMU did not say once where the accelerator's memory is",
            ));
        }
    };
    match bytes.get_mut(address..address + size_of::<u64>()) {
        Some(address) => address.fill(0),
        None => return Err(io::ErrorKind::UnexpectedEof.into()),
    }
    fs::write(devices, bytes)
}

/// Copies a file with its holes.
fn copy(source: &File, target: &File) -> io::Result<()> {
    let len = source.metadata()?.len();
    target.set_len(len)?;
    let mut buffer = vec![0; 1 << 20];
    let mut end = 0;
    loop {
        let start = match seek(source, Sparse::Data(end)) {
            Ok(start) => start,
            // No data behind this.
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        end = seek(source, Sparse::Hole(start))?;
        let mut reader = source;
        reader.seek(SeekFrom::Start(start))?;
        let mut at = start;
        while at < end {
            let part = buffer.len().min((end - at) as usize);
            reader.read_exact(&mut buffer[..part])?;
            target.write_all_at(&buffer[..part], at)?;
            at += part as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_copied_with_its_holes() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(true);
            options.open(dir.path().join(name)).unwrap()
        };
        let (source, target) = (open("source"), open("target"));
        source.set_len(64 << 20).unwrap();
        source.write_all_at(b"first", 0).unwrap();
        let long: Vec<u8> = (0..3 << 20).map(|byte| (byte % 251) as u8).collect();
        source.write_all_at(&long, (16 << 20) + 123).unwrap();
        copy(&source, &target).unwrap();

        let (mut one, mut other) = (vec![0; 64 << 20], vec![0; 64 << 20]);
        source.read_exact_at(&mut one, 0).unwrap();
        target.read_exact_at(&mut other, 0).unwrap();
        assert!(one == other, "the copy differs");
        assert_eq!(target.metadata().unwrap().len(), 64 << 20);
        let blocks = target.metadata().unwrap().blocks() * 512;
        assert!(blocks < 8 << 20, "{blocks} bytes are allocated");
    }
}
