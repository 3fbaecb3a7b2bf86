// SPDX-License-Identifier: MIT OR Apache-2.0

//! How often a driver accesses registers. A read costs it a round trip over the bus.

use std::collections::BTreeMap;

use i82576::regs::Reg;
use serde::{Deserialize, Serialize};

/// Accesses by offset; queues 0 to 3 by the offsets of the 82576, whichever they were accessed at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// Reads.
    pub reads: BTreeMap<u32, u64>,
    /// Writes, also those that are lost.
    pub writes: BTreeMap<u32, u64>,
    /// Of these, those by another device.
    pub writes_by_peers: BTreeMap<u32, u64>,
}

impl Accesses {
    /// A register is read.
    pub(crate) fn read(&mut self, reg: Reg) {
        *self.reads.entry(reg.0).or_default() += 1;
    }

    /// A register is written.
    pub(crate) fn write(&mut self, reg: Reg) {
        *self.writes.entry(reg.0).or_default() += 1;
    }

    /// It is another device that writes a register.
    pub(crate) fn write_by_peer(&mut self, reg: Reg) {
        *self.writes_by_peers.entry(reg.0).or_default() += 1;
    }
}
