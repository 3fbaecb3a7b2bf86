// SPDX-License-Identifier: MIT OR Apache-2.0

//! What reading and writing registers does, beside reading and writing their values.

use i82576::regs::{self, Reg, ctrl, eecd, rxdctl, swsm, txdctl};

use super::{
    Accesses, Kind, Nic, What, clock::Clock, interrupts::Interrupts, lent::Of, statistics,
};
use crate::Host;

/// EECD: software asks for the NVM, and has it.
const NVM_REQUEST: u32 = 1 << 6;
const NVM_GRANT: u32 = 1 << 7;

/// Queues 0 to 3 answer at the offsets of the 82575, too: blocks of 0x100 bytes from there.
const OLD_RX: u32 = 0x2800;
const OLD_TX: u32 = 0x3800;
const OLD_STRIDE: u32 = 0x100;
const OLD_QUEUES: u32 = 4;
/// Where they are on the 82576, and how many bytes each has.
const RX: u32 = 0xc000;
const TX: u32 = 0xe000;
const STRIDE: u32 = 0x40;
const QUEUES: u32 = 16;

/// A register of a queue that does something when it is written.
enum OfQueue {
    ReceiveRing,
    ReceiveTail,
    ReceiveControl,
    TransmitRing,
    TransmitTail,
    TransmitControl,
}

/// The register at an offset, by its only name.
fn canonical(offset: u32) -> Reg {
    for (old, new) in [(OLD_RX, RX), (OLD_TX, TX)] {
        let within = offset.wrapping_sub(old);
        let (queue, rest) = (within / OLD_STRIDE, within % OLD_STRIDE);
        if queue < OLD_QUEUES && rest < STRIDE {
            return Reg(new + queue * STRIDE + rest);
        }
    }
    Reg(offset & (regs::BAR_SIZE as u32 - 4))
}

/// The queue whose register it is, if it is one of a queue's.
fn queue(reg: Reg) -> u16 {
    // CAST: It is below 16.
    (reg.0 / STRIDE % QUEUES) as u16
}

/// Which queue's register it is, if it does something.
fn of_queue(reg: Reg) -> Option<(OfQueue, u16)> {
    let queue = queue(reg);
    let receive = [regs::rdbal(queue), regs::rdbah(queue), regs::rdlen(queue)];
    let transmit = [regs::tdbal(queue), regs::tdbah(queue), regs::tdlen(queue)];
    let what = match reg {
        reg if receive.contains(&reg) => OfQueue::ReceiveRing,
        reg if transmit.contains(&reg) => OfQueue::TransmitRing,
        reg if reg == regs::rdt(queue) => OfQueue::ReceiveTail,
        reg if reg == regs::rxdctl(queue) => OfQueue::ReceiveControl,
        reg if reg == regs::tdt(queue) => OfQueue::TransmitTail,
        reg if reg == regs::txdctl(queue) => OfQueue::TransmitControl,
        _ => return None,
    };
    Some((what, queue))
}

/// What there is of a value in a register: indices of a ring have 16 bits. Of its length there are more bits than
/// [`super::ring::Ring`] uses, by Linux's `igb` (`reg_test_82576`), which tests them on any 82576.
fn implemented(reg: Reg, value: u32) -> u32 {
    let queue = queue(reg);
    let heads = [regs::rdh(queue), regs::tdh(queue)];
    let tails = [regs::rdt(queue), regs::tdt(queue)];
    if heads.contains(&reg) || tails.contains(&reg) {
        value & 0xffff
    } else if [regs::rdlen(queue), regs::tdlen(queue)].contains(&reg) {
        value & 0xf_fff0
    } else {
        value
    }
}

/// Whether a write may be lost without the device accessing other memory than the driver expects: a new
/// ring must not have an old one's tail.
fn may_be_lost(reg: Reg, value: u32) -> bool {
    let tail = of_queue(reg)
        .is_some_and(|(what, _)| matches!(what, OfQueue::ReceiveTail | OfQueue::TransmitTail));
    tail && value != 0
        || [
            regs::EIMS,
            regs::EIMC,
            regs::EICS,
            regs::EICR,
            regs::IMS,
            regs::IMC,
        ]
        .contains(&reg)
}

impl Nic {
    /// Reads a register, by its offset in the first BAR.
    pub fn read(&mut self, offset: u32) -> u32 {
        let reg = canonical(offset);
        self.accesses.read(reg);
        let value = self.read_register(reg);
        let said = match self.lies.tells(Kind::Ones) {
            true => u32::MAX,
            // CAST: Any bits will do.
            false => value ^ self.lies.tell(Kind::Garbage).unwrap_or(0) as u32,
        };
        self.note_said(reg, value, said);
        said
    }

