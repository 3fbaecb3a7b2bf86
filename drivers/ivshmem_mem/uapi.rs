// SPDX-License-Identifier: GPL-2.0

//! `ivshmem_mem.h` in Rust; the header documents the fields.

use kernel::{
    ioctl::{
        _IOR,
        _IOWR, //
    },
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

const MAGIC: u32 = 0xDB;

/// `IVSHMEM_MEM_IOC_ALLOC`
pub(crate) const IOC_ALLOC: u32 = _IOWR::<Alloc>(MAGIC, 0x00);
/// `IVSHMEM_MEM_IOC_INFO`
pub(crate) const IOC_INFO: u32 = _IOR::<Info>(MAGIC, 0x01);

/// `struct ivshmem_mem_alloc`
#[repr(C)]
pub(crate) struct Alloc {
    pub(crate) size: u64,
    pub(crate) align: u64,
    pub(crate) flags: u32,
    pub(crate) fd: i32,
    pub(crate) offset: u64,
}

/// `struct ivshmem_mem_info`
#[repr(C)]
pub(crate) struct Info {
    pub(crate) size: u64,
    pub(crate) free: u64,
    pub(crate) address: u64,
}

// No padding: fields are read and written one after the other.
const _: () = assert!(size_of::<Alloc>() == 32 && size_of::<Info>() == 24);

impl Alloc {
    /// # Errors
    ///
    /// `EFAULT` if the program cannot read there.
    pub(crate) fn read(from: UserPtr) -> Result<Self> {
        let mut reader = UserSlice::new(from, size_of::<Self>()).reader();

        Ok(Self {
            size: reader.read()?,
            align: reader.read()?,
            flags: reader.read()?,
            fd: reader.read()?,
            offset: reader.read()?,
        })
    }

    /// # Errors
    ///
    /// `EFAULT` if the program cannot write there.
    pub(crate) fn write(&self, to: UserPtr) -> Result {
        let mut writer = UserSlice::new(to, size_of::<Self>()).writer();

        writer.write(&self.size)?;
        writer.write(&self.align)?;
        writer.write(&self.flags)?;
        writer.write(&self.fd)?;
        writer.write(&self.offset)
    }
}

impl Info {
    /// # Errors
    ///
    /// `EFAULT` if the program cannot write there.
    pub(crate) fn write(&self, to: UserPtr) -> Result {
        let mut writer = UserSlice::new(to, size_of::<Self>()).writer();

        writer.write(&self.size)?;
        writer.write(&self.free)?;
        writer.write(&self.address)
    }
}
