// SPDX-License-Identifier: MIT OR Apache-2.0

//! The way of a frame from memory to the wire.

mod offload;
mod queue;
mod rate;
mod segment;
#[cfg(test)]
mod tests;

use i82576::{
    limits::MAX_TX_QUEUES,
    regs::{self, TCTL, ivar_tx, tctl, txdctl},
};

use self::queue::Packet;
pub(super) use self::{queue::Queue, rate::Rates};
use super::{
    Kind, Nic, What,
    interrupts::Interrupts,
    lent::{Memory, Of},
    statistics,
};
use crate::Host;

/// How long a queue takes to come to rest, in nanoseconds.
const REST: u64 = 20_000;

impl Nic {
    /// Enables a queue, or disables it: it says so once it has come to rest.
    pub(super) fn control_transmit(&mut self, queue: u16, value: u32, host: &mut dyn Host) {
        let (reg, at) = (regs::txdctl(queue), usize::from(queue));
        let was_enabled = self.registers.has(reg, txdctl::ENABLE);
        self.registers.set(reg, value & !txdctl::SWFLSH);
        match (was_enabled, value & txdctl::ENABLE != 0) {
            (false, true) => self.enable_transmit(queue),
            (true, false) => {
                self.registers.modify(reg, 0, txdctl::ENABLE);
                self.tx_rests[at] = Some(self.now + REST);
            }
            // Enabled anew, whatever it was about to come to rest from.
            (true, true) if self.tx_rests[at].take().is_some() => self.enable_transmit(queue),
            (true, true) => {}
            (false, false) => {}
        }
        self.transmit(queue, host);
    }

    fn enable_transmit(&mut self, queue: u16) {
        self.tx[usize::from(queue)].reset();
        let writes = queue::writes_to(queue, &self.registers);
        self.lent.enable(Of::Transmit(queue), writes);
    }

    /// Sends what is on the rings of all queues.
    pub(super) fn transmit_all(&mut self, host: &mut dyn Host) {
        for queue in 0..MAX_TX_QUEUES {
            self.transmit(queue, host);
        }
    }

    /// Sends what is on a queue's ring.
    pub(super) fn transmit(&mut self, queue: u16, host: &mut dyn Host) {
        let at = usize::from(queue);
        let can = self.registers.has(TCTL, tctl::EN)
            && self.registers.has(regs::txdctl(queue), txdctl::ENABLE)
            && self.tx_rests[at].is_none()
            && self.paused.is_none()
            && self.is_master()
            && (self.link_is_up() || self.loops_back());
        if !can || self.lies.tells(Kind::Hang) {
            return;
        }
        while !self.holds(queue) {
            if let Some(frame) = self.tx[at].take() {
                self.put_out(queue, frame, host);
            } else {
                match self.gather(queue, host) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(what) => return self.violated(what, Of::Transmit(queue)),
                }
            }
            if self.tx[at].is_sending() {
                continue;
            }
            let (registers, lent) = (&self.registers, &mut self.lent);
            let memory = &mut Memory { host, lent };
            match self.tx[at].report(queue, registers, &mut self.lies, memory) {
                Ok(true) => Interrupts::raise_queue(&mut self.registers, ivar_tx(queue)),
                Ok(false) => {}
                Err(what) => return self.violated(what, Of::Transmit(queue)),
            }
        }
    }

    /// Whether there is something to send, and the queue's limit has it wait.
    fn holds(&mut self, queue: u16) -> bool {
        self.tx[usize::from(queue)].is_posted(queue, &self.registers)
            && self.rates.holds(queue, self.now)
    }

    /// Reads a packet and makes frames of it. Says whether there was one.
    fn gather(&mut self, queue: u16, host: &mut dyn Host) -> Result<bool, What> {
        let at = usize::from(queue);
        let Some(packet) = self.tx[at].next(queue, &mut self.registers, host)? else {
            return Ok(false);
        };
        if packet.first.timestamp {
            self.clock.timestamp_sent(&mut self.registers, self.now);
        }
        if let Some(value) = self.lies.tell(Kind::Clock) {
            self.clock.lie(&mut self.registers, value);
        }
        if self.lies.tells(Kind::Unsent) {
            return Ok(true);
        }
        let Packet {
            bytes,
            first,
            context,
        } = packet;
        match offload::frames(&bytes, &first, context.as_ref(), &self.registers) {
            Ok(frames) => self.tx[at].send(frames),
            // It is reported all the same.
            Err(what) => self.violated(what, Of::Transmit(queue)),
        }
        Ok(true)
    }

    fn put_out(&mut self, queue: u16, frame: Vec<u8>, host: &mut dyn Host) {
        let per_byte = self.per_byte();
        let registers = &mut self.registers;
        self.rates
            .sent(queue, &frame, registers, per_byte, self.now);
        statistics::sent(registers, &frame);
        if self.loops_back() {
            self.receive_frame(&frame, host);
        } else {
            host.send(frame);
        }
    }
}
