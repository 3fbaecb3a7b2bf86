// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs that are not ours, in a root file system of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Mounts a root file system for programs, and in it what they expect of a kernel: `proc`, `sysfs`
/// and so on. It is read-only, `/run` and `/tmp` are not.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MountRoot {
    /// The block device, for instance `/dev/vda`.
    pub device: String,
    /// Where it is mounted. Made when it isn't there.
    pub directory: String,
    /// The name under which `ip netns` finds [`crate::Ns::Peer`] in it.
    pub peer: String,
}

/// Runs a program with a mounted root file system as its `/`, in a mount namespace of its own. What
/// it prints on either stream are its [`crate::Event::Line`]s.
///
/// [`crate::Command::Stop`] sends it SIGTERM, [`crate::Command::Kill`] kills its process group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Program {
    /// [`MountRoot::directory`].
    pub root: String,
    /// The folder that it runs in, as it sees it.
    pub directory: String,
    /// The program, as it sees the file system, and its arguments.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
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
