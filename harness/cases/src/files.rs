// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files of the guest's kernel: procfs, sysfs and debugfs.

use protocol::{
    Ns,
    kernel::{ReadFile, WriteFile},
};

use crate::{Result, Testbed};

impl Testbed {
    /// Reads a text file, as the namespace of the NIC under test sees it.
    pub fn read_file(&self, path: impl Into<String>) -> Result<String> {
        Ok(self.guest.call(ReadFile::new(Ns::Local, path))?)
    }

    /// Writes a text into a file, as the namespace of the NIC under test sees it.
    pub fn write_file(&self, path: impl Into<String>, contents: impl Into<String>) -> Result {
        let write = WriteFile::new(Ns::Local, path, contents);
        Ok(self.guest.call(write)?)
    }

    /// Writes an attribute of an interface's TX queue, such as `xps_cpus`.
    pub fn set_tx_queue(
        &self,
        interface: &str,
        queue: u32,
        attribute: &str,
        contents: impl Into<String>,
    ) -> Result {
        self.write_file(tx_queue(interface, queue, attribute), contents)
    }

    /// Reads a number that is an attribute of an interface's TX queue.
    pub fn tx_queue(&self, interface: &str, queue: u32, attribute: &str) -> Result<u64> {
        let text = self.read_file(tx_queue(interface, queue, attribute))?;
        Ok(text.trim().parse()?)
    }

    /// Has a driver `bind` to a PCI device or `unbind` from it, by the device's address.
    pub fn tell_driver(&self, driver: &str, what: &str, device: &str) -> Result {
        self.write_file(format!("/sys/bus/pci/drivers/{driver}/{what}"), device)
    }
}

/// The file of a TX queue's attribute. The guest's sysfs shows only interfaces of one namespace.
fn tx_queue(interface: &str, queue: u32, attribute: &str) -> String {
    format!("/sys/class/net/{interface}/queues/tx-{queue}/{attribute}")
}
