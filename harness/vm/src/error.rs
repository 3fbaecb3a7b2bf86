// SPDX-License-Identifier: MIT OR Apache-2.0

//! What can go wrong with a guest.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use protocol::Failure;

use crate::scan::Finding;

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Where to look, and the end of what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// The run directory with the console's log, QEMU's output, the transcript and the pcaps.
    pub directory: PathBuf,
    /// The last lines of the console.
    pub console_tail: String,
    /// Where the processors are, of a guest that did not answer: a line each, else nothing.
    pub processors: Box<str>,
}

impl fmt::Display for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.console_tail.is_empty() {
            write!(f, "\nlast lines of the console:\n{}", self.console_tail)?;
        }
        if !self.processors.is_empty() {
            write!(f, "\nprocessors:\n{}", self.processors)?;
        }
        write!(f, "\nlogs: {}", self.directory.display())
    }
}

/// Why a guest could not be started, used or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment variable that names the manifest is not set.
    #[error(
        "{env} is not set: build the guest with `cargo xtask guest`, point {env} at the manifest that it names, or let `make test` do both",
        env = crate::ENV
    )]
    NoManifest,
    /// The manifest cannot be read.
    #[error("cannot read the guest's manifest {}: {error}; build the guest again", path.display())]
    ManifestUnreadable {
        /// The manifest.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The manifest is not what this version expects.
    #[error("the guest's manifest {} is not understood: {error}; build the guest again", path.display())]
    ManifestInvalid {
        /// The manifest.
        path: PathBuf,
        /// What the parser says.
        error: serde_json::Error,
    },
    /// A file that the manifest names is not there.
    #[error("the guest's {what} is missing: {}; build the guest again", path.display())]
    ImageMissing {
        /// Kernel or initramfs.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
    },
    /// The counter in QEMU did not count.
    #[error("the counter in QEMU failed: {message}{logs}")]
    Counter {
        /// What went wrong.
        message: String,
        /// Where to look.
        logs: Logs,
    },
    /// A value that the machine cannot have.
    #[error("{0}")]
    BadMachine(String),
    /// The directory for this run's logs cannot be made or written.
    #[error("cannot write logs to {}: {error}", path.display())]
    RunDirectory {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Too little room for the logs of a run.
    #[error("only {free} bytes are free for logs in {}, a run can need {needed}; free some, or delete old runs there", path.display())]
    DiskFull {
        /// The directory.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that a run may need.
        needed: u64,
    },
    /// The guest's memory could not be allocated or mapped.
    #[error("cannot make {bytes} bytes of memory for {name}: {message}")]
    Memory {
        /// Whose memory.
        name: &'static str,
        /// Size of the memory.
        bytes: u64,
        /// Why.
        message: String,
    },
    /// What a guest was cannot be kept, or not be read again.
    #[error("the snapshot {} cannot be used: {error}", path.display())]
    Snapshot {
        /// The snapshot.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// QEMU's program cannot be started.
    #[error(
        "cannot start QEMU ({program}): {error}; install qemu-system-x86, or build the guest again"
    )]
    QemuMissing {
        /// The first word of the command.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// QEMU ended on its own account.
    #[error("QEMU ended during {during} ({status}): {output}{logs}")]
    QemuEnded {
        /// What the host was doing.
        during: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        output: String,
        /// Where to look.
        logs: Logs,
    },
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked during {during}: {line}{logs}")]
    KernelPanic {
        /// What the host was doing.
        during: String,
        /// The first line of the complaint that led to the panic, or of the panic.
        line: String,
        /// Where to look.
        logs: Logs,
    },
    /// The agent panicked; a defect of the harness.
    #[error("the guest's agent panicked during {during}: {message}{logs}")]
    AgentPanicked {
        /// What the host was doing.
        during: String,
        /// Message and place.
        message: String,
        /// Where to look.
        logs: Logs,
    },
    /// The agent speaks another version of the protocol.
    #[error(
        "the guest's agent speaks version {agent} of the protocol, this program {host}: build the initramfs again"
    )]
    Version {
        /// The agent's version.
        agent: u32,
        /// This program's.
        host: u32,
    },
    /// The guest does not answer.
    #[error("no answer from the guest to {call} within {} s{logs}", timeout.as_secs())]
    Timeout {
        /// What was asked for.
        call: String,
        /// How long the host waited.
        timeout: Duration,
        /// Where to look.
        logs: Logs,
    },
    /// A job ended before what was waited for.
    #[error(
        "{job} ended before the event that was waited for; its outcome is in the transcript{logs}"
    )]
    JobEnded {
        /// The job.
        job: String,
        /// Where to look.
        logs: Logs,
    },
    /// The control channel broke or carried something that is no message.
    #[error("the control channel to the guest failed during {during}: {message}{logs}")]
    Channel {
        /// What the host was doing.
        during: String,
        /// What happened.
        message: String,
        /// Where to look.
        logs: Logs,
    },
    /// The guest answered that it could not do what was asked for.
    #[error("the guest could not do {call}: {failure} (console: {})", console.display())]
    Refused {
        /// What was asked for.
        call: String,
        /// What the guest said.
        failure: Failure,
        /// The console's log.
        console: PathBuf,
    },
    /// A command to QEMU's monitor failed.
    #[error("QEMU's monitor could not do {command}: {message}")]
    Monitor {
        /// The command.
        command: String,
        /// What the monitor said.
        message: String,
    },
    /// The guest has no accelerator, or its memory has no address yet.
    #[error("the accelerator's memory cannot be looked at: {0}")]
    NoAccelerator(String),
    /// A guest-physical address that is not the memory that was looked at, or an offset outside a
    /// dma-buf.
    #[error("{len} bytes at {address:#x} are not within {what}")]
    OutOfRange {
        /// What was looked at.
        what: &'static str,
        /// Address or offset.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// The kernel's log has unexpected complaints.
    #[error("the guest's kernel complained:\n{}\nlog: {}", list(findings), console.display())]
    KernelComplained {
        /// The complaints.
        findings: Vec<Finding>,
        /// The console's log.
        console: PathBuf,
    },
    /// The process with our devices has ended.
    #[error("the process with the models of devices has ended: {output}; log: {}", log.display())]
    DevicesEnded {
        /// What it printed.
        output: String,
        /// Its log.
        log: PathBuf,
    },
    /// A driver did to our devices what it must not do.
    #[error("a driver did to its device what it must not do:\n{}\nlog: {}", violations.join("\n"), log.display())]
    Violated {
        /// What it did, a line each.
        violations: Vec<String>,
        /// The devices' log.
        log: PathBuf,
    },
    /// The kernel's log lacks a complaint that was expected.
    #[error("the guest's kernel never logged {parts:?}; log: {}", console.display())]
    LogLineMissing {
        /// What it would contain.
        parts: Vec<String>,
        /// The console's log.
        console: PathBuf,
    },
}

impl Error {
    /// The error for a run directory, or a file in it, that can't be created or written.
    pub(crate) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::RunDirectory {
            path: path.clone(),
            error,
        }
    }

    /// The errno with which the guest's kernel refused a request.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { failure, .. } => failure.errno,
            _ => None,
        }
    }
}

fn list(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
