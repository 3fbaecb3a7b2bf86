// SPDX-License-Identifier: MIT OR Apache-2.0

//! What can go wrong.

use std::{io, process::ExitStatus};

/// What keeps QEMU's model from being asked. Ours never fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// QEMU could not be started, or its sockets not be made.
    #[error("QEMU does not start: {0}")]
    Start(#[source] io::Error),
    /// QEMU has ended.
    #[error("QEMU has ended ({0})")]
    Ended(ExitStatus),
    /// A socket failed, or QEMU did not answer in time.
    #[error("QEMU does not answer {command:?}: {error}")]
    Silent {
        /// The command, its first bytes.
        command: String,
        /// What the socket said.
        #[source]
        error: io::Error,
    },
    /// QEMU refused a command, or answered what is no answer to it.
    #[error("QEMU answers {command:?} with {answer:?}")]
    Refused {
        /// The command, its first bytes.
        command: String,
        /// The whole answer.
        answer: String,
    },
    /// The wire failed.
    #[error("the wire fails: {0}")]
    Wire(#[source] io::Error),
    /// The link did not come up.
    #[error("there is no link")]
    NoLink,
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
