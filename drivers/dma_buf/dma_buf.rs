// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions for drivers that export a device's memory as dma-bufs.
//!
//! A dma-buf is memory behind a file descriptor, which other drivers (importers) map for DMA by
//! their devices. Here the memory is a BAR: DMA to it is peer-to-peer and touches neither the CPU
//! nor host RAM. This crate knows no driver. A driver
//!
//! 1. makes its BAR a [`PeerMemory`](peer::PeerMemory) in probe;
//! 2. [registers a node](node::register), through which programs ask for memory;
//! 3. cuts a [`PeerRange`](peer::PeerRange) out of the BAR for each request (which ranges are free,
//!    the driver knows) and [exports](export::export) it, with what gives the range back when it is
//!    dropped.
//!
//! # Who keeps what alive
//!
//! ```text
//! file descriptors, mmap()s, importers
//!   └─ dma-buf ── module reference: no rmmod while one exists
//!        └─ the driver's data, dropped first: gives the range back
//!        └─ PeerRange ── holds off unbinding
//!             └─ PeerMemory ── the BAR; closed and waited for at unbind
//! ```
//!
//! # Unbinding
//!
//! What peer-to-peer DMA needs of a device ends with its binding to the driver, and importers that
//! attach statically, as device memory TCP and io_uring do, cannot be told to let go. So at unbind
//! nothing new is exported (`ENODEV`), and then unbinding waits until the last dma-buf is gone:
//! a write to `unbind` or `remove` in sysfs blocks so long, which the log says. `rmmod` fails at
//! once. All of that is bound to the device's resources (devres), which nothing can leak.
//!
//! # What a driver promises
//!
//! Only that the BAR is memory ([`PeerMemory::new`](peer::PeerMemory::new) is `unsafe`): what is
//! exported is written by the CPU, by programs, and by other devices, and none of them may reach a
//! device's registers by that. A BAR that the device itself does not call prefetchable is refused.
//!
//! # Which importers are served
//!
//! Attaching fails with `EXDEV` where the importer's device has no peer-to-peer path to the BAR,
//! and with `EOPNOTSUPP` where a dynamic importer says that it cannot do peer-to-peer. The log has
//! the reasons and a way out. There is no `pin`: the memory never moves.

pub mod export;
pub mod node;
pub mod peer;

mod bindings;
mod gate;

const __LOG_PREFIX: &[u8] = b"dma_buf\0";
