// SPDX-License-Identifier: MIT OR Apache-2.0

//! Windows, and memory through them.

use engine::{
    descriptor::Status,
    regs::{WINDOW_BASE_HIGH, WINDOW_BASE_LOW, WINDOW_SIZE_HIGH, WINDOW_SIZE_LOW, WINDOWS},
};

use crate::Host;

/// A range of bus addresses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    words: [u32; 4],
    base: u64,
    /// 0 if it is closed.
    size: u64,
}

/// A queue's windows.
pub(super) type Windows = [Window; WINDOWS as usize];

impl Window {
    /// Reads one of its registers.
    pub(super) fn read(&self, register: u32) -> u32 {
        self.words[register as usize / 4]
    }

    /// Writes one. Returns whether memory that was in the window may be no longer.
    pub(super) fn write(&mut self, register: u32, value: u32) -> bool {
        self.words[register as usize / 4] = value;
        if register != WINDOW_SIZE_LOW {
            return false;
        }
        let was = (self.base, self.size);
        self.base = wide(self.read(WINDOW_BASE_LOW), self.read(WINDOW_BASE_HIGH));
        self.size = wide(value, self.read(WINDOW_SIZE_HIGH));
        was.1 != 0 && was != (self.base, self.size)
    }
}

/// The memory that a queue reaches.
pub(super) struct Memory<'a> {
    windows: &'a Windows,
    host: &'a mut dyn Host,
}

impl<'a> Memory<'a> {
    pub(super) fn new(windows: &'a Windows, host: &'a mut dyn Host) -> Self {
        Self { windows, host }
    }

    /// Where bytes of a window are: all of them must be in it.
    pub(super) fn locate(&self, window: u8, offset: u64, len: u64) -> Result<u64, Status> {
        let window = self.windows.get(usize::from(window));
        let window = window.filter(|window| window.size != 0);
        let window = window.ok_or(Status::Outside)?;
        let end = offset.checked_add(len).filter(|end| *end <= window.size);
        let end = end.ok_or(Status::Outside)?;
        // A window may go beyond the last address. Nothing answers there.
        let end = window.base.checked_add(end).ok_or(Status::Fault)?;
        Ok(end - len)
    }

    /// Reads what is at an offset in a window.
    pub(super) fn read(&mut self, window: u8, offset: u64, bytes: &mut [u8]) -> Result<(), Status> {
        let address = self.locate(window, offset, bytes.len() as u64)?;
        self.host.read(address, bytes).map_err(|_| Status::Fault)
    }

    /// Writes to what is at an offset in a window.
    pub(super) fn write(&mut self, window: u8, offset: u64, bytes: &[u8]) -> Result<(), Status> {
        let address = self.locate(window, offset, bytes.len() as u64)?;
        self.host.write(address, bytes).map_err(|_| Status::Fault)
    }
}

/// A value in two registers.
pub(super) fn wide(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
