// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames that were damaged on the way.

use i82576::regs::{self, rctl};

use super::{
    admit::{is_for_us, longest},
    packet::Packet,
};
use crate::{
    Host,
    nic::{Nic, statistics},
};

impl Nic {
    /// Receives a frame whose check sequence is wrong: it is counted, and dropped unless RCTL.SBP has it
    /// stored.
    pub fn receive_damaged(&mut self, frame: &[u8], host: &mut dyn Host) {
        let receives = self.link_is_up() && !self.loops_back();
        let packet = Packet::parse(frame, &self.registers);
        if !receives || !is_for_us(&packet, frame, &self.registers) {
            return;
        }
        let longest = longest(&packet, &self.registers);
        statistics::damaged(&mut self.registers, frame, longest);
        if self.registers.has(regs::RCTL, rctl::SBP) && self.is_master() {
            self.store(frame, true, host);
        }
        self.send_interrupts(host);
    }
}
