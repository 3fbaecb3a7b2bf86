// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads and writes of registers.

use engine::regs::{CAPABILITIES, CAPABILITIES_VALUE, HEAD, ID, ID_VALUE, RESET, Register, TAIL};

use super::{Engine, What, queue::Surroundings};
use crate::Host;

impl Engine {
    /// Reads a register, by its offset.
    #[must_use]
    pub fn read(&self, offset: u32) -> u32 {
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
            now,
            ..
        } = self;
        match Register::at(offset) {
            Some(Register::Device(RESET)) if value == 1 => self.reset(),
            Some(Register::Queue { queue, register }) => {
                let number = queue as usize;
                let mut around = Surroundings {
                    number,
                    host,
                    record,
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
                    record.violated(What::Closed, number);
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
                };
                queues[number].set_tail(value, &mut around);
            }
            _ => {}
        }
    }
}