    /// Records what the driver has read about whether a queue still runs.
    fn note_said(&mut self, reg: Reg, value: u32, said: u32) {
        let (of, enable) = match of_queue(reg) {
            Some((OfQueue::ReceiveControl, queue)) => (Of::Receive(queue), rxdctl::ENABLE),
            Some((OfQueue::TransmitControl, queue)) => (Of::Transmit(queue), txdctl::ENABLE),
            _ => return,
        };
        match value & enable {
            0 => self.lent.misled.settle(of),
            _ => self.lent.misled.read(of, said, enable),
        }
    }

    fn read_register(&mut self, reg: Reg) -> u32 {
        match reg {
            regs::STATUS => self.status(),
            regs::ICR => Interrupts::read_icr(&mut self.registers),
            regs::EICR => {
                let causes = self.take(reg);
                self.interrupts.cleared(causes);
                causes
            }
            regs::IMC => self.registers.get(regs::IMS),
            regs::EIMC => self.registers.get(regs::EIMS),
            regs::SWSM => {
                // Reading takes the semaphore.
                let value = self.registers.get(reg);
                self.registers.set(reg, value | swsm::SMBI);
                value
            }
            regs::SYSTIML => self.clock.read(&mut self.registers, self.now),
            regs::TXSTMPH => {
                Clock::release_sent(&mut self.registers);
                self.registers.get(reg)
            }
            regs::RXSATRH => {
                let value = self.registers.get(reg);
                Clock::release_received(&mut self.registers);
                value
            }
            _ if statistics::is_counter(reg) => self.take(reg),
            _ if reg == regs::rqdpc(queue(reg)) => self.take(reg),
            _ => self.registers.get(reg),
        }
    }

    /// Reads a register that reading clears.
    fn take(&mut self, reg: Reg) -> u32 {
        let value = self.registers.get(reg);
        self.registers.set(reg, 0);
        value
    }

    /// Writes a register, by its offset in the first BAR.
    pub fn write(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        let reg = canonical(offset);
        self.accesses.write(reg);
        self.record.write(reg, value);
        let value = implemented(reg, value);
        if may_be_lost(reg, value) && self.lies.tells(Kind::LostWrite) {
            return;
        }
        if let Some((what, queue)) = of_queue(reg) {
            self.write_of_queue(what, queue, reg, value, host);
        } else {
            self.write_port(reg, value, host);
        }
        self.send_interrupts(host);
    }

    /// As [`Self::write`], by another device.
    pub fn write_by_peer(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        self.accesses.write_by_peer(canonical(offset));
        self.write(offset, value, host);
    }

    /// The accesses since this was last asked.
    pub fn accesses(&mut self) -> Accesses {
        std::mem::take(&mut self.accesses)
    }

    fn write_port(&mut self, reg: Reg, value: u32, host: &mut dyn Host) {
        let registers = &mut self.registers;
        match reg {
            regs::CTRL if value & ctrl::RST != 0 => self.reset_port(),
            regs::CTRL => {
                registers.set(reg, value & !(ctrl::RST | ctrl::PHY_RST));
                if value & ctrl::PHY_RST != 0 {
                    self.phy.reset();
                }
                self.follow_link(host);
            }
            // What is read there are states.
            regs::STATUS | regs::EEMNGCTL | regs::FWSM => {}
            regs::ICR => registers.modify(reg, value, 0),
            regs::ICS => Interrupts::raise(registers, value),
            regs::IMS => {
                registers.modify(reg, 0, value);
                Interrupts::raise_others(registers);
            }
            regs::IMC => registers.modify(regs::IMS, value, 0),
            regs::EICR => registers.modify(reg, value, 0),
            regs::EICS => registers.modify(regs::EICR, 0, value),
            regs::EIMS => registers.modify(reg, 0, value),
            regs::EIMC => registers.modify(regs::EIMS, value, 0),
            regs::EECD => {
                let granted = if value & NVM_REQUEST != 0 {
                    NVM_GRANT
                } else {
                    0
                };
                let state = eecd::PRES | eecd::AUTO_RD | NVM_GRANT;
                registers.set(reg, value & !state | eecd::PRES | eecd::AUTO_RD | granted);
            }
            regs::EERD => registers.set(reg, self.nvm.command(value)),
            regs::MDIC => {
                let (answer, changed) = self.phy.command(value, self.now);
                registers.set(reg, answer);
                if changed {
                    self.follow_link(host);
                }
            }
            regs::TIMINCA => self.clock.set_rate(registers, value, self.now),
            regs::SYSTIMH => {
                registers.set(reg, value);
                self.clock.write(registers, self.now);
            }
            regs::WUS => registers.modify(reg, value, 0),
            // It is write only.
            regs::RTTBCNRC => {
                let queue = self.rates.set(registers, value, self.now);
                self.transmit(queue, host);
            }
            regs::TCTL => {
                registers.set(reg, value);
                self.transmit_all(host);
            }
            _ => registers.set(reg, value),
        }
    }

