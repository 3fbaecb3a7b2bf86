// SPDX-License-Identifier: GPL-2.0

//! Statistics: counters that one context writes and any may read.
//!
//! C header: `include/net/netdev_queues.h`, `struct netdev_stat_ops`

use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};

use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};
use net_bindings as bindings;

use crate::device::{
    Driver,
    NetDevice, //
};

/// A counter with one writer at a time: with more, counts get lost, but nothing else.
///
/// An `Atomic` would cost the packet path two calls for each addition.
pub struct Counter(UnsafeCell<u64>);

const _: () = assert!(cfg!(target_pointer_width = "64"), "counters could tear");

// SAFETY: All access is volatile and of a machine word, which the kernel's memory model allows
// from several threads (`READ_ONCE()`, `WRITE_ONCE()`).
unsafe impl Sync for Counter {}

impl Counter {
    /// A counter at 0.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        let sum = self.get().wrapping_add(n);

        // SAFETY: Valid and aligned; see `Sync` above.
        unsafe { self.0.get().write_volatile(sum) };
    }

    /// The count.
    #[inline]
    pub fn get(&self) -> u64 {
        // SAFETY: Valid and aligned; see `Sync` above.
        unsafe { self.0.get().read_volatile() }
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

/// A counter with any number of writers.
pub struct SharedCounter(Atomic<u64>);

impl SharedCounter {
    /// A counter at 0.
    pub const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Default for SharedCounter {
    fn default() -> Self {
        Self::new()
    }
}

/// A device's statistics (`struct rtnl_link_stats64`), as far as drivers here keep them.
#[derive(Default)]
pub struct LinkStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received and dropped by the driver.
    pub rx_dropped: u64,
    /// Packets that the device had no buffer for.
    pub rx_missed_errors: u64,
    /// Packets with errors.
    pub rx_errors: u64,
    /// Packets with a bad frame check sequence.
    pub rx_crc_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped instead of sent.
    pub tx_dropped: u64,
}

/// One RX queue's statistics (`struct netdev_queue_stats_rx`).
#[derive(Default)]
pub struct RxQueueStats {
    /// Packets received.
    pub packets: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Times that no memory was to be had for a buffer.
    pub alloc_fail: u64,
    /// Packets whose checksum the device has verified.
    pub csum_unnecessary: u64,
    /// Packets whose checksum the device did not verify.
    pub csum_none: u64,
    /// Packets whose checksum the device found wrong.
    pub csum_bad: u64,
}

/// One TX queue's statistics (`struct netdev_queue_stats_tx`).
#[derive(Default)]
pub struct TxQueueStats {
    /// Packets sent; those of one segmented frame count one by one.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets whose checksum the device filled in.
    pub needs_csum: u64,
    /// Frames that the device segmented.
    pub hw_gso_packets: u64,
}

/// A driver with statistics for each queue. The counts belong to the device's life: nothing may
/// run backwards when a queue is restarted.
pub trait QueueStats: Driver {
    /// RX queue `index`.
    fn rx_stats(&self, index: u32) -> RxQueueStats;

    /// TX queue `index`.
    fn tx_stats(&self, index: u32) -> TxQueueStats;
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: QueueStats> Table<T> {
    pub(crate) const OPS: &'static bindings::netdev_stat_ops = &bindings::netdev_stat_ops {
        get_queue_stats_rx: Some(Self::rx),
        get_queue_stats_tx: Some(Self::tx),
        get_base_stats: Some(Self::base),
    };

    /// # Safety
    ///
    /// Only the core may call it, as `get_queue_stats_rx`.
    unsafe extern "C" fn rx(
        dev: *mut bindings::net_device,
        index: core::ffi::c_int,
        out: *mut bindings::netdev_queue_stats_rx,
    ) {
        // SAFETY: The core calls with a device of `T`.
        let stats = unsafe { NetDevice::<T>::from_raw(dev) }
            .driver()
            .rx_stats(index.unsigned_abs());

        // SAFETY: The core calls with a valid structure; other fields stay untouched, which
        // means "not kept".
        unsafe { put_rx(out, &stats) };
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_queue_stats_tx`.
    unsafe extern "C" fn tx(
        dev: *mut bindings::net_device,
        index: core::ffi::c_int,
        out: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: As above.
        let stats = unsafe { NetDevice::<T>::from_raw(dev) }
            .driver()
            .tx_stats(index.unsigned_abs());

        // SAFETY: As above.
        unsafe { put_tx(out, &stats) };
    }

    /// What the device counted beside the queues that are in use: queues keep their counts for the
    /// device's life, so these are the counts of the others.
    ///
    /// # Safety
    ///
    /// Only the core may call it, as `get_base_stats`.
    unsafe extern "C" fn base(
        dev: *mut bindings::net_device,
        rx: *mut bindings::netdev_queue_stats_rx,
        tx: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: The core calls with valid structures, and with a device whose lock it holds, so
        // that its queues do not change. CAST: Numbers of queues are small.
        unsafe {
            put_rx(rx, &RxQueueStats::default());
            put_tx(tx, &TxQueueStats::default());
            bindings::netdev_stat_queue_sum(
                dev,
                (*dev).real_num_rx_queues as c_int,
                (*dev).num_rx_queues as c_int,
                rx,
                (*dev).real_num_tx_queues as c_int,
                (*dev).num_tx_queues as c_int,
                tx,
            );
        }
    }
}

/// # Safety
///
/// `out` must be valid.
unsafe fn put_rx(out: *mut bindings::netdev_queue_stats_rx, stats: &RxQueueStats) {
    // SAFETY: As this function requires.
    unsafe {
        (*out).packets = stats.packets;
        (*out).bytes = stats.bytes;
        (*out).alloc_fail = stats.alloc_fail;
        (*out).csum_unnecessary = stats.csum_unnecessary;
        (*out).csum_none = stats.csum_none;
        (*out).csum_bad = stats.csum_bad;
    }
}

/// # Safety
///
/// `out` must be valid.
unsafe fn put_tx(out: *mut bindings::netdev_queue_stats_tx, stats: &TxQueueStats) {
    // SAFETY: As this function requires.
    unsafe {
        (*out).packets = stats.packets;
        (*out).bytes = stats.bytes;
        (*out).needs_csum = stats.needs_csum;
        (*out).hw_gso_packets = stats.hw_gso_packets;
    }
}
