// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads and writes of registers.

use engine::regs::{
    CAPABILITIES, CAPABILITIES_VALUE, CONTROL, HEAD, ID, ID_VALUE, RESET, Register, STATUS,
    STATUS_RUNNING, TAIL,
};

use super::{Engine, What, queue::Surroundings};
use crate::{Host, lies::Kind};

impl Engine {
    /// Reads a register, by its offset.
    #[must_use]
    pub fn read(&mut self, offset: u32) -> u32 {
        let truth = self.truth(offset);
        let said = match self.lies.tells(Kind::Ones) {
            true => u32::MAX,
            // CAST: Any bits will do.
            false => match self.lies.tell(Kind::Garbage) {
                Some(value) => value as u32,
                None => truth,
            },
        };
        if let Some(Register::Queue {
            queue,
            register: STATUS,
        }) = Register::at(offset)
        {
            self.note_said(queue as usize, said);
        }
        said
    }

    /// Records what the driver has read about whether a queue still runs.
    fn note_said(&mut self, queue: usize, said: u32) {
        if !self.queues[queue].rests() {
            self.record.misled.read(queue, said, STATUS_RUNNING);
        }
    }

    fn truth(&self, offset: u32) -> u32 {
        match Register::at(offset) {
            Some(Register::Device(ID)) => ID_VALUE,
            Some(Register::Device(CAPABILITIES)) => CAPABILITIES_VALUE,
            Some(Register::Queue { queue, register }) => self.queues[queue as usize].read(register),
            Some(Register::Window {
                queue,
                window,
                register,
            }) => self.queues[queue as usize].windows[window as usize].read(register),
            Some(Register::Portal {
                queue,
                register: HEAD,
            }) => self.queues[queue as usize].head(),
            _ => 0,
        }
    }

    /// Writes a register. What that starts is done later, in [`Engine::elapse`].
    pub fn write(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        let Self {
            queues,
            record,
            lies,
            now,
            ..
        } = self;
        let at = Register::at(offset);
        if is_command(at) && lies.tells(Kind::LostWrite) {
            return;
        }
        match at {
            Some(Register::Device(RESET)) if value == 1 => self.reset(),
            Some(Register::Queue { queue, register }) => {
                let number = queue as usize;
                let mut around = Surroundings {
                    number,
                    host,
                    record,
                    lies,
                };
                queues[number].write(register, value, *now, &mut around);
            }
            Some(Register::Window {
                queue,
                window,
                register,
            }) => {
                let number = queue as usize;
                let queue = &mut queues[number];
                let moved = queue.windows[window as usize].write(register, value);
                if moved && !queue.rests() {
                    let mut around = Surroundings {
                        number,
                        host,
                        record,
                        lies,
                    };
                    around.violated(What::Closed);
                }
            }
            Some(Register::Portal {
                queue,
                register: TAIL,
            }) => {
                let number = queue as usize;
                let mut around = Surroundings {
                    number,
                    host,
                    record,
                    lies,
                };
                queues[number].set_tail(value, &mut around);
            }
            _ => {}
        }
    }
}

/// Whether writing a register has something begin or end. A reset is never lost: nothing else would help.
fn is_command(register: Option<Register>) -> bool {
    matches!(
        register,
        Some(
            Register::Queue {
                register: CONTROL,
                ..
            } | Register::Portal { register: TAIL, .. }
        )
    )
}
