// SPDX-License-Identifier: MIT OR Apache-2.0

//! Copies fragments of a stream to where they belong.

use std::time::Duration;

use devmem_tcp::rx;

use crate::{
    error::{Error, Result},
    work_queue::{Command, LIST, Window, WorkQueue},
    {Fragment, Operation},
};

/// Puts the fragments of a stream one after the other, from the destination's start on.
///
/// A fragment may be returned to the NIC once it was [`settle`](Self::settle)d: before that the engine may
/// still be reading it.
#[derive(Debug)]
pub struct Gatherer {
    queue: WorkQueue,
    command: Command,
    /// Where the next byte of the stream goes.
    position: u64,
    descriptors: u64,
}

impl Gatherer {
    /// From one window of a queue to another.
    #[must_use]
    pub fn new(queue: WorkQueue, source: Window, destination: Window) -> Self {
        Self {
            queue,
            command: Command {
                operation: Operation::Copy,
                source,
                destination,
                value: 0,
                signal: false,
            },
            position: 0,
            descriptors: 0,
        }
    }

    /// Has the engine copy what one call has received. If the ring is full, waits for the engine.
    ///
    /// # Errors
    ///
    /// Those of [`WorkQueue::submit`] and [`WorkQueue::wait`].
    pub fn gather(&mut self, fragments: &[&rx::Fragment], timeout: Duration) -> Result<()> {
        for some in fragments.chunks(LIST) {
            if self.queue.free() == 0 {
                self.settle(timeout)?;
            }
            let mut position = self.position;
            let mut list = Vec::with_capacity(some.len());
            for fragment in some {
                let (offset, len) = (fragment.offset(), fragment.len());
                let destination = position;
                position += u64::from(len);
                list.push(Fragment {
                    source: offset.try_into().map_err(|_| Error::Far { offset })?,
                    len,
                    destination,
                });
            }
            self.queue.submit(&self.command, &list)?;
            self.descriptors += 1;
            self.position = position;
        }
        Ok(())
    }

    /// Skips bytes of the stream that came another way. Returns where they belong.
    pub fn skip(&mut self, bytes: u64) -> u64 {
        let at = self.position;
        self.position += bytes;
        at
    }

    /// Waits until all is in place that was to be gathered. Returns how many bytes of the stream that are.
    ///
    /// # Errors
    ///
    /// Those of [`WorkQueue::wait`].
    pub fn settle(&mut self, timeout: Duration) -> Result<u64> {
        self.queue.wait(timeout)?;
        Ok(self.position)
    }

    /// How many descriptors it took.
    #[must_use]
    pub fn descriptors(&self) -> u64 {
        self.descriptors
    }
}
