// SPDX-License-Identifier: GPL-2.0

//! `copy_engine.h` in Rust; the header documents the fields.

use kernel::ioctl::{
    _IO,
    _IOW,
    _IOWR, //
};

const MAGIC: u32 = 0xDC;

/// `COPY_ENGINE_IOC_IMPORT`
pub(crate) const IOC_IMPORT: u32 = _IOWR::<Import>(MAGIC, 0x00);
/// `COPY_ENGINE_IOC_START`
pub(crate) const IOC_START: u32 = _IOW::<Start>(MAGIC, 0x01);
/// `COPY_ENGINE_IOC_WAIT`
pub(crate) const IOC_WAIT: u32 = _IOWR::<Wait>(MAGIC, 0x02);
/// `COPY_ENGINE_IOC_STOP`
pub(crate) const IOC_STOP: u32 = _IO(MAGIC, 0x03);
/// `COPY_ENGINE_IOC_HOLD`
pub(crate) const IOC_HOLD: u32 = _IOW::<Hold>(MAGIC, 0x04);
/// `COPY_ENGINE_IOC_ARM`
pub(crate) const IOC_ARM: u32 = _IO(MAGIC, 0x05);

dma_buf::ioctl_arguments! {
    /// `struct copy_engine_import`
    struct Import {
        fd: i32,
        window: u32,
        size: u64,
    }

    /// `struct copy_engine_start`
    struct Start {
        window: u32,
        size: u32,
        offset: u64,
    }

    /// `struct copy_engine_hold`
    struct Hold {
        nic: u32,
        queue: u32,
    }

    /// `struct copy_engine_wait`
    struct Wait {
        head: u32,
        timeout_ms: u32,
    }
}
