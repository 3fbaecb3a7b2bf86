// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a driver must not do, and what it wrote before.

use std::{collections::VecDeque, fmt};

use i82576::regs::Reg;

use super::lent::Of;
use crate::Fault;

/// Writes to registers that are remembered.
const WRITES: usize = 32;

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An address that nothing answers was to be read or written.
    Unreachable,
    /// Memory was to be read or written without bus master. That is no fault of the driver's: by this bit
    /// it silences a device that it can't stop, such as one above which the bus has failed.
    Silenced,
    /// Memory was to be written that the driver never gave for that, or has back, as its queue rests.
    NotLent,
    /// A buffer is posted that the device has already.
    PostedTwice,
    /// A ring is moved while its queue is enabled, or before it rests.
    Moved,
    /// A transmit descriptor is of no kind that the device knows.
    Descriptor,
    /// A packet has more bytes than the device takes.
    TooLong,
    /// What is to be done with a packet does not fit the packet.
    Offload,
}

impl From<Fault> for What {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unanswered => Self::Unreachable,
            Fault::NoMaster => Self::Silenced,
            Fault::NotLent => Self::NotLent,
        }
    }
}

/// Something that a driver must not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What was wrong.
    pub what: What,
    /// Whose queue it was: of those that receive, or that transmit.
    pub transmit: bool,
    /// Its number.
    pub queue: u16,
    /// The registers that were written last, by their offsets, and their values; the latest comes last.
    pub writes: Vec<(u32, u32)>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.transmit { "transmit" } else { "receive" };
        write!(
            f,
            "{:?} at {direction} queue {}, after",
            self.what, self.queue
        )?;
        let mut writes = self.writes.iter();
        writes.try_for_each(|(offset, value)| write!(f, " {offset:#07x}={value:#x}"))
    }
}

/// What a driver did.
#[derive(Debug, Default)]
pub(crate) struct Record {
    writes: VecDeque<(u32, u32)>,
    violations: Vec<Violation>,
}

impl Record {
    /// A register is written.
    pub(crate) fn write(&mut self, reg: Reg, value: u32) {
        if self.writes.len() == WRITES {
            self.writes.pop_front();
        }
        self.writes.push_back((reg.0, value));
    }

    /// Something was wrong with a queue.
    pub(crate) fn violated(&mut self, what: What, of: Of) {
        if what == What::Silenced {
            return;
        }
        let writes = self.writes.iter().copied().collect();
        let (transmit, queue) = match of {
            Of::Transmit(queue) => (true, queue),
            Of::Receive(queue) => (false, queue),
        };
        self.violations.push(Violation {
            what,
            transmit,
            queue,
            writes,
        });
    }

    /// What was wrong since this was last asked.
    pub(crate) fn take(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }
}
