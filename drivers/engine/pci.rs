// SPDX-License-Identifier: GPL-2.0 OR MIT

//! How the device shows on the bus.

/// Nobody's vendor ID, which QEMU's educational device has, too.
pub const VENDOR: u16 = 0x1234;
/// Device ID.
pub const DEVICE: u16 = 0x4e42;
/// Class code: a processing accelerator.
pub const CLASS: u32 = 0x12_00_00;
/// The BAR of the registers.
pub const BAR_REGISTERS: u32 = 0;
/// The BAR of the MSI-X table.
pub const BAR_MSIX: u32 = 2;
/// MSI-X vectors: vector `n` is queue `n`'s.
pub const VECTORS: u16 = crate::regs::QUEUES as u16;
