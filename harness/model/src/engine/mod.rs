// SPDX-License-Identifier: MIT OR Apache-2.0

//! The engine of an accelerator, by the crate [`engine`], which is all that there is to read about it.
//!
//! [`Engine::read`] and [`Engine::write`] are its registers (`access`). What a `queue` has been given is done
//! as time goes by, in [`Engine::elapse`]: a `task` is a descriptor, which reaches memory through
//! `windows`.

mod access;
mod arithmetic;
mod queue;
mod task;
#[cfg(test)]
mod tests;
mod violation;
mod windows;

use ::engine::regs::QUEUES;

pub use self::violation::{Violation, What};
use self::{
    queue::{Queue, Surroundings},
    task::Buffers,
    violation::Record,
};
use crate::{
    Host,
    lies::{Kind, Lies, Plan},
};

/// An engine.
#[derive(Debug, Default)]
pub struct Engine {
    queues: [Queue; QUEUES as usize],
    /// Whose turn it is, if it has something to do.
    turn: usize,
    buffers: Buffers,
    now: u64,
    record: Record,
    lies: Lies,
}

impl Engine {
    /// Lies from now on as a plan says, about what is in [`Kind::OF_ENGINE`]. Returns how often it told each
    /// lie of the plan before.
    pub fn lie(&mut self, plan: &Plan) -> Vec<u32> {
        self.lies.begin(plan)
    }

    /// How often each lie of the plan was told so far.
    #[must_use]
    pub fn told(&self) -> Vec<u32> {
        self.lies.told()
    }

    /// Resets everything, as the bus does.
    pub fn reset(&mut self) {
        self.queues = Default::default();
        (0..self.queues.len()).for_each(|number| self.record.misled.settle(number));
        self.turn = 0;
    }

    /// Has one queue do a part of its work, so that no call takes long. `now` is the time in nanoseconds
    /// since any moment, which must not go backwards; call it before any of the others. Returns when to
    /// call it again at the latest.
    pub fn elapse(&mut self, now: u64, host: &mut dyn Host) -> Option<u64> {
        self.now = self.now.max(now);
        for (number, queue) in self.queues.iter_mut().enumerate() {
            match queue.settles(self.now) {
                true if self.lies.tells(Kind::Stuck) => queue.hold(),
                true => {
                    queue.rest();
                    self.record.misled.settle(number);
                }
                false => {}
            }
        }
        let count = self.queues.len();
        let mut turns = (self.turn..self.turn + count).map(|number| number % count);
        if let Some(number) = turns.find(|&number| self.queues[number].has_work()) {
            let mut around = Surroundings {
                number,
                host,
                record: &mut self.record,
                lies: &mut self.lies,
            };
            self.queues[number].work(&mut self.buffers, &mut around);
            self.turn = number + 1;
        }
        let deadlines = self.queues.iter();
        deadlines.filter_map(|queue| queue.deadline(self.now)).min()
    }

    /// What the driver did that it must not do, since this was last asked.
    pub fn violations(&mut self) -> Vec<Violation> {
        self.record.take()
    }
}
