// SPDX-License-Identifier: MIT OR Apache-2.0

//! A line about one thing: what was found, what shows it, and what it means for which way.

use std::fmt;

use serde::Serialize;

/// A way in which payload is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// Device memory TCP, receiving
    Rx,
    /// Device memory TCP, sending
    Tx,
    /// io_uring zero-copy receive
    Zcrx,
    /// io_uring zero-copy receive without a device, which copies
    Nodev,
    /// Ordinary sockets
    Ordinary,
}

impl Way {
    pub(super) const ALL: [Self; 5] = [Self::Rx, Self::Tx, Self::Zcrx, Self::Nodev, Self::Ordinary];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rx => "devmem RX",
            Self::Tx => "devmem TX",
            Self::Zcrx => "zcrx",
            Self::Nodev => "zcrx without device",
            Self::Ordinary => "ordinary",
        })
    }
}

/// What a finding means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "detail", rename_all = "snake_case")]
pub(super) enum State {
    /// It is as it must be.
    Good,
    /// It is good to know.
    Note,
    /// It is not as it must be: the command that makes it so.
    Fix(String),
    /// It isn't known: why.
    Unknown(String),
    /// It is lacking: what.
    Lacks(String),
}

/// A line about one thing. The names of the fields are those of the JSON, which stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What it is about.
    pub(super) what: &'static str,
    /// What was found.
    pub(super) found: String,
    /// A command that shows it, as a shell takes it.
    pub(super) shown_by: String,
    /// `state` is `good`, `note`, `fix`, `unknown` or `lacks`, and `detail` says what: a command, or why.
    #[serde(flatten)]
    pub(super) state: State,
    /// The ways that need it.
    #[serde(rename = "for")]
    pub(super) ways: Vec<Way>,
}
