// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a driver must not do. What users must not do is in their completions.

use std::fmt;

use engine::regs::QUEUES;

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
    /// Queues that were said to rest before they did: a bit each.
    misled: u32,
    /// How often in a row each queue's status has read as that of a device that is gone.
    ones: [u32; QUEUES as usize],
}

impl Record {
    /// A queue's state was another one than its driver was told, which can't know better until it has rested.
    pub(super) fn mislead(&mut self, queue: usize) {
        self.misled |= 1 << queue;
    }

    /// A queue read as one that is gone.
    pub(super) fn seem_gone(&mut self, queue: usize) {
        self.ones[queue] = self.ones[queue].saturating_add(1);
    }

    /// A queue was said not to rest.
    pub(super) fn seem_there(&mut self, queue: usize) {
        self.ones[queue] = 0;
    }

    /// Whatever was said of it, a queue rests, or has begun anew.
    pub(super) fn settled(&mut self, queue: usize) {
        self.misled &= !(1 << queue);
        self.ones[queue] = 0;
    }

    pub(super) fn violated(&mut self, what: What, queue: usize) {
        // A driver that frees memory because the device is gone has to read again.
        let is_excused = self.misled >> queue & 1 != 0 || self.ones[queue] > 1;
        if !is_excused {
            self.violations.push(Violation { what, queue });
        }
    }

    pub(super) fn take(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }
}
