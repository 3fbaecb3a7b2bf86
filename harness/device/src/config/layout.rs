// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is where in configuration space, and what can be written (82576 datasheet, chapter "PCIe
//! Programming Interface"). What QEMU's `igb` has beyond, such as SR-IOV, is absent. Other devices have the
//! same capabilities.

use crate::Identity;

/// Bytes of configuration space.
pub(crate) const SIZE: usize = 4096;

/// Bytes of the BAR with the MSI-X table and the pending bits.
pub(crate) const MSIX_BAR_SIZE: u32 = 16 * 1024;

pub(super) const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const CACHE_LINE_SIZE: usize = 0x0c;
const BARS: usize = 0x10;
const CAPABILITIES: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;

pub(super) const POWER: usize = 0x40;
pub(super) const POWER_CONTROL: usize = POWER + 4;
pub(super) const MSIX: usize = 0x70;
pub(super) const MSIX_CONTROL: usize = MSIX + 2;
pub(super) const EXPRESS: usize = 0xa0;
pub(super) const DEVICE_CONTROL: usize = EXPRESS + 8;
pub(super) const LINK_CONTROL: usize = EXPRESS + 0x10;
const ERRORS: usize = 0x100;

/// Command: memory space, bus master, and parity errors, SERR# and INTx disable, which do nothing.
const COMMAND_MASK: u32 = 0x0546;
pub(super) const MEMORY_SPACE: u16 = 1 << 1;
pub(super) const BUS_MASTER: u16 = 1 << 2;
/// Status: errors, which are cleared by writing 1.
const STATUS_ERRORS: u32 = 0xf900;
const STATUS_CAPABILITIES: u32 = 1 << 4;

/// Power management: version 3, initialization by a driver, PME from D0 and D3hot.
const POWER_CAPABILITIES: u32 = 0x4823;
pub(super) const POWER_STATE: u16 = 0b11;
const PME_ENABLE: u32 = 1 << 8;
pub(super) const PME_STATUS: u16 = 1 << 15;

pub(super) const MSIX_ENABLE: u16 = 1 << 15;
const MSIX_FUNCTION_MASK: u16 = 1 << 14;
/// Where the pending bits are in their BAR.
pub(crate) const PENDING_BITS: u32 = 0x2000;

/// 512 bytes of payload, latencies, role-based error reporting, FLR.
const DEVICE_CAPABILITIES: u32 = 0x1000_8cc2;
/// Requests of 512 bytes, no snoop, relaxed ordering.
const DEVICE_CONTROL_DEFAULT: u32 = 0x2810;
const DEVICE_CONTROL_MASK: u32 = 0x78ff;
pub(super) const MAX_PAYLOAD: u16 = 0b111 << 5;
pub(super) const FLR: u16 = 1 << 15;
/// Four lanes of 2.5 GT/s.
const LINK: u32 = 0x41;
const LINK_CONTROL_MASK: u32 = 0x00cb;
const SLOT_CLOCK: u32 = 1 << 12;
/// Timeouts of completions: all ranges, and none.
const TIMEOUTS: u32 = 0x1f;

/// Uncorrectable errors that there can be, and which are fatal.
const UNCORRECTABLE: u32 = 0x0017_f010;
const FATAL: u32 = 0x0006_2010;
const CORRECTABLE: u32 = 0x31c1;
/// Advisory non-fatal errors.
const CORRECTABLE_MASKED: u32 = 0x2000;

/// Contents, and what writing does.
#[derive(Clone)]
pub(super) struct Layout {
    pub(super) bytes: [u8; SIZE],
    /// Bits that are written.
    pub(super) writable: [u8; SIZE],
    /// Bits that writing 1 clears.
    pub(super) clearable: [u8; SIZE],
}

impl Layout {
    /// As it is when power comes.
    pub(super) fn new(identity: &Identity) -> Self {
        let mut this = Self {
            bytes: [0; SIZE],
            writable: [0; SIZE],
            clearable: [0; SIZE],
        };
        this.add_header(identity);
        this.add_capabilities(identity);
        this.add_errors();
        this
    }