    fn write_of_queue(
        &mut self,
        what: OfQueue,
        queue: u16,
        reg: Reg,
        value: u32,
        host: &mut dyn Host,
    ) {
        match what {
            OfQueue::ReceiveRing => {
                let is_enabled = self.registers.has(regs::rxdctl(queue), rxdctl::ENABLE);
                self.move_ring(Of::Receive(queue), is_enabled, reg, value);
            }
            OfQueue::TransmitRing => {
                let is_enabled = self.registers.has(regs::txdctl(queue), txdctl::ENABLE);
                self.move_ring(Of::Transmit(queue), is_enabled, reg, value);
            }
            OfQueue::ReceiveTail => {
                // A queue that is disabled ignores it.
                if self.receives(queue) || value == 0 {
                    self.registers.set(reg, value);
                    self.buffers_posted(queue, host);
                }
            }
            OfQueue::ReceiveControl => self.control_receive(queue, value),
            OfQueue::TransmitTail => {
                self.registers.set(reg, value);
                self.transmit(queue, host);
            }
            OfQueue::TransmitControl => self.control_transmit(queue, value, host),
        }
    }

    /// Sets where a ring is. ENABLE is set until the queue rests.
    fn move_ring(&mut self, of: Of, is_enabled: bool, reg: Reg, value: u32) {
        if is_enabled && value != self.registers.get(reg) {
            self.violated(What::Moved, of);
        }
        self.registers.set(reg, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_counted_until_they_are_asked_for() {
        let mut nic = Nic::new([2; 6]);
        nic.read(regs::STATUS.0);
        nic.read(0x2818);
        nic.read(regs::rdt(0).0);
        let accesses = nic.accesses();
        let reads = [(regs::STATUS.0, 1), (regs::rdt(0).0, 2)];
        assert_eq!(accesses.reads, reads.into());
        assert_eq!(nic.accesses(), Accesses::default());
    }

    #[test]
    fn a_write_by_another_device_is_a_write_and_one_by_it() {
        let mut nic = Nic::new([2; 6]);
        let mut memory = crate::nic::tests::Recorder::with_memory(0);
        nic.write(regs::tdt(1).0, 0, &mut memory);
        nic.write_by_peer(regs::tdt(1).0, 0, &mut memory);
        let accesses = nic.accesses();
        assert_eq!(accesses.writes, [(regs::tdt(1).0, 2)].into());
        assert_eq!(accesses.writes_by_peers, [(regs::tdt(1).0, 1)].into());
    }

    #[test]
    fn reading_the_semaphore_takes_it_until_it_is_released() {
        let mut nic = Nic::new([2; 6]);
        let mut memory = crate::nic::tests::Recorder::with_memory(0);
        for _ in 0..2 {
            let taken = [(); 2].map(|()| nic.read(regs::SWSM.0) & swsm::SMBI != 0);
            assert_eq!(taken, [false, true]);
            nic.write(regs::SWSM.0, 0, &mut memory);
        }
    }

    #[test]
    fn a_rings_registers_have_the_bits_that_the_c_driver_tests() {
        let mut nic = Nic::new([2; 6]);
        let mut memory = crate::nic::tests::Recorder::with_memory(0);
        for (reg, expected) in [
            (regs::rdlen(1), 0xf_fff0),
            (regs::tdlen(1), 0xf_fff0),
            (regs::rdh(1), 0xffff),
            (regs::tdh(1), 0xffff),
            (regs::tdt(1), 0xffff),
        ] {
            nic.write(reg.0, u32::MAX, &mut memory);
            assert_eq!(nic.read(reg.0), expected, "{reg:?}");
        }
    }

    #[test]
    fn the_first_queues_answer_at_the_offsets_of_the_82575_too() {
        assert_eq!(canonical(0x2818), regs::rdt(0));
        assert_eq!(canonical(0x2b28), regs::rxdctl(3));
        assert_eq!(canonical(0x3910), regs::tdh(1));
        assert_eq!(canonical(0x2840), Reg(0x2840));
        assert_eq!(canonical(0x2c00), Reg(0x2c00));
    }
}
