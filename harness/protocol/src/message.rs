// SPDX-License-Identifier: MIT OR Apache-2.0

//! The envelopes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Event, Request, agent::AgentInfo};

/// Number of a job, unique within one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// Host to guest: one question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the host; the reply carries it.
    pub id: u64,
    /// What to do.
    pub request: Request,
}

/// Guest to host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Message {
    /// The first message of a boot: the agent is ready for calls.
    Ready(AgentInfo),
    /// The answer to the call with this number.
    Reply {
        /// The call's.
        id: u64,
        /// [`crate::Query::Reply`] of the request as JSON, or why there is none.
        result: Result<Value, Failure>,
    },
    /// Something that a job did.
    Event {
        /// Which job.
        job: JobId,
        /// What happened.
        event: Event,
    },
    /// A line could not be understood, so there is no number to answer to.
    Confused {
        /// What was wrong with it.
        error: String,
    },
    /// The agent panicked; the guest powers off.
    Panicked {
        /// Message and place.
        message: String,
    },
}

/// Why the guest could not do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kernel's error number as a positive value, where the kernel said no.
    pub errno: Option<i32>,
    /// What was tried and what was said, including the kernel's extended acknowledgement.
    pub message: String,
}
