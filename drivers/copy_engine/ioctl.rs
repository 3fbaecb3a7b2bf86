// SPDX-License-Identifier: GPL-2.0

//! The ioctls, and `mmap()`.

use dma_buf::{
    argument::Argument,
    node::Node,
    portal::Portal, //
};
use kernel::{
    device::{
        Bound,
        Device as ParentDevice, //
    },
    prelude::*,
    sync::ArcBorrow,
    uaccess::UserPtr, //
};

use crate::{
    device::Device,
    queue::Queue,
    uapi::{
        self,
        Hold,
        Import,
        Start,
        Wait, //
    },
};

#[vtable]
impl Node for Device {
    type File = Pin<KBox<Queue>>;

    fn open(this: ArcBorrow<'_, Self>) -> Result<Pin<KBox<Queue>>> {
        Queue::new(this.into())
    }

    fn ioctl(
        queue: &Pin<KBox<Queue>>,
        parent: &ParentDevice<Bound>,
        command: u32,
        arg: usize,
    ) -> Result<isize> {
        let at = UserPtr::from_addr(arg);

        match command {
            uapi::IOC_IMPORT => {
                let mut request = Import::read(at)?;
                (request.window, request.size) = queue.import(parent, request.fd)?;
                request.write(at)?;
            }
            uapi::IOC_START => {
                let Start {
                    window,
                    size,
                    offset,
                } = Start::read(at)?;
                queue.start(window, size, offset)?;
            }
            uapi::IOC_WAIT => {
                let mut request = Wait::read(at)?;
                request.head = queue.wait(request.head, request.timeout_ms)?;
                request.write(at)?;
            }
            uapi::IOC_STOP => queue.stop()?,
            uapi::IOC_HOLD => {
                let Hold { nic, queue: of } = Hold::read(at)?;
                queue.hold(parent, nic, of)?;
            }
            uapi::IOC_ARM => queue.arm()?,
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }

    fn portal(queue: &Pin<KBox<Queue>>) -> Portal {
        queue.portal()
    }
}
