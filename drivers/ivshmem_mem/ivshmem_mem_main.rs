// SPDX-License-Identifier: GPL-2.0

//! The memory behind an ivshmem device, as an accelerator's: dma-bufs for peer-to-peer DMA.
//!
//! QEMU's `ivshmem-plain` has memory in BAR 2 and nothing else: no registers, no engine. To a NIC
//! that writes payload there, this is all that matters of an accelerator. Programs allocate parts of
//! it as dma-bufs from `/dev/ivshmem_mem0`, `1` …, one for each device; they include
//! `ivshmem_mem.h`.
//!
//! Modules:
//!
//! - [`driver`]: PCI device table, and probe;
//! - [`memory`]: allocates ranges of the BAR;
//! - [`ioctl`]: the ioctls;
//! - [`uapi`]: `ivshmem_mem.h` in Rust;
//! - the crate `dma_buf`: how a range becomes a dma-buf, and which devices may map it;
//! - the crate `page_ranges`: finds free ranges.
//!
//! # Lifetimes
//!
//! A dma-buf owns its range of pages, which is freed with the last reference to it. It keeps the
//! module loaded and the device bound: `rmmod` fails while there is one, and unbinding or
//! removing the device waits for the last one (see the crate `dma_buf`). A program that has the
//! node open keeps the module loaded, but not the device bound: then it gets `ENODEV`.

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
