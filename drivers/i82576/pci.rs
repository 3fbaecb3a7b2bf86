// SPDX-License-Identifier: GPL-2.0 OR MIT

//! PCI identity and BARs (82576 datasheet, chapter "PCIe Programming Interface").

/// Vendor ID: Intel.
pub const VENDOR: u16 = 0x8086;

/// Device ID of the copper part, which is also the one that QEMU's `igb` presents.
pub const DEVICE_COPPER: u16 = 0x10c9;

/// BAR of the register window, [`BAR_SIZE`](crate::regs::BAR_SIZE) bytes of memory space.
pub const BAR_REGISTERS: u32 = 0;

/// BAR of the MSI-X table and pending bits.
pub const BAR_MSIX: u32 = 3;
