// SPDX-License-Identifier: MIT OR Apache-2.0

//! A device for tests: it does one thing at a time, by its registers.

use i82576::regs::BAR_SIZE;
use model::{Fault, Host, nic::Nic};

use device::{Device, Identity};

/// An address to read from. All addresses are two registers, the low half first.
pub(crate) const SOURCE: u32 = 0x00;
/// An address to write to.
pub(crate) const DESTINATION: u32 = 0x08;
/// How many bytes, at most [`MOST`].
pub(crate) const LENGTH: u32 = 0x10;
/// Writing [`COPY`] or [`SEND`] does it.
pub(crate) const COMMAND: u32 = 0x14;
/// Writing a vector sends its interrupt.
pub(crate) const INTERRUPT: u32 = 0x18;
/// Writing nanoseconds sends interrupt 0 after them.
pub(crate) const TIMER: u32 = 0x1c;
/// How many accesses nothing has answered.
pub(crate) const FAULTS: u32 = 0x20;
/// How many frames have come. Each is written to [`DESTINATION`], and sends interrupt 1.
pub(crate) const RECEIVED: u32 = 0x24;
/// How often it has been reset.
pub(crate) const RESETS: u32 = 0x28;
/// How many damaged frames have come.
pub(crate) const DAMAGED: u32 = 0x2c;
/// How often frames have come: those that come at once have come once.
pub(crate) const BURSTS: u32 = 0x38;
/// How many frames [`SEND`] sends beside the first one.
pub(crate) const MORE: u32 = 0x3c;
/// Its Ethernet address, in two registers.
pub(crate) const MAC: u32 = 0x30;

/// Copies from [`SOURCE`] to [`DESTINATION`].
pub(crate) const COPY: u32 = 1;
/// Sends what is at [`SOURCE`] as a frame.
pub(crate) const SEND: u32 = 2;

/// Most bytes of a command.
pub(crate) const MOST: u32 = 64 * 1024;

/// The device. All other registers hold what is written to them.
#[derive(Debug)]
pub(crate) struct Dummy {
    registers: Vec<u32>,
    mac: [u8; 6],
    resets: u32,
    now: u64,
    deadline: Option<u64>,
    /// Frames have come since it was last told the time.
    came: bool,
}

impl Dummy {
    /// A device with this Ethernet address.
    #[must_use]
    pub(crate) fn new(mac: [u8; 6]) -> Self {
        let mut this = Self {
            registers: Vec::new(),
            mac,
            resets: 0,
            now: 0,
            deadline: None,
            came: false,
        };
        this.clear();
        this
    }

    fn clear(&mut self) {
        let [a, b, c, d, e, f] = self.mac;
        self.registers = vec![0; BAR_SIZE / 4];
        self.set(MAC, u32::from_le_bytes([a, b, c, d]));
        self.set(MAC + 4, u32::from_le_bytes([e, f, 0, 0]));
        self.set(RESETS, self.resets);
        self.deadline = None;
    }

    fn get(&self, offset: u32) -> u32 {
        let register = self.registers.get(offset as usize / 4);
        register.copied().unwrap_or(u32::MAX)
    }

    fn set(&mut self, offset: u32, value: u32) {
        if let Some(register) = self.registers.get_mut(offset as usize / 4) {
            *register = value;
        }
    }

    fn count(&mut self, offset: u32) {
        self.set(offset, self.get(offset).wrapping_add(1));
    }

    fn address(&self, offset: u32) -> u64 {
        u64::from(self.get(offset + 4)) << 32 | u64::from(self.get(offset))
    }

    fn act(&mut self, command: u32, host: &mut dyn Host) -> Result<(), Fault> {
        let mut bytes = vec![0; self.get(LENGTH).min(MOST) as usize];
        host.read(self.address(SOURCE), &mut bytes)?;
        match command {
            COPY => host.write(self.address(DESTINATION), &bytes)?,
            SEND => (0..=self.get(MORE)).for_each(|_| host.send(bytes.clone())),
            _ => {}
        }
        Ok(())
    }
}

impl Device for Dummy {
    fn identity(&self) -> &'static Identity {
        Nic::new(self.mac).identity()
    }

    fn read_register(&mut self, offset: u32, _: &mut dyn Host) -> u32 {
        self.get(offset)
    }

    fn write_register(&mut self, offset: u32, value: u32, host: &mut dyn Host) {
        match offset {
            COMMAND => {
                if self.act(value, host).is_err() {
                    self.count(FAULTS);
                }
            }
            INTERRUPT => host.interrupt(value as u16),
            TIMER => self.deadline = Some(self.now.saturating_add(value.into())),
            _ => self.set(offset, value),
        }
    }

    fn reset(&mut self) {
        self.resets = self.resets.wrapping_add(1);
        self.clear();
    }

    fn receive(&mut self, frame: &[u8], host: &mut dyn Host) {
        self.count(RECEIVED);
        self.came = true;
        if host.write(self.address(DESTINATION), frame).is_err() {
            self.count(FAULTS);
        }
        host.interrupt(1);
    }

    fn receive_damaged(&mut self, _: &[u8], _: &mut dyn Host) {
        self.count(DAMAGED);
    }

    fn elapse(&mut self, now: u64, host: &mut dyn Host) -> Option<u64> {
        self.now = now;
        if std::mem::take(&mut self.came) {
            self.count(BURSTS);
        }
        if self.deadline.take_if(|deadline| *deadline <= now).is_some() {
            host.interrupt(0);
        }
        self.deadline
    }
}
