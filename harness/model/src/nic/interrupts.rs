// SPDX-License-Identifier: MIT OR Apache-2.0

//! Interrupts: causes, which vector each has, and when messages are sent (82576 datasheet, chapter
//! "Interrupts"). There is MSI-X and nothing else, as drivers use: with several vectors; and while GPIE.MSIX_MODE is
//! clear, with the first one for what is in ICR, as the self-test of Linux's `igb` has it after a reset.

use i82576::{
    limits::MAX_VECTORS,
    regs::{
        CTRL_EXT, EIAC, EIAM, EICR, EIMS, GPIE, IAM, ICR, IMS, IVAR_MISC, IVAR_VALID, Reg,
        ctrl_ext, eitr, gpie, ivar_misc,
    },
};

use super::{Kind, Lies, registers::Registers};
use crate::Host;

/// EITR: the interval, in microseconds.
const INTERVAL_SHIFT: u32 = 2;
const INTERVAL_MASK: u32 = 0x1fff;

/// EICR without several vectors: something is in ICR.
const OTHER: u32 = 1 << 31;

/// What messages have been sent.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    /// When each vector may send its next message, in nanoseconds.
    not_before: [u64; MAX_VECTORS as usize],
    /// Vectors whose cause has been sent and neither cleared nor masked.
    sent: u32,
}

impl Interrupts {
    /// A queue's cause has occurred; its entry is in a byte of a register.
    pub(crate) fn raise_queue(registers: &mut Registers, (reg, shift): (Reg, u32)) {
        raise_entry(registers, (registers.get(reg) >> shift) as u8);
    }

    /// Other causes have occurred: bits of ICR.
    pub(crate) fn raise(registers: &mut Registers, causes: u32) {
        registers.modify(ICR, 0, causes);
        Self::raise_others(registers);
    }

    /// Has the vector of other causes follow ICR and its mask.
    pub(crate) fn raise_others(registers: &mut Registers) {
        if registers.get(ICR) & registers.get(IMS) == 0 {
            return;
        }
        if !registers.has(GPIE, gpie::MSIX_MODE) {
            registers.modify(EICR, 0, OTHER);
        } else {
            let entry = registers.get(IVAR_MISC) >> ivar_misc::OTHER_SHIFT;
            raise_entry(registers, entry as u8);
        }
    }

    /// Reads ICR, which clears it, and masks what IAM says.
    pub(crate) fn read_icr(registers: &mut Registers) -> u32 {
        let causes = registers.get(ICR);
        let enabled = causes & registers.get(IMS) != 0;
        if enabled || !registers.has(GPIE, gpie::NSICR) {
            registers.set(ICR, 0);
        }
        if enabled && registers.has(CTRL_EXT, ctrl_ext::IAME) {
            registers.modify(IMS, registers.get(IAM), 0);
        }
        causes
    }

    /// Causes have been read, which clears them: the next of each is sent again.
    pub(crate) fn cleared(&mut self, causes: u32) {
        self.sent &= !causes;
    }

    /// Sends the messages of all vectors that have a cause, are not masked and may send now.
    pub(crate) fn send(
        &mut self,
        registers: &mut Registers,
        now: u64,
        lies: &mut Lies,
        host: &mut dyn Host,
    ) {
        if !registers.has(GPIE, gpie::MSIX_MODE) && registers.has(EICR, OTHER) {
            registers.modify(EICR, OTHER, 0);
            host.interrupt(0);
        }
        self.sent &= waiting(registers);
        for (vector, not_before) in (0..).zip(&mut self.not_before) {
            let bit = 1 << vector;
            if waiting(registers) & !self.sent & bit == 0 || now < *not_before {
                continue;
            }
            if !lies.tells(Kind::LostInterrupt) {
                host.interrupt(vector);
            }
            *not_before = now + interval(registers, vector);
            registers.modify(EICR, registers.get(EIAC) & bit, 0);
            if registers.has(GPIE, gpie::EIAME) {
                registers.modify(EIMS, registers.get(EIAM) & bit, 0);
            }
            self.sent |= waiting(registers) & bit;
        }
    }

    /// When to call [`Self::send`], if a vector waits for its interval.
    pub(crate) fn deadline(&self, registers: &Registers) -> Option<u64> {
        let waiting = waiting(registers) & !self.sent;
        let times = (0..).zip(&self.not_before);
        let of_waiting = times.filter(|(vector, _)| waiting & 1 << vector != 0);
        of_waiting.map(|(_, time)| *time).min()
    }
}

/// Vectors with a cause that are not masked.
fn waiting(registers: &Registers) -> u32 {
    registers.get(EICR) & registers.get(EIMS)
}

/// Sets the cause of the vector in an entry of IVAR, if it is in use.
fn raise_entry(registers: &mut Registers, entry: u8) {
    let vector = u16::from(entry & !IVAR_VALID);
    if entry & IVAR_VALID != 0 && vector < MAX_VECTORS {
        registers.modify(EICR, 0, 1 << vector);
    }
}

