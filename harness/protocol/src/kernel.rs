// SPDX-License-Identifier: MIT OR Apache-2.0

//! The guest's kernel: its files, its log, its modules and its memory.

use serde::{Deserialize, Serialize};

use crate::{Failure, Ns, Request};

/// Reads a text file, for instance from sysfs, procfs or debugfs.
///
/// Fails with the errno of the file system, and without one above 1 MiB.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadFile {
    /// Namespace that files below `/proc/sys/net` and `/proc/thread-self/net` speak of.
    pub ns: Ns,
    /// Absolute path.
    pub path: String,
}

impl ReadFile {
    /// The request with these fields.
    pub fn new(ns: Ns, path: impl Into<String>) -> Self {
        Self {
            ns,
            path: path.into(),
        }
    }
}

/// Writes a text into an existing file with one `write`, as `echo` does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteFile {
    /// Namespace that files below `/proc/sys/net` speak of.
    pub ns: Ns,
    /// Absolute path.
    pub path: String,
    /// What to write.
    pub contents: String,
}

impl WriteFile {
    /// The request with these fields.
    pub fn new(ns: Ns, path: impl Into<String>, contents: impl Into<String>) -> Self {
        Self {
            ns,
            path: path.into(),
            contents: contents.into(),
        }
    }
}

/// Writes a line into the kernel's log, so that the console shows what a test was doing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogLine {
    /// The line.
    pub text: String,
}

/// Loads `/lib/modules/<name>.ko`; its dependencies must be loaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadModule {
    /// File name without `.ko`.
    pub name: String,
    /// Module parameters, `key=value` separated by spaces.
    pub parameters: String,
}

/// Unloads a module. EWOULDBLOCK when it has references.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnloadModule {
    /// The module's name; `-` and `_` are the same.
    pub name: String,
}

impl UnloadModule {
    /// The request with these fields.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// All loaded modules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListModules {}

/// A loaded kernel module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Name, with underscores.
    pub name: String,
    /// Who holds it, from /proc/modules; a module with references cannot be unloaded.
    pub references: u64,
}

/// The functions of all loaded modules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListFunctions {
    /// And those of the kernel itself whose names start with this.
    pub of_kernel: Option<String>,
}

/// A function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// Where it starts.
    pub address: u64,
    /// Its name, mangled as its language does.
    pub name: String,
    /// The module that it belongs to, if it is not the kernel's own.
    pub module: Option<String>,
}

/// Leaked kernel memory, as kmemleak reports it: empty when there is
/// none, and nothing from a kernel without kmemleak. It takes seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindLeaks {}

/// Makes every processor free the skbs that others left to it (`skb_attempt_defer_free()`): an idle
/// one does so when it next receives something, whenever that is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FreeDeferred {}

/// Does a request while the kernel fails one allocation of it (`fail-nth` in the kernel's
/// Documentation/fault-injection). Which allocations are counted is set in debugfs.
///
/// Fails when the kernel has no fault injection, and not when the request does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inject {
    /// Which of them, from 1.
    pub nth: u32,
    /// What to do. It must be for the local namespace.
    pub request: Box<Request>,
}

/// Answer to [`Inject`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Injected {
    /// An allocation failed; otherwise there were fewer.
    pub fired: bool,
    /// The answer to the request.
    pub reply: Result<serde_json::Value, Failure>,
}
