// SPDX-License-Identifier: GPL-2.0

//! An accelerator's engine, which copies, fills, compares and adds what is in dma-bufs.
//!
//! Each program that opens `/dev/copy_engine0`, `1` … gets a work queue, and imports the dma-bufs that it
//! is to reach; they include `copy_engine.h`. After that the driver only waits for interrupts: descriptors
//! and the doorbell, which programs map, are between the program and the device, which checks that they stay
//! in the queue's windows.
//!
//! Modules:
//!
//! - [`driver`]: PCI device table, and probe;
//! - [`device`]: the registers, and which queues are in use;
//! - [`queue`]: a work queue and its windows;
//! - [`signal`]: rings for a TX queue of a NIC;
//! - [`nics`]: which NICs let it;
//! - [`ioctl`]: the ioctls, and `mmap()`;
//! - [`uapi`]: `copy_engine.h` in Rust;
//! - the crate `engine`: the device's registers and descriptors;
//! - the crate `doorbell`: what such a NIC's driver and this one agree on;
//! - the crate `dma_buf`: how a dma-buf is imported, and a doorbell is mapped.
//!
//! # Lifetimes
//!
//! A queue belongs to an open file. Closing it disables the queue, waits until it rests, and then unmaps
//! what it has imported. At unbind the device is reset first, so that it does no DMA any more, then devres
//! unmaps, and takes the doorbells from programs; a file that is still open gets `ENODEV`.

mod device;
mod driver;
mod ioctl;
mod nics;
mod queue;
mod signal;
mod uapi;

use kernel::{
    auxiliary,
    driver::Registration,
    pci,
    prelude::*,
    InPlaceModule, //
};

module! {
    type: Module,
    name: "copy_engine",
    authors: ["The nobounce developers"],
    description: "Work queues of an accelerator's engine",
    license: "GPL",
    imports_ns: ["DMA_BUF"],
}

/// Both drivers. That of NICs goes last, as queues may have their doorbells.
#[pin_data]
struct Module {
    #[pin]
    _engines: Registration<pci::Adapter<driver::CopyEngine>>,
    #[pin]
    _nics: Registration<auxiliary::Adapter<nics::Nics>>,
}

impl InPlaceModule for Module {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        // SAFETY: This is called once.
        unsafe { nics::init() };
        try_pin_init!(Self {
            _nics <- Registration::new(<LocalModule as kernel::ModuleMetadata>::NAME, module),
            _engines <- Registration::new(<LocalModule as kernel::ModuleMetadata>::NAME, module),
        })
    }
}
