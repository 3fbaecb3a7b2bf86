// SPDX-License-Identifier: MIT OR Apache-2.0

//! PCI devices, past their drivers.

use serde::{Deserialize, Serialize};

/// Reads a register in the first BAR of a PCI device, past its driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadRegister {
    /// Name of the device, for instance `0000:01:00.0`.
    pub device: String,
    /// Where in the BAR, in bytes; a multiple of 4.
    pub offset: u32,
}

impl ReadRegister {
    /// The request with these fields.
    pub fn new(device: impl Into<String>, offset: u32) -> Self {
        Self {
            device: device.into(),
            offset,
        }
    }
}

/// Writes a register in the first BAR of a PCI device, past its driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteRegister {
    /// Name of the device, for instance `0000:01:00.0`.
    pub device: String,
    /// Where in the BAR, in bytes; a multiple of 4.
    pub offset: u32,
    /// What to write.
    pub value: u32,
}

impl WriteRegister {
    /// The request with these fields.
    pub fn new(device: impl Into<String>, offset: u32, value: u32) -> Self {
        Self {
            device: device.into(),
            offset,
            value,
        }
    }
}

/// Reads a word in the configuration space of a PCI device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadConfig {
    /// Name of the device, for instance `0000:01:00.0`.
    pub device: String,
    /// Where, in bytes.
    pub offset: u16,
}

/// Writes a word in the configuration space of a PCI device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteConfig {
    /// Name of the device, for instance `0000:01:00.0`.
    pub device: String,
    /// Where, in bytes.
    pub offset: u16,
    /// What to write.
    pub value: u16,
}
