// SPDX-License-Identifier: GPL-2.0

//! The ioctls.

use dma_buf::{
    argument::Argument,
    node::Node, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    fs::file::{
        flags::{
            O_ACCMODE,
            O_CLOEXEC, //
        },
        FileDescriptorReservation, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    uaccess::UserPtr, //
};

use crate::{
    memory::Memory,
    uapi::{
        self,
        Alloc,
        Info, //
    },
};

/// Those of dma-heaps.
const VALID_FLAGS: u32 = O_CLOEXEC | O_ACCMODE;

#[vtable]
impl Node for Memory {
    type File = Arc<Self>;

    fn open(this: ArcBorrow<'_, Self>) -> Result<Arc<Self>> {
        Ok(this.into())
    }

    fn ioctl(this: &Arc<Self>, _: &Device<Bound>, command: u32, arg: usize) -> Result<isize> {
        let arg = UserPtr::from_addr(arg);

        match command {
            uapi::IOC_ALLOC => allocate(this, arg)?,
            uapi::IOC_INFO => Info {
                size: this.size(),
                free: this.free(),
                address: this.address(),
            }
            .write(arg)?,
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}

fn allocate(memory: &Arc<Memory>, arg: UserPtr) -> Result {
    let mut request = Alloc::read(arg)?;
    if request.flags & !VALID_FLAGS != 0 {
        return Err(EINVAL);
    }

    let allocation = memory.allocate(request.size, request.align)?;
    let fd = FileDescriptorReservation::get_unused_fd_flags(request.flags & O_CLOEXEC)?;
    request.offset = allocation.offset();
    // CAST: A file descriptor is an `int`.
    request.fd = fd.reserved_fd() as i32;
    let dma_buf = allocation.export(request.flags)?;

    // A descriptor cannot be revoked once it is installed, so everything that can fail comes before.
    request.write(arg)?;
    fd.fd_install(dma_buf.into_file());
    Ok(())
}