/// A vector's interval, in nanoseconds.
fn interval(registers: &Registers, vector: u16) -> u64 {
    let value = registers.get(i82576::regs::eitr(vector)) & !eitr::CNT_IGNR;
    u64::from(value >> INTERVAL_SHIFT & INTERVAL_MASK) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::tests::Recorder;
    use i82576::regs::{self, icr, ivar_entry, ivar_rx};

    fn registers() -> Registers {
        let mut registers = Registers::default();
        let (reg, shift) = ivar_rx(1);
        registers.set(reg, u32::from(ivar_entry(3)) << shift);
        registers.set(
            IVAR_MISC,
            u32::from(ivar_entry(5)) << ivar_misc::OTHER_SHIFT,
        );
        registers.set(EIAC, 0xff);
        registers
    }

    #[test]
    fn a_queues_cause_is_sent_by_its_vector_once_it_is_unmasked() {
        let (mut registers, mut host) = (registers(), Recorder::default());
        let mut interrupts = Interrupts::default();
        Interrupts::raise_queue(&mut registers, ivar_rx(1));
        interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        assert_eq!(host.interrupts, []);
        registers.set(EIMS, 0xff);
        interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        assert_eq!(host.interrupts, [3], "it cleared itself");
    }

    #[test]
    fn a_cause_that_does_not_clear_itself_is_sent_once() {
        let (mut registers, mut host) = (registers(), Recorder::default());
        let mut interrupts = Interrupts::default();
        registers.set(EIMS, 0xff);
        registers.set(EIAC, 0);
        for _ in 0..3 {
            Interrupts::raise_queue(&mut registers, ivar_rx(1));
            interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        }
        assert_eq!((host.interrupts.len(), registers.get(EICR)), (1, 1 << 3));
        registers.set(EICR, 0);
        interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        Interrupts::raise_queue(&mut registers, ivar_rx(1));
        interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        assert_eq!(host.interrupts.len(), 2);
        // Read, and raised again before anything else is done.
        registers.set(EICR, 0);
        interrupts.cleared(1 << 3);
        Interrupts::raise_queue(&mut registers, ivar_rx(1));
        interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        assert_eq!(host.interrupts.len(), 3);
    }

    #[test]
    fn a_vector_masks_itself_where_the_driver_says_so() {
        let (mut registers, mut host) = (registers(), Recorder::default());
        let mut interrupts = Interrupts::default();
        registers.set(GPIE, gpie::EIAME);
        registers.set(EIMS, 0xff);
        registers.set(EIAM, 1 << 3);
        for _ in 0..2 {
            Interrupts::raise_queue(&mut registers, ivar_rx(1));
            interrupts.send(&mut registers, 0, &mut Lies::default(), &mut host);
        }
        assert_eq!((host.interrupts, registers.get(EIMS)), (vec![3], 0xf7));
    }

    #[test]
    fn messages_of_a_vector_are_an_interval_apart() {
        let (mut registers, mut host) = (registers(), Recorder::default());
        let mut interrupts = Interrupts::default();
        registers.set(EIMS, 0xff);
        registers.set(regs::eitr(3), eitr::interval(50) | eitr::CNT_IGNR);
        for now in [0, 20_000, 49_999] {
            Interrupts::raise_queue(&mut registers, ivar_rx(1));
            interrupts.send(&mut registers, now, &mut Lies::default(), &mut host);
        }
        assert_eq!(host.interrupts, [3]);
        assert_eq!(interrupts.deadline(&registers), Some(50_000));
        interrupts.send(&mut registers, 50_000, &mut Lies::default(), &mut host);
        assert_eq!(host.interrupts, [3, 3]);
    }

    #[test]
    fn without_several_vectors_each_cause_that_is_enabled_is_a_message_of_the_first() {
        let (mut registers, mut host) = (registers(), Recorder::default());
        let mut interrupts = Interrupts::default();
        registers.set(EIMS, 1);
        for (enabled, messages) in [(0, 0), (icr::LSC, 1), (icr::LSC, 2)] {
            registers.set(IMS, enabled);
            Interrupts::raise(&mut registers, icr::LSC);
            for now in [0, 1] {
                interrupts.send(&mut registers, now, &mut Lies::default(), &mut host);
            }
            assert_eq!(host.interrupts, vec![0; messages]);
            assert_eq!(Interrupts::read_icr(&mut registers), icr::LSC);
        }
    }

    #[test]
    fn other_causes_are_read_and_cleared_in_icr() {
        let (mut registers, mut host) = (registers(), Recorder::default());
        registers.set(GPIE, gpie::NSICR | gpie::MSIX_MODE);
        registers.set(EIMS, 0xff);
        Interrupts::raise(&mut registers, icr::LSC);
        assert_eq!(Interrupts::read_icr(&mut registers), icr::LSC);
        assert_eq!(registers.get(ICR), icr::LSC, "none is enabled");
        registers.set(IMS, icr::LSC);
        Interrupts::raise_others(&mut registers);
        Interrupts::default().send(&mut registers, 0, &mut Lies::default(), &mut host);
        assert_eq!(host.interrupts, [5]);
        assert_eq!(Interrupts::read_icr(&mut registers), icr::LSC);
        assert_eq!(registers.get(ICR), 0);
    }
}
