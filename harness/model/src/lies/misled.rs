// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues that do not rest though their driver was told so: what it does to their memory is not its fault.

use std::collections::BTreeSet;

/// Queues of which the driver has a wrong idea.
#[derive(Debug)]
pub(crate) struct Misled<Q> {
    /// They were said to rest, or to be gone.
    queues: BTreeSet<Q>,
    /// They read as gone once. A driver that frees memory has to read again.
    doubted: BTreeSet<Q>,
}

impl<Q> Default for Misled<Q> {
    fn default() -> Self {
        Self {
            queues: BTreeSet::new(),
            doubted: BTreeSet::new(),
        }
    }
}

impl<Q: Ord + Copy> Misled<Q> {
    /// The driver was told this status of a queue that does not rest, in which `running` says that it doesn't.
    pub(crate) fn tell(&mut self, queue: Q, said: u32, running: u32) {
        let rests = match said {
            // One that is gone does nothing, either.
            u32::MAX => !self.doubted.insert(queue),
            _ if said & running != 0 => return self.settle(queue),
            _ => true,
        };
        if rests {
            self.queues.insert(queue);
        }
    }

    /// What the driver knows of a queue is true again.
    pub(crate) fn settle(&mut self, queue: Q) {
        self.queues.remove(&queue);
        self.doubted.remove(&queue);
    }

    /// Whether the driver takes a queue for one that rests.
    pub(crate) fn has(&self, queue: Q) -> bool {
        self.queues.contains(&queue)
    }
}
