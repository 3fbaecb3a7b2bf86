// SPDX-License-Identifier: MIT OR Apache-2.0

//! The values of the registers.

use i82576::regs::{BAR_SIZE, Reg};

/// All registers, as what was last written or what the device has put there.
#[derive(Debug, Clone)]
pub(crate) struct Registers(Box<[u32]>);

impl Default for Registers {
    fn default() -> Self {
        Self(vec![0; BAR_SIZE / 4].into())
    }
}

impl Registers {
    /// A register's value.
    pub(crate) fn get(&self, reg: Reg) -> u32 {
        self.0[reg.offset() / 4]
    }

    /// Sets a register.
    pub(crate) fn set(&mut self, reg: Reg, value: u32) {
        self.0[reg.offset() / 4] = value;
    }

    /// Whether all of these bits are set.
    pub(crate) fn has(&self, reg: Reg, bits: u32) -> bool {
        self.get(reg) & bits == bits
    }

    /// Clears and sets bits.
    pub(crate) fn modify(&mut self, reg: Reg, clear: u32, set: u32) {
        self.set(reg, self.get(reg) & !clear | set);
    }
}
