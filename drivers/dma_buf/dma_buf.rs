// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions for drivers that export a device's memory as dma-bufs, or [import] them.
//!
//! A dma-buf is memory behind a file descriptor, which other drivers (importers) map for DMA by
//! their devices. Here the memory is a BAR: DMA to it is peer-to-peer and touches neither the CPU
//! nor host RAM. This crate knows no driver. A driver
//!
//! 1. turns its BAR into a [`PeerMemory`](peer::PeerMemory) in probe;
//! 2. [registers a node](node::register), through which programs allocate memory;
//! 3. takes a [`PeerRange`](peer::PeerRange) of the BAR for each request (the driver keeps track of
//!    free ranges) and [exports](export::export) it, with data that frees the range when it is
//!    dropped.
//!
//! # Lifetimes
//!
//! ```text
//! file descriptors, mmap()s, importers
//!   └─ dma-buf ── module reference: no rmmod while one exists
//!        └─ the driver's data, dropped first: frees the range
//!        └─ PeerRange ── holds off unbinding
//!             └─ PeerMemory ── the BAR; closed and drained at unbind
//! ```
//!
//! # Unbinding
//!
//! Peer-to-peer DMA to a device ends when it is unbound from its driver, and importers that attach
//! statically, as devmem TCP and io_uring do, cannot be asked to release the memory. So unbinding
//! first refuses new exports (`ENODEV`), and then waits until the last dma-buf is gone: a write to
//! `unbind` or `remove` in sysfs blocks for that time, which is logged. `rmmod` fails immediately.
//! All of that is tied to the device's resources (devres), which cannot be leaked.
//!
//! # What a driver promises
//!
//! Only that the BAR is memory ([`PeerMemory::new`](peer::PeerMemory::new) is `unsafe`): the CPU,
//! programs and other devices write to what is exported, and none of them may reach a device's
//! registers that way. A BAR that the device itself does not call prefetchable is refused.
//!
//! # Which importers are served
//!
//! Attaching fails with `EXDEV` where the importer's device has no peer-to-peer path to the BAR,
//! and with `EOPNOTSUPP` where a dynamic importer does not support peer-to-peer. The log has the
//! reasons and a remedy. There is no `pin`: the memory never moves.

pub mod argument;
pub mod export;
pub mod import;
pub mod node;
pub mod peer;
pub mod portal;
pub mod register;

mod bindings;
mod gate;

const __LOG_PREFIX: &[u8] = b"dma_buf\0";
