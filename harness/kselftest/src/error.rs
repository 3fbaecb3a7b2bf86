// SPDX-License-Identifier: MIT OR Apache-2.0

//! What can go wrong besides a test.

use std::io;
use std::path::PathBuf;

/// Result of this crate's functions.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that no test has.
    #[error("there is no test {name}; there are {}", .known.join(", "))]
    UnknownTest {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// A file of results can't be read.
    #[error("can't read {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file has something else than results.
    #[error("{} is not understood", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// Results can't be written.
    #[error("can't write {}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Sub-cases that passed once, and do not.
    #[error(
        "{} sub-cases did better when Documentation/selftests.json was written:\n  {}",
        .0.len(), .0.join("\n  ")
    )]
    Lost(
        /// Each with what came instead.
        Vec<String>,
    ),
}
