// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a part of the demonstration is: the wire, how long it took, where its logs are.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

/// The queue that is bound. Queue 0 cannot be: what is not TCP goes there.
pub(super) const QUEUE: u32 = 1;
/// MTU of the wire.
pub(super) const MTU: u32 = 9000;

/// How long a part took.
#[derive(Debug, Serialize)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
}

/// Where to look.
#[derive(Debug, Serialize)]
pub(super) struct Logs {
    pub(super) directory: PathBuf,
    pub(super) console: PathBuf,
    pub(super) transcript: PathBuf,
    pub(super) pcaps: Vec<PathBuf>,
}

impl Logs {
    pub(super) fn of(verdict: vm::Verdict) -> Self {
        Self {
            directory: verdict.directory,
            console: verdict.console,
            transcript: verdict.transcript,
            pcaps: verdict.pcaps,
        }
    }
}

/// A stage that shows no bytes.
pub(super) struct Timer {
    name: &'static str,
    step: crate::ui::Step,
    started: Instant,
}

impl Timer {
    pub(super) fn begin(name: &'static str, doing: &str) -> Self {
        Self {
            name,
            step: crate::ui::Step::begin(name, doing),
            started: Instant::now(),
        }
    }

    pub(super) fn done(self, outcome: &str) -> Stage {
        let seconds = self.started.elapsed().as_secs_f64();
        self.step.done(outcome);
        Stage {
            name: self.name,
            seconds,
        }
    }
}
