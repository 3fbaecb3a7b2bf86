// SPDX-License-Identifier: MIT OR Apache-2.0

//! What each job is to those who start it and give it commands.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use protocol::{Command, JobSpec};
use serde_json::Value;

/// How a running job receives commands.
pub(super) trait Control: Send + Sync {
    /// Carries out a command, or returns why it cannot.
    fn tell(&self, command: &Command) -> Result<()>;
}

/// A job that is set up: listening, connected or bound.
pub(super) struct Ready {
    pub(super) control: Arc<dyn Control>,
    /// Does the work and returns the outcome.
    pub(super) run: Box<dyn FnOnce() -> Result<Value> + Send>,
}

impl Ready {
    /// Ties the return type of `run` to the outcome that the protocol promises for the job.
    ///
    /// `run` gets what receives the commands.
    pub(super) fn new<J: JobSpec, C: Control + 'static>(
        control: Arc<C>,
        run: impl FnOnce(&C) -> J::Outcome + Send + 'static,
    ) -> Self {
        let own = Arc::clone(&control);
        let run = move || serde_json::to_value(run(&own)).context("encoding the outcome");
        Self {
            control,
            run: Box::new(run),
        }
    }
}

/// The error for a command that a job does not support.
pub(super) fn not_understood(job: &str, command: &Command) -> anyhow::Error {
    anyhow!("a {job} job does not understand {command:?}")
}
