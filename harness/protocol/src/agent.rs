// SPDX-License-Identifier: MIT OR Apache-2.0

//! The agent itself.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Who is there? Also sent unasked as [`crate::Message::Ready`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {}

/// Answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// [`crate::VERSION`] of the agent.
    pub version: u32,
    /// `uname -r`.
    pub kernel_release: String,
    /// The kernel's command line.
    pub command_line: String,
    /// Processors that are online.
    pub cpus: usize,
    /// Memory that the kernel found, in bytes.
    pub memory: u64,
    /// Size of a page, in bytes.
    pub page_size: usize,
}

/// Tells a guest that it resumed from a snapshot. Guests of one would all draw the same random numbers, and
/// it would be the time of day for them that it was then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Resumed {
    /// For the kernel's random number generator, from the host's.
    pub random: [u8; 32],
    /// The time of day, since 1970.
    pub time: Duration,
}

/// Sends the guest to sleep (suspend-to-RAM). The reply comes when it is awake again; what is sent to it
/// meanwhile is lost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sleep {}

/// Turns the guest off, after the reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PowerOff {}

/// Makes the agent panic: for the tests of what the host does then. There is no reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Panic {
    /// The panic's message.
    pub message: String,
}