    fn add_header(&mut self, identity: &Identity) {
        let device = u32::from(identity.device) << 16 | u32::from(identity.vendor);
        self.value(0x00, device);
        self.value(COMMAND, STATUS_CAPABILITIES << 16);
        self.writable(COMMAND, COMMAND_MASK);
        self.clearable(STATUS - 2, STATUS_ERRORS << 16);
        self.value(0x08, identity.class << 8 | u32::from(identity.revision));
        self.writable(CACHE_LINE_SIZE, 0xff);
        // 32 bits, not prefetchable. Those that are absent, and the ROM's, stay 0.
        let sizes = [
            (identity.registers, identity.registers_size),
            (identity.msix, MSIX_BAR_SIZE),
        ];
        for (bar, size) in sizes {
            self.writable(bar_at(bar), !(size - 1));
        }
        self.value(0x2c, u32::from(identity.vendor));
        self.value(CAPABILITIES, POWER as u32);
        // No interrupt pin: there is only MSI-X.
        self.writable(INTERRUPT_LINE, 0xff);
    }

    fn add_capabilities(&mut self, identity: &Identity) {
        self.value(POWER, POWER_CAPABILITIES << 16 | (MSIX as u32) << 8 | 0x01);
        self.writable(POWER_CONTROL, u32::from(POWER_STATE) | PME_ENABLE);
        self.clearable(POWER_CONTROL, u32::from(PME_STATUS));

        let vectors = u32::from(identity.vectors) - 1;
        self.value(MSIX, vectors << 16 | (EXPRESS as u32) << 8 | 0x11);
        self.writable(MSIX, u32::from(MSIX_ENABLE | MSIX_FUNCTION_MASK) << 16);
        self.value(MSIX + 4, identity.msix);
        self.value(MSIX + 8, PENDING_BITS | identity.msix);

        // Version 2, an endpoint, the last of the list.
        self.value(EXPRESS, 2 << 16 | 0x10);
        self.value(EXPRESS + 4, DEVICE_CAPABILITIES);
        self.value(DEVICE_CONTROL, DEVICE_CONTROL_DEFAULT);
        self.writable(DEVICE_CONTROL, DEVICE_CONTROL_MASK);
        self.clearable(DEVICE_CONTROL, 0xf << 16);
        self.value(EXPRESS + 0x0c, LINK);
        self.value(LINK_CONTROL, (LINK | SLOT_CLOCK) << 16);
        self.writable(LINK_CONTROL, LINK_CONTROL_MASK);
        self.value(EXPRESS + 0x24, TIMEOUTS);
        self.writable(EXPRESS + 0x28, TIMEOUTS);
    }

    /// Advanced error reporting, version 1, the last of the extended list.
    fn add_errors(&mut self) {
        self.value(ERRORS, 1 << 16 | 0x0001);
        self.clearable(ERRORS + 0x04, UNCORRECTABLE);
        self.writable(ERRORS + 0x08, UNCORRECTABLE);
        self.value(ERRORS + 0x0c, FATAL);
        self.writable(ERRORS + 0x0c, UNCORRECTABLE);
        self.clearable(ERRORS + 0x10, CORRECTABLE);
        self.value(ERRORS + 0x14, CORRECTABLE_MASKED);
        self.writable(ERRORS + 0x14, CORRECTABLE);
    }

    fn value(&mut self, offset: usize, value: u32) {
        set(&mut self.bytes, offset, value);
    }

    fn writable(&mut self, offset: usize, bits: u32) {
        set(&mut self.writable, offset, bits);
    }

    fn clearable(&mut self, offset: usize, bits: u32) {
        set(&mut self.clearable, offset, bits);
    }
}

/// Where a BAR is.
pub(super) const fn bar_at(bar: u32) -> usize {
    BARS + 4 * bar as usize
}

fn set(bytes: &mut [u8; SIZE], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}
