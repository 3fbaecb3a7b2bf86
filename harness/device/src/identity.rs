// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a device is on the bus.

/// What distinguishes one device's configuration space from another's. BARs have 32 bits.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID, of the subsystem, too.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Class code, of 24 bits.
    pub class: u32,
    /// Revision.
    pub revision: u8,
    /// The BAR of the registers.
    pub registers: u32,
    /// Bytes of that, a power of two.
    pub registers_size: u32,
    /// The BAR of the MSI-X table and the pending bits.
    pub msix: u32,
    /// MSI-X vectors, at most 64.
    pub vectors: u16,
}
