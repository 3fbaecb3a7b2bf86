// SPDX-License-Identifier: GPL-2.0 OR MIT

//! How the device shows on the bus.

/// Vendor ID of QEMU's own devices, `ivshmem` among them.
pub const VENDOR: u16 = 0x1af4;
/// Device ID: one of those that anybody may use for experiments (QEMU, `docs/specs/pci-ids.rst`).
pub const DEVICE: u16 = 0x10fe;
/// Class code: a processing accelerator.
pub const CLASS: u32 = 0x12_00_00;
/// The BAR of the registers.
pub const BAR_REGISTERS: u32 = 0;
/// The BAR of the MSI-X table.
pub const BAR_MSIX: u32 = 2;
/// MSI-X vectors: vector `n` is queue `n`'s.
pub const VECTORS: u16 = crate::regs::QUEUES as u16;
