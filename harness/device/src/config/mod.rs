// SPDX-License-Identifier: MIT OR Apache-2.0

//! The configuration space of an endpoint with MSI-X and without SR-IOV.
//!
//! QEMU writes all that the guest writes here before it does its own part, BAR sizing included.

mod layout;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::layout::Layout;
pub(crate) use self::layout::{MSIX_BAR_SIZE, PENDING_BITS, SIZE};
use crate::Identity;

/// A power state. Others can't be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// It works.
    D0,
    /// It only answers in configuration space.
    D3Hot,
}

/// What a write has changed: the new state, where it is another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether the device may access memory and send interrupts.
    pub bus_master: Option<bool>,
    /// Its power state. Going from [`Power::D3Hot`] to [`Power::D0`] resets the device.
    pub power: Option<Power>,
    /// Whether it uses MSI-X.
    pub msix: Option<bool>,
    /// A function-level reset was asked for, and has been made here.
    pub flr: bool,
}

impl Changes {
    /// Whether the device is to be reset.
    #[must_use]
    pub fn resets(&self) -> bool {
        self.flr || self.power == Some(Power::D0)
    }
}

/// The configuration space.
#[derive(Clone)]
pub struct Config {
    layout: Layout,
    identity: &'static Identity,
}

impl Config {
    /// As it is when power comes.
    #[must_use]
    pub fn new(identity: &'static Identity) -> Self {
        Self {
            layout: Layout::new(identity),
            identity,
        }
    }

    /// Reads what is at an offset. Beyond the end there are zeros.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        bytes.fill(0);
        let range = range(offset, bytes.len());
        if let (Some(from), Some(to)) = (
            self.layout.bytes.get(range.clone()),
            bytes.get_mut(..range.len()),
        ) {
            to.copy_from_slice(from);
        }
    }

    /// Writes to what is at an offset. Beyond the end nothing happens.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Changes {
        let before = self.clone();
        let mut flr = false;
        for (index, &byte) in range(offset, bytes.len()).zip(bytes) {
            let (writable, clearable) = (self.layout.writable[index], self.layout.clearable[index]);
            let old = self.layout.bytes[index];
            self.layout.bytes[index] = (old & !writable | byte & writable) & !(byte & clearable);
            flr |= index == layout::DEVICE_CONTROL + 1 && byte & (layout::FLR >> 8) as u8 != 0;
        }
        // A write of a state that isn't supported is completed and discarded.
        if !matches!(
            self.half(layout::POWER_CONTROL) & layout::POWER_STATE,
            0 | 3
        ) {
            let state = before.layout.bytes[layout::POWER_CONTROL] & layout::POWER_STATE as u8;
            self.layout.bytes[layout::POWER_CONTROL] &= !(layout::POWER_STATE as u8);
            self.layout.bytes[layout::POWER_CONTROL] |= state;
        }
        let power = changed(before.power(), self.power());
        let wake_up = self.layout.bytes[layout::POWER_CONTROL + 1];
        if flr || power == Some(Power::D0) {
            self.reset_function();
        }
        if !flr {
            // What concerns wake-up stays.
            self.layout.bytes[layout::POWER_CONTROL + 1] = wake_up;
        }
        Changes {
            bus_master: changed(before.bus_master(), self.bus_master()),
            power,
            msix: changed(before.msix(), self.msix()),
            flr,
        }
    }

    /// Whether the device may access memory and send interrupts.
    #[must_use]
    pub fn bus_master(&self) -> bool {
        self.half(layout::COMMAND) & layout::BUS_MASTER != 0 && self.power() == Power::D0
    }

    /// Whether the device answers at its BARs.
    #[must_use]
    pub fn memory(&self) -> bool {
        self.half(layout::COMMAND) & layout::MEMORY_SPACE != 0 && self.power() == Power::D0
    }

    /// Where the registers are, while the device answers there.
    #[must_use]
    pub fn registers(&self) -> Option<u64> {
        let at = layout::bar_at(self.identity.registers);
        let address = u32::from(self.half(at + 2)) << 16 | u32::from(self.half(at));
        self.memory().then_some(address.into())
    }

    /// Whether interrupts are MSI-X messages. There are no others.
    #[must_use]
    pub fn msix(&self) -> bool {
        self.half(layout::MSIX_CONTROL) & layout::MSIX_ENABLE != 0
    }

    /// The power state.
    #[must_use]
    pub fn power(&self) -> Power {
        match self.half(layout::POWER_CONTROL) & layout::POWER_STATE {
            3 => Power::D3Hot,
            _ => Power::D0,
        }
    }

    /// The device has been woken: it says so until that is cleared. There is no message of it to the port above.
    pub fn wake(&mut self) {
        self.layout.bytes[layout::POWER_CONTROL + 1] |= layout::PME_STATUS.to_le_bytes()[1];
    }

    /// Resets everything.
    pub fn reset(&mut self) {
        *self = Self::new(self.identity);
    }

    /// Resets what belongs to the function, and not what concerns the link (PCI Express Base Specification,
    /// "Function Level Reset"). The way from D3hot does the same: there is no No_Soft_Reset.
    fn reset_function(&mut self) {
        let payload = self.half(layout::DEVICE_CONTROL) & layout::MAX_PAYLOAD;
        let link = self.layout.bytes[layout::LINK_CONTROL];
        self.reset();
        let control = self.half(layout::DEVICE_CONTROL) & !layout::MAX_PAYLOAD | payload;
        self.layout.bytes[layout::DEVICE_CONTROL] = control.to_le_bytes()[0];
        self.layout.bytes[layout::LINK_CONTROL] = link;
    }

    fn half(&self, offset: usize) -> u16 {
        u16::from_le_bytes([self.layout.bytes[offset], self.layout.bytes[offset + 1]])
    }
}

/// The part of an access that is in configuration space.
fn range(offset: u64, len: usize) -> Range<usize> {
    let start = usize::try_from(offset).unwrap_or(SIZE).min(SIZE);
    start..start.saturating_add(len).min(SIZE)
}

fn changed<T: PartialEq>(before: T, now: T) -> Option<T> {
    (before != now).then_some(now)
}
