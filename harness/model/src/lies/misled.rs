// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues that still run although their driver was told that they have stopped: it is not to blame for what it then
//! does to their memory.

use std::collections::BTreeSet;

/// Queues that the driver takes for stopped, or may.
#[derive(Debug)]
pub(crate) struct Misled<Q> {
    /// They read as stopped, or twice as gone.
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
    /// Records that the driver has read this status of a queue that runs. `running` is the bit that says so.
    pub(crate) fn read(&mut self, queue: Q, said: u32, running: u32) {
        let has_stopped = match said {
            // One that is gone does not run, either.
            u32::MAX => !self.doubted.insert(queue),
            _ if said & running != 0 => return self.settle(queue),
            _ => true,
        };
        if has_stopped {
            self.queues.insert(queue);
        }
    }

    /// What the driver knows of a queue is true again.
    pub(crate) fn settle(&mut self, queue: Q) {
        self.queues.remove(&queue);
        self.doubted.remove(&queue);
    }

    /// Whether the driver takes a queue for stopped.
    pub(crate) fn has(&self, queue: Q) -> bool {
        self.queues.contains(&queue)
    }
}
