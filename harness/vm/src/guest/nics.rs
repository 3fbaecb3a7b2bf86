// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is done to NICs from outside.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use super::Guest;
use crate::{End, Result, Wire};

impl Guest {
    /// Puts a NIC's link up or down, as if its cable was pulled.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Monitor`], [`crate::Error::DevicesEnded`].
    pub fn set_link(&self, wire: Wire, end: End, up: bool) -> Result<()> {
        if let Some(devices) = &self.devices {
            return devices.set_cable(wire, end, up);
        }
        self.monitor("set_link", json!({ "name": wire.nic(end), "up": up }))
            .map(drop)
    }

    /// Has the root port above the NIC at one end of a wire report an error, by QEMU's name for it
    /// (`pcie_aer_inject_error` of its human monitor). QEMU's igb cannot report any: the bits of Device
    /// Control that allow it to are read-only zeroes there.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Monitor`], also if QEMU knows no such error.
    pub fn inject_bus_error(&self, wire: Wire, end: End, error: &str) -> Result<()> {
        let line = format!("pcie_aer_inject_error {} {error}", wire.port(end));
        let answer = self.monitor("human-monitor-command", json!({ "command-line": line }))?;
        match answer.as_str() {
            Some(text) if text.starts_with("OK") => Ok(()),
            text => Err(crate::Error::Monitor {
                command: line,
                message: text.unwrap_or_default().trim().to_owned(),
            }),
        }
    }

    /// Makes our model of a NIC lie as a plan says, which is one of harness/model's in JSON; without one it
    /// goes on as before. Returns how often it told each lie until now.
    ///
    /// # Errors
    ///
    /// [`crate::Error::BadMachine`] if the NIC is none of ours, or refuses the plan, and
    /// [`crate::Error::DevicesEnded`].
    pub fn lie(&self, wire: Wire, end: End, plan: Option<&Value>) -> Result<Vec<u32>> {
        match &self.devices {
            Some(devices) => devices.lie(wire, end, plan),
            None => Err(crate::Error::BadMachine(
                "QEMU's NICs tell no lies".to_owned(),
            )),
        }
    }

    /// How often the registers of our model of a NIC were accessed since this was last asked:
    /// harness/model's `Accesses` in JSON.
    ///
    /// # Errors
    ///
    /// [`crate::Error::BadMachine`] if the NIC is none of ours, and [`crate::Error::DevicesEnded`].
    pub fn accesses(&self, wire: Wire, end: End) -> Result<Value> {
        match &self.devices {
            Some(devices) => devices.accesses(wire, end),
            None => Err(crate::Error::BadMachine(
                "QEMU's NICs don't count accesses".to_owned(),
            )),
        }
    }

    /// As [`Self::lie`], for the engine of an accelerator.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn lie_engine(&self, plan: Option<&Value>) -> Result<Vec<u32>> {
        match &self.devices {
            Some(devices) => devices.lie_engine(plan),
            None => Err(crate::Error::BadMachine("there is no engine".to_owned())),
        }
    }

    /// Looks whether the driver of one of our models, of NICs or of an engine, did what it must not do, so far.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Violated`], [`crate::Error::DevicesEnded`].
    pub fn check_nics(&self) -> Result<()> {
        self.devices
            .as_ref()
            .map_or(Ok(()), |devices| devices.check())
    }

    /// Keeps the process of our models from running for so long, as a machine does that has much else to do. Without
    /// one, it only waits.
    pub fn stall_devices(&self, time: Duration) {
        match &self.devices {
            Some(devices) => devices.stall(time),
            None => thread::sleep(time),
        }
    }

    /// Unplugs the NIC at one end of a wire: QEMU asks the guest to release it.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Monitor`].
    pub fn unplug(&self, wire: Wire, end: End) -> Result<()> {
        self.monitor("device_del", json!({ "id": wire.nic(end) }))
            .map(drop)
    }

    /// Whether there is a NIC at one end of a wire.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Monitor`].
    pub fn is_plugged(&self, wire: Wire, end: End) -> Result<bool> {
        let list = self.monitor("qom-list", json!({ "path": "/machine/peripheral" }))?;
        let name = wire.nic(end);
        let devices = list.as_array().into_iter().flatten();
        Ok(devices
            .into_iter()
            .any(|device| device["name"] == name.as_str()))
    }

    /// Plugs in the NIC at one end of a wire, which was unplugged.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Monitor`].
    pub fn plug(&self, wire: Wire, end: End) -> Result<()> {
        let mut device = self.nic.split(',');
        let mut nic = json!({
            "driver": device.next(),
            "id": wire.nic(end),
            "bus": wire.port(end),
            "netdev": wire.netdev(end),
            "mac": wire.mac(end).to_string(),
        });
        for (name, value) in device.filter_map(|property| property.split_once('=')) {
            nic[name] = value.into();
        }
        self.monitor("device_add", nic).map(drop)
    }
}
