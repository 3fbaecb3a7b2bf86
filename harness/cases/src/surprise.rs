// SPDX-License-Identifier: MIT OR Apache-2.0

//! Surprise removal of the NIC under test, which the guest notices later.
//!
//! QEMU asks a guest to release a device, and removes it once the port's driver has turned the
//! slot off. Here the slot is turned off behind the driver's back, with the port's interrupts off:
//! the device is gone. When power and interrupts are on again, the port reports an empty slot.
//! Where no device answers, PCI reads as ones, but QEMU's bus as zeros: the expansion ROM of the
//! other NIC, full of ones, takes the place of the registers.

use std::{fs, process};

use protocol::pci::{ReadConfig, ReadRegister, WriteConfig};
use serde_json::{Value, json};
use vm::Images;

use crate::{CaseError, Options, Result, Testbed};

/// The size of the registers' BAR, in bytes.
const BAR: usize = 128 << 10;

/// Base and limit of the memory window in a bridge's configuration space: the upper 12 of 32 bits
/// (PCI to PCI Bridge Architecture Specification, 3.2.5.8).
const MEMORY_BASE: u16 = 0x20;
const MEMORY_LIMIT: u16 = 0x22;

/// Offset of the expansion ROM's base address in configuration space, and the bit that maps it
/// (PCI specification, 6.2.5.2).
const ROM_ADDRESS: u16 = 0x30;
const ROM_ENABLE: u32 = 1;

/// Slot Control of QEMU's `pcie-root-port`, whose PCI Express capability is at 0x54.
const SLOT_CONTROL: u16 = 0x54 + 0x18;
/// The slot is off, its indicators are off, and no event raises an interrupt (PCI Express Base
/// Specification, 7.5.3.10).
const OFF: u16 = 1 << 10 | 3 << 8 | 3 << 6;
/// The slot is on, and its attention button, presence, link and completed commands raise
/// interrupts. So is its power indicator: the driver turns that off one second after the slot.
const ON: u16 = 1 << 12 | 1 << 8 | 3 << 6 | 1 << 5 | 1 << 4 | 1 << 3 | 1;
/// The power indicator, off in [`OFF`].
const POWER_INDICATOR: u16 = 3 << 8;

/// A NIC that is gone, and a guest that has not noticed.
#[derive(Debug)]
#[must_use = "the guest has not noticed yet"]
pub struct PulledOut {
    port: Port,
    peer: String,
    peer_port: Port,
}

/// A port, with what is behind it.
#[derive(Debug)]
pub(crate) struct Port {
    name: String,
    base: u32,
    limit: u32,
    /// Address of the first BAR of the device behind it.
    pub(crate) registers: u32,
}

impl Options {
    /// Lets the NIC under test be pulled out ([`Testbed::pull_out`]). The ROM image is written beside
    /// the logs.
    pub fn pull_out(self) -> Result<Self> {
        let image = Images::from_env()?.logs.join("ones.rom");
        // Other cases may be reading it.
        let mine = image.with_extension(process::id().to_string());
        fs::write(&mine, vec![0xff; BAR])?;
        fs::rename(mine, &image)?;
        Ok(self.hot_plug().machine(|machine| machine.nic_rom(image)))
    }
}

impl Testbed {
    /// Pulls the NIC under test out of its slot: it can no longer access memory, and its registers
    /// read as ones.
    pub fn pull_out(&self) -> Result<PulledOut> {
        let device = self.pci_device(self.local)?;
        let peer = self.pci_device(self.peer)?;
        let (port, peer_port) = (self.port_of(&device)?, self.port_of(&peer)?);

        let base = port.base.min(peer_port.base);
        let limit = port.limit.max(peer_port.limit);
        self.set_window(&peer_port.name, base, limit)?;
        self.set_rom(&peer, port.registers | ROM_ENABLE)?;
        self.write_config(&port.name, SLOT_CONTROL, OFF)?;
        self.wait_unplugged(self.local)?;
        let register = self.guest.call(ReadRegister::new(device, 0))?;
        if register != u32::MAX {
            let what = format!("a register that is gone reads as {register:#x}");
            return Err(CaseError::new(what));
        }
        Ok(PulledOut {
            port,
            peer,
            peer_port,
        })
    }

    /// Lets the guest notice, and waits until it has turned the slot off, which it does once the
    /// driver has released the device, and the indicator. Then a NIC can be plugged in again
    /// ([`Testbed::plug`]). Before, the port's driver would heed nothing of that but the button,
    /// which QEMU presses then, and empty the slot five seconds later.
    pub fn notice(&self, gone: PulledOut) -> Result {
        self.write_config(&gone.port.name, SLOT_CONTROL, ON)?;
        self.wait_until(1, || {
            let control = self.guest.call(ReadConfig {
                device: gone.port.name.clone(),
                offset: SLOT_CONTROL,
            })?;
            Ok((control & POWER_INDICATOR == OFF & POWER_INDICATOR).into())
        })?;
        self.set_rom(&gone.peer, 0)?;
        let port = gone.peer_port;
        self.set_window(&port.name, port.base, port.limit)
    }

    fn set_window(&self, port: &str, base: u32, limit: u32) -> Result {
        self.write_config(port, MEMORY_BASE, (base >> 16) as u16)?;
        self.write_config(port, MEMORY_LIMIT, (limit >> 16) as u16)
    }

    fn set_rom(&self, device: &str, address: u32) -> Result {
        self.write_config(device, ROM_ADDRESS + 2, (address >> 16) as u16)?;
        self.write_config(device, ROM_ADDRESS, address as u16)
    }

    fn write_config(&self, device: &str, offset: u16, value: u16) -> Result {
        Ok(self.guest.call(WriteConfig {
            device: device.to_owned(),
            offset,
            value,
        })?)
    }

    /// The port that a device is behind, by the device's name.
    pub(crate) fn port_of(&self, device: &str) -> Result<Port> {
        let buses = self.guest.monitor("query-pci", json!({}))?;
        let number = device.split(':').nth(1).unwrap_or_default();
        let number = u64::from_str_radix(number, 16)?;
        find(&buses, number).ok_or_else(|| CaseError::new(format!("{device} is behind no port")))
    }
}

/// The port that leads to bus `number`, in the answer to `query-pci`.
fn find(buses: &Value, number: u64) -> Option<Port> {
    let address = |value: &Value| value.as_u64().and_then(|value| u32::try_from(value).ok());
    let roots = buses.as_array()?.iter();
    let mut devices = roots.flat_map(|bus| bus["devices"].as_array()).flatten();
    let found = devices.find(|device| device["pci_bridge"]["bus"]["secondary"] == number)?;
    let range = &found["pci_bridge"]["bus"]["memory_range"];
    let behind = &found["pci_bridge"]["devices"][0];
    Some(Port {
        name: format!(
            "0000:{:02x}:{:02x}.{:x}",
            found["bus"].as_u64()?,
            found["slot"].as_u64()?,
            found["function"].as_u64()?
        ),
        base: address(&range["base"])?,
        limit: address(&range["limit"])?,
        registers: address(&behind["regions"][0]["address"])?,
    })
}
