// SPDX-License-Identifier: MIT OR Apache-2.0

//! The model of the 82576 in its slot.

use i82576::{limits::MAX_VECTORS, pci, regs::BAR_SIZE};
use model::{
    Host,
    nic::{Accesses, Nic, Plan},
};
use tracing::error;

use crate::{Device, Identity};

/// What it is on the bus.
pub(crate) static IDENTITY: Identity = Identity {
    vendor: pci::VENDOR,
    device: pci::DEVICE_COPPER,
    class: 0x02_0000,
    revision: 1,
    registers: pci::BAR_REGISTERS,
    registers_size: BAR_SIZE as u32,
    msix: pci::BAR_MSIX,
    vectors: MAX_VECTORS,
};

impl Device for Nic {
    fn identity(&self) -> &'static Identity {
        &IDENTITY
    }

    fn read_register(&mut self, offset: u32, _: &mut dyn Host) -> u32 {
        self.read(offset)
    }

    fn write_register(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        self.write(offset, value, host);
    }

    fn write_register_by_peer(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        self.write_by_peer(offset, value, host);
    }

    fn reset(&mut self) {
        Self::reset(self);
    }

    fn receive(&mut self, frame: &[u8], host: &mut dyn Host) {
        Self::receive(self, frame, host);
    }

    fn set_asleep(&mut self, asleep: bool) {
        Self::set_asleep(self, asleep);
    }

    fn receive_asleep(&mut self, frame: &[u8]) {
        Self::receive_asleep(self, frame);
    }

    fn take_wake(&mut self) -> bool {
        Self::take_wake(self)
    }

    fn lie(&mut self, plan: &Plan) -> Vec<u32> {
        Self::lie(self, plan)
    }

    fn told(&self) -> Vec<u32> {
        Self::told(self)
    }

    fn accesses(&mut self) -> Accesses {
        Self::accesses(self)
    }

    fn set_cable(&mut self, cable: bool, host: &mut dyn Host) {
        self.plug(cable, host);
    }

    fn receive_damaged(&mut self, frame: &[u8], host: &mut dyn Host) {
        Self::receive_damaged(self, frame, host);
    }

    fn elapse(&mut self, now: u64, host: &mut dyn Host) -> Option<u64> {
        for violation in self.violations() {
            error!("violation: {violation}");
        }
        Self::elapse(self, now, host)
    }
}
