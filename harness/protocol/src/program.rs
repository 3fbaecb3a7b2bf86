// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs that are not ours, in a root file system of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Ns, bytes::Bytes};

/// Mounts a root file system for programs, and in it what they expect of a kernel: `proc`, `sysfs`
/// and so on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MountRoot {
    /// What it is.
    pub source: RootSource,
    /// Where it is mounted. Made when it isn't there.
    pub directory: String,
    /// The name under which `ip netns` finds [`Ns::Peer`] in it.
    pub peer: String,
    /// Device nodes that all users may open, if they are there.
    pub for_users: Vec<String>,
}

/// A root file system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum RootSource {
    /// An ext4 file system, read-only but for `/run` and `/tmp`.
    Disk {
        /// The block device, for instance `/dev/vda`.
        device: String,
    },
    /// The host's, over 9p. What is changed goes to memory.
    Host {
        /// The mount tag of its root.
        tag: String,
        /// What is kept when it is changed.
        shares: Vec<Share>,
    },
}

/// A folder of the host that the guest may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its mount tag.
    pub tag: String,
    /// Where it is, on the host and in the guest.
    pub path: String,
}

/// Runs a program with a mounted root file system as its `/`, in a mount namespace of its own. What
/// it prints are its [`crate::Event::Output`]s.
///
/// [`crate::Command::Stop`] sends it SIGTERM, [`crate::Command::Kill`] kills its process group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {
    /// The network namespace that it runs in.
    pub ns: Ns,
    /// [`MountRoot::directory`].
    pub root: String,
    /// The folder that it runs in, as it sees it.
    pub directory: String,
    /// The program, as it sees the file system, and its arguments.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Whom it runs as; root if nobody is named.
    pub user: Option<User>,
    /// Its standard streams.
    pub streams: Streams,
}

/// Whom a program runs as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User ID.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// What a program's standard streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Streams {
    /// No input, and one pipe for output and errors.
    Merged,
    /// A pipe each. Input comes by [`ProgramCommand::Input`].
    Pipes,
    /// A terminal of its own, which is its controlling terminal.
    Terminal {
        /// The terminal's size.
        size: WindowSize,
        /// Whether there is a pipe for standard error instead.
        errors_apart: bool,
    },
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// Where a program has written something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output, or its terminal, or either where they are merged.
    Output,
    /// Standard error.
    Error,
}

/// Something for a running [`Program`], by [`crate::Command::Program`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramCommand {
    /// These bytes are its next input. Answered when they are in the pipe.
    Input(Bytes),
    /// There is no more input.
    CloseInput,
    /// Sends this signal to its process group.
    Signal(i32),
    /// Its terminal has this size now.
    Resize(WindowSize),
}

/// Outcome of [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramReport {
    /// It ended by itself.
    Exited {
        /// Its exit status.
        status: i32,
    },
    /// A signal ended it.
    Killed {
        /// Which one.
        signal: i32,
    },
}

/// Waits until a TCP socket listens in a namespace that didn't before. Fails after the timeout.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaitListening {
    /// Where.
    pub ns: Ns,
    /// Ports that don't count.
    pub except: Vec<u16>,
    /// How long to wait; 0 only looks.
    pub timeout_ms: u64,
}
