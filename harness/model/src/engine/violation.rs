// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a driver must not do. What users must not do is in their completions.

use std::fmt;

use crate::lies::Misled;

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Nothing answers at an address of a window, or of a signal.
    Unreachable,
    /// A window was closed or moved while its queue reached memory.
    Closed,
    /// A queue was enabled before it had come to rest.
    Early,
}

/// Something that a driver must not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What was wrong.
    pub what: What,
    /// With which queue.
    pub queue: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at the engine's queue {}", self.what, self.queue)
    }
}

/// What a driver did.
#[derive(Debug, Default)]
pub(super) struct Record {
    violations: Vec<Violation>,
    /// Queues whose windows the driver may close though they go on.
    pub(super) misled: Misled<usize>,
}

impl Record {
    pub(super) fn violated(&mut self, what: What, queue: usize) {
        if !self.misled.has(queue) {
            self.violations.push(Violation { what, queue });
        }
    }

    pub(super) fn take(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }
}
