// SPDX-License-Identifier: MIT OR Apache-2.0

//! PCI devices without a driver, which a case programs itself.

use protocol::pci::{ReadConfig, ReadRegister, WriteConfig, WriteRegister};
use serde_json::{Value, json};

use crate::{CaseError, Result, Testbed};

/// The command register in configuration space, and its bits for memory space and bus master.
const COMMAND: u16 = 4;
const MEMORY_AND_MASTER: u16 = 6;

/// A device that answers and reaches memory.
#[derive(Debug)]
pub struct BareDevice<'b> {
    bed: &'b Testbed,
    name: String,
    /// Its BARs, in the answer to `query-pci`.
    regions: Value,
}

impl Testbed {
    /// The address of a PCI device, as the guest's kernel writes it, by its name in QEMU.
    pub fn pci_address(&self, id: &str) -> Result<String> {
        let device = self.query_pci(id)?;
        let number = |key: &str| device[key].as_u64().ok_or_else(|| no_device(id));
        Ok(format!(
            "0000:{:02x}:{:02x}.{:x}",
            number("bus")?,
            number("slot")?,
            number("function")?
        ))
    }

    fn query_pci(&self, id: &str) -> Result<Value> {
        let buses = self.guest.monitor("query-pci", json!({}))?;
        find(&buses, id).ok_or_else(|| no_device(id))
    }

    /// Switches a device on that has no driver, by its name in QEMU.
    pub fn bare_device(&self, id: &str) -> Result<BareDevice<'_>> {
        let name = self.pci_address(id)?;
        self.write_file(format!("/sys/bus/pci/devices/{name}/enable"), "1")?;
        let command = self.guest.call(ReadConfig {
            device: name.clone(),
            offset: COMMAND,
        })?;
        self.guest.call(WriteConfig {
            device: name.clone(),
            offset: COMMAND,
            value: command | MEMORY_AND_MASTER,
        })?;
        Ok(BareDevice {
            bed: self,
            name,
            // They have addresses now.
            regions: self.query_pci(id)?["regions"].take(),
        })
    }
}

impl BareDevice<'_> {
    /// Where a BAR is.
    pub fn bar(&self, number: u64) -> Result<u64> {
        let mut regions = self.regions.as_array().into_iter().flatten();
        let found = regions.find(|region| region["bar"] == number);
        let address = found.and_then(|region| region["address"].as_u64());
        address.ok_or_else(|| CaseError::new(format!("{} has no BAR {number}", self.name)))
    }

    /// Reads a register of the first BAR.
    pub fn read(&self, offset: u32) -> Result<u32> {
        let device = self.name.clone();
        Ok(self.bed.guest.call(ReadRegister::new(device, offset))?)
    }

    /// Writes one.
    pub fn write(&self, offset: u32, value: u32) -> Result {
        Ok(self
            .bed
            .guest
            .call(WriteRegister::new(&self.name, offset, value))?)
    }
}

fn no_device(id: &str) -> CaseError {
    CaseError::new(format!("there is no PCI device {id}"))
}

/// A device in the answer to `query-pci`.
fn find(buses: &Value, id: &str) -> Option<Value> {
    let mut devices = buses
        .as_array()?
        .iter()
        .flat_map(|bus| bus["devices"].as_array())
        .flatten();
    devices.find_map(|device| match device["qdev_id"] == id {
        true => Some(device.clone()),
        false => find(&json!([device["pci_bridge"]]), id),
    })
}
