// SPDX-License-Identifier: GPL-2.0

//! The memory behind an ivshmem device, as an accelerator's: dma-bufs for peer-to-peer DMA.
//!
//! QEMU's `ivshmem-plain` has memory in BAR 2 and nothing else: no registers, no engine. That is
//! what of an accelerator matters to a NIC that puts payload there. Programs get parts of it as
//! dma-bufs from `/dev/ivshmem_mem0`, `1` …, one for each device; `ivshmem_mem.h` is what they
//! include.
//!
//! Where to read what:
//!
//! - [`driver`]: which PCI devices, and what probe does;
//! - [`memory`]: which parts of the BAR are taken;
//! - [`ioctl`]: what programs ask for;
//! - [`uapi`]: `ivshmem_mem.h` in Rust;
//! - the crate `dma_buf`: how a range becomes a dma-buf, and what devices may map it;
//! - the crate `page_ranges`: where the next free range is.
//!
//! # Lifetimes
//!
//! A dma-buf owns its range of pages, which is free again with the last reference to it. It keeps
//! the module loaded and the device bound: `rmmod` fails while there is one, and unbinding or
//! removing the device waits for the last one (see the crate `dma_buf`). A program that has the
//! node open keeps the module, but not the device: it gets `ENODEV` then.

mod driver;
mod ioctl;
mod memory;
mod uapi;

kernel::module_pci_driver! {
    type: driver::IvshmemMem,
    name: "ivshmem_mem",
    authors: ["The nobounce developers"],
    description: "ivshmem memory as dma-bufs for peer-to-peer DMA",
    license: "GPL",
    imports_ns: ["DMA_BUF"],
}
