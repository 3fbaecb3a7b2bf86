// SPDX-License-Identifier: GPL-2.0

//! `copy_engine.h` in Rust; the header documents the fields.

use kernel::{
    ioctl::{
        _IO,
        _IOW,
        _IOWR, //
    },
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

const MAGIC: u32 = 0xDC;

/// `COPY_ENGINE_IOC_IMPORT`
pub(crate) const IOC_IMPORT: u32 = _IOWR::<Import>(MAGIC, 0x00);
/// `COPY_ENGINE_IOC_START`
pub(crate) const IOC_START: u32 = _IOW::<Start>(MAGIC, 0x01);
/// `COPY_ENGINE_IOC_SUBMIT`
pub(crate) const IOC_SUBMIT: u32 = _IO(MAGIC, 0x02);
/// `COPY_ENGINE_IOC_WAIT`
pub(crate) const IOC_WAIT: u32 = _IOWR::<Wait>(MAGIC, 0x03);
/// `COPY_ENGINE_IOC_STOP`
pub(crate) const IOC_STOP: u32 = _IO(MAGIC, 0x04);

/// `struct copy_engine_import`
#[repr(C)]
pub(crate) struct Import {
    pub(crate) fd: i32,
    pub(crate) window: u32,
    pub(crate) size: u64,
}

/// `struct copy_engine_start`
#[repr(C)]
pub(crate) struct Start {
    pub(crate) window: u32,
    pub(crate) size: u32,
    pub(crate) offset: u64,
}

/// `struct copy_engine_wait`
#[repr(C)]
pub(crate) struct Wait {
    pub(crate) head: u32,
    pub(crate) timeout_ms: u32,
}

// No padding: fields are read and written one after the other.
const _: () = assert!(size_of::<Import>() == 16 && size_of::<Start>() == 16);
const _: () = assert!(size_of::<Wait>() == 8);

impl Import {
    /// # Errors
    ///
    /// `EFAULT` if the program cannot read there.
    pub(crate) fn read(from: UserPtr) -> Result<Self> {
        let mut reader = UserSlice::new(from, size_of::<Self>()).reader();

        Ok(Self {
            fd: reader.read()?,
            window: reader.read()?,
            size: reader.read()?,
        })
    }

    /// # Errors
    ///
    /// `EFAULT` if the program cannot write there.
    pub(crate) fn write(&self, to: UserPtr) -> Result {
        let mut writer = UserSlice::new(to, size_of::<Self>()).writer();

        writer.write(&self.fd)?;
        writer.write(&self.window)?;
        writer.write(&self.size)
    }
}

impl Start {
    /// # Errors
    ///
    /// `EFAULT` if the program cannot read there.
    pub(crate) fn read(from: UserPtr) -> Result<Self> {
        let mut reader = UserSlice::new(from, size_of::<Self>()).reader();

        Ok(Self {
            window: reader.read()?,
            size: reader.read()?,
            offset: reader.read()?,
        })
    }
}

impl Wait {
    /// # Errors
    ///
    /// `EFAULT` if the program cannot read there.
    pub(crate) fn read(from: UserPtr) -> Result<Self> {
        let mut reader = UserSlice::new(from, size_of::<Self>()).reader();

        Ok(Self {
            head: reader.read()?,
            timeout_ms: reader.read()?,
        })
    }

    /// # Errors
    ///
    /// `EFAULT` if the program cannot write there.
    pub(crate) fn write(&self, to: UserPtr) -> Result {
        let mut writer = UserSlice::new(to, size_of::<Self>()).writer();

        writer.write(&self.head)?;
        writer.write(&self.timeout_ms)
    }
}
