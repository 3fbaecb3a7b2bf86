// SPDX-License-Identifier: MIT OR Apache-2.0

//! The model of an accelerator's engine in its slot.

use engine::{pci, regs::BAR_SIZE};
use model::{Host, engine::Engine, lies::Plan};
use tracing::error;

use crate::{Device, Identity};

/// What it is on the bus.
static IDENTITY: Identity = Identity {
    vendor: pci::VENDOR,
    device: pci::DEVICE,
    class: pci::CLASS,
    revision: 1,
    registers: pci::BAR_REGISTERS,
    registers_size: BAR_SIZE as u32,
    msix: pci::BAR_MSIX,
    vectors: pci::VECTORS,
};

impl Device for Engine {
    fn identity(&self) -> &'static Identity {
        &IDENTITY
    }

    fn read_register(&mut self, offset: u32, _: &mut dyn Host) -> u32 {
        self.read(offset)
    }

    fn write_register(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        self.write(offset, value, host);
    }

    fn reset(&mut self) {
        Self::reset(self);
    }

    fn lie(&mut self, plan: &Plan) -> Vec<u32> {
        Self::lie(self, plan)
    }

    fn told(&self) -> Vec<u32> {
        Self::told(self)
    }

    fn elapse(&mut self, now: u64, host: &mut dyn Host) -> Option<u64> {
        let deadline = Self::elapse(self, now, host);
        for violation in self.violations() {
            error!("violation: {violation}");
        }
        deadline
    }
}
