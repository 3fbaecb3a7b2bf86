// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions for network device drivers.
//!
//! What `rust/kernel/net` lacks: net devices, NAPI, sk_buffs, page pools and netmem, queue
//! management, ethtool, XDP. This crate knows no driver; a NIC driver implements
//! [`driver::Driver`] and, as its hardware allows, [`queue::QueueManagement`],
//! [`stats::QueueStats`], [`xdp::Xdp`], [`xdp::Xsk`] and the traits of [`ethtool`], and registers a
//! [`ptp::Clock`].
//!
//! # Who may touch what
//!
//! A network driver's state is guarded in three ways, and each is a type here:
//!
//! | state | guarded by | how a driver gets at it |
//! |---|---|---|
//! | control path | the netdev instance lock | `&mut Driver::Control`, beside a [`device::Locked`] |
//! | receive and TX completion | the NAPI, while it is enabled | `&mut self` in [`napi::Poll`] |
//! | transmit | the TX queue's lock | `&mut self` in [`tx::Transmit::transmit`] |
//!
//! What crosses these borders goes through [`spsc`] (transmit to completion) or through the
//! NAPI's type: a [`napi::Disabled`] gives its state to the control path, a [`napi::Enabled`]
//! does not.
//!
//! # What may be done where
//!
//! | what | where | proof |
//! |---|---|---|
//! | build skbs, hand them up, run XDP programs | a poll with a budget | [`napi::Receive`] |
//! | allocate from a page pool | such a poll, or the control path | [`page_pool::Allocator`] |
//! | account for frames that were sent | a poll, netpoll's too | [`napi::Completion`], [`tx::TxCompletion`] |
//! | put frames on a TX queue | under its lock | [`tx::TxQueue`] |
//! | start and stop queues and NAPIs | under the instance lock | [`device::Locked`] |
//! | drop skbs, pages, frames | anywhere | none |
//!
//! What refers to a device or is a pool ([`device::DeviceRef`], [`napi::Scheduler`], [`tx::TxCompletion`],
//! [`fragment::FragmentPool`], [`page_pool::PagePool`], [`xdp::RxQueue`]) may sleep when it is dropped, as it
//! may be the last that needs the device's memory or that of the pool: not in a poll, a timer or an interrupt.

pub mod descriptors;
pub mod device;
pub mod dma;
pub mod driver;
pub mod ethtool;
pub mod features;
pub mod fragment;
pub mod hwtstamp;
pub mod napi;
pub mod page_pool;
pub mod ptp;
pub mod queue;
pub mod registration;
pub mod rx_mode;
pub mod skb;
pub mod spsc;
pub mod stats;
pub mod tx;
pub mod xdp;

mod once;
mod ops;

/// Fills `bytes` with random ones, such as for an RSS key.
pub fn random_bytes(bytes: &mut [u8]) {
    // SAFETY: The slice is valid for writes.
    unsafe { net_bindings::get_random_bytes(bytes.as_mut_ptr().cast(), bytes.len()) };
}

const __LOG_PREFIX: &[u8] = b"net\0";
