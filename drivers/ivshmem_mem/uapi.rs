// SPDX-License-Identifier: GPL-2.0

//! `ivshmem_mem.h` in Rust; the header documents the fields.

use kernel::ioctl::{
    _IOR,
    _IOWR, //
};

const MAGIC: u32 = 0xDB;

/// `IVSHMEM_MEM_IOC_ALLOC`
pub(crate) const IOC_ALLOC: u32 = _IOWR::<Alloc>(MAGIC, 0x00);
/// `IVSHMEM_MEM_IOC_INFO`
pub(crate) const IOC_INFO: u32 = _IOR::<Info>(MAGIC, 0x01);

dma_buf::ioctl_arguments! {
    /// `struct ivshmem_mem_alloc`
    struct Alloc {
        size: u64,
        align: u64,
        flags: u32,
        fd: i32,
        offset: u64,
    }

    /// `struct ivshmem_mem_info`
    struct Info {
        size: u64,
        free: u64,
        address: u64,
    }
}
