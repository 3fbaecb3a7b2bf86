// SPDX-License-Identifier: MIT OR Apache-2.0

//! Our model, in this process.

use i82576::regs::Reg;
use model::{Fault, Host, nic::Nic};

use crate::{MAC, Result, Subject, place};

/// Our model.
#[derive(Debug)]
pub struct Ours {
    nic: Nic,
    machine: Machine,
    now: u64,
}

/// Memory from [`place::START`] on, and what was sent.
#[derive(Debug)]
struct Machine {
    memory: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

impl Machine {
    fn slice(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address.checked_sub(place::START)?).ok()?;
        self.memory.get_mut(start..start.checked_add(bytes)?)
    }
}

impl Host for Machine {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        bytes.copy_from_slice(self.slice(address, bytes.len()).ok_or(Fault::Unanswered)?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let place = self.slice(address, bytes.len()).ok_or(Fault::Unanswered)?;
        place.copy_from_slice(bytes);
        Ok(())
    }

    fn interrupt(&mut self, vector: u16) {
        // As a message of MSI-X, whose data QEMU's has the same.
        if let Some(message) = self.slice(place::message(vector), 4) {
            message.copy_from_slice(&u32::from(vector).to_le_bytes());
        }
    }

    fn send(&mut self, frame: Vec<u8>) {
        self.frames.push(frame);
    }
}

impl Default for Ours {
    fn default() -> Self {
        Self::new()
    }
}

impl Ours {
    /// A port as it is when power comes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            nic: Nic::new(MAC),
            machine: Machine {
                memory: vec![0; place::BYTES],
                frames: Vec::new(),
            },
            now: 0,
        }
    }
}

impl Subject for Ours {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn read(&mut self, reg: Reg) -> Result<u32> {
        Ok(self.nic.read(reg.0))
    }

    fn write(&mut self, reg: Reg, value: u32) -> Result<()> {
        self.nic.write(reg.0, value, &mut self.machine);
        Ok(())
    }

    fn read_memory(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        let found = self.machine.slice(address, bytes);
        // As of a bus on which nothing answers.
        Ok(found.map_or_else(|| vec![0xff; bytes], |found| found.to_vec()))
    }

    fn write_memory(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        if let Some(place) = self.machine.slice(address, bytes.len()) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn fill(&mut self, value: u8) -> Result<()> {
        self.machine.memory.fill(value);
        Ok(())
    }

    fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.nic.receive(frame, &mut self.machine);
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(std::mem::take(&mut self.machine.frames))
    }

    fn elapse(&mut self, nanoseconds: u64) -> Result<()> {
        let end = self.now + nanoseconds;
        while let Some(time) = self.nic.elapse(self.now, &mut self.machine) {
            if time <= self.now || time >= end {
                break;
            }
            self.now = time;
        }
        self.now = end;
        self.nic.elapse(end, &mut self.machine);
        Ok(())
    }
}
