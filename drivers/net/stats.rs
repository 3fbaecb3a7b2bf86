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

/// Defines one direction's statistics of a queue, which are those of a C structure.
macro_rules! queue_stats {
    (
        $(#[$doc:meta])*
        $name:ident of $raw:ident { $($(#[$field_doc:meta])* $field:ident,)* }
    ) => {
        $(#[$doc])*
        ///
        /// `None` is what the driver does not count; that must be the same for all queues.
        #[derive(Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Option<u64>,)*
        }

        impl $name {
            /// Those of a queue that did nothing.
            fn zeroed(self) -> Self {
                Self {
                    $($field: self.$field.map(|_| 0),)*
                }
            }

            /// Leaves untouched what is not kept.
            ///
            /// # Safety
            ///
            /// `out` must be valid.
            unsafe fn put(&self, out: *mut bindings::$raw) {
                $(
                    if let Some(value) = self.$field {
                        // SAFETY: As this function requires.
                        unsafe { (*out).$field = value };
                    }
                )*
            }
        }
    };
}

queue_stats! {
    /// One RX queue's statistics (`struct netdev_queue_stats_rx`).
    RxQueueStats of netdev_queue_stats_rx {
        /// Packets received.
        packets,
        /// Bytes received.
        bytes,
        /// Times that no memory was to be had for a buffer.
        alloc_fail,
        /// Packets that entered the device and did not leave it, for whatever reason.
        hw_drops,
        /// Packets among them that the device had no buffer or descriptor for.
        hw_drop_overruns,
        /// Packets among them that a rate limit dropped.
        hw_drop_ratelimits,
        /// Packets for which the device has computed the checksum of all bytes.
        csum_complete,
        /// Packets whose checksum the device has verified.
        csum_unnecessary,
        /// Packets whose checksum the device did not verify.
        csum_none,
        /// Packets whose checksum the device found wrong.
        csum_bad,
        /// Packets that the device has coalesced from others.
        hw_gro_packets,
        /// Bytes of those.
        hw_gro_bytes,
        /// Packets that they were coalesced from.
        hw_gro_wire_packets,
        /// Bytes of those that they were coalesced from.
        hw_gro_wire_bytes,
    }
}

queue_stats! {
    /// One TX queue's statistics (`struct netdev_queue_stats_tx`).
    TxQueueStats of netdev_queue_stats_tx {
        /// Packets sent; those of one segmented frame count one by one.
        packets,
        /// Bytes sent.
        bytes,
        /// Packets that entered the device and did not leave it, for whatever reason.
        hw_drops,
        /// Packets among them that had an error.
        hw_drop_errors,
        /// Packets among them that a rate limit dropped.
        hw_drop_ratelimits,
        /// Packets whose checksum the device did not fill in.
        csum_none,
        /// Packets whose checksum the device filled in.
        needs_csum,
        /// Frames that the device segmented.
        hw_gso_packets,
        /// Bytes of those.
        hw_gso_bytes,
        /// Packets that they were segmented into.
        hw_gso_wire_packets,
        /// Bytes of the packets that they were segmented into.
        hw_gso_wire_bytes,
        /// Times that the queue was stopped because the ring was full.
        stop,
        /// Times that it was woken again.
        wake,
    }
}

/// A driver with statistics for each queue. The counts belong to the device's life: nothing may
/// run backwards when a queue is restarted, or not used for a while.
pub trait QueueStats: Driver {
    /// RX queue `index` of those that the device was registered with.
    fn rx_stats(&self, index: u32) -> RxQueueStats;

    /// TX queue `index` of those.
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
        index: c_int,
        out: *mut bindings::netdev_queue_stats_rx,
    ) {
        // SAFETY: The core calls with a device of `T`.
        let stats = unsafe { NetDevice::<T>::from_raw(dev) }
            .driver()
            .rx_stats(index.unsigned_abs());

        // SAFETY: The core calls with a valid structure.
        unsafe { stats.put(out) };
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_queue_stats_tx`.
    unsafe extern "C" fn tx(
        dev: *mut bindings::net_device,
        index: c_int,
        out: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: As above.
        let stats = unsafe { NetDevice::<T>::from_raw(dev) }
            .driver()
            .tx_stats(index.unsigned_abs());

        // SAFETY: As above.
        unsafe { stats.put(out) };
    }

    /// What the device counted beside the queues that are in use: queues keep their counts for the
    /// device's life, so these are the counts of the others. It also says which of them the device
    /// keeps at all.
    ///
    /// # Safety
    ///
    /// Only the core may call it, as `get_base_stats`.
    unsafe extern "C" fn base(
        dev: *mut bindings::net_device,
        rx: *mut bindings::netdev_queue_stats_rx,
        tx: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: The core calls with a device of `T`.
        let driver = unsafe { NetDevice::<T>::from_raw(dev) }.driver();

        // SAFETY: The core calls with valid structures, and with a device whose lock it holds, so
        // that its queues do not change. CAST: Numbers of queues are small.
        unsafe {
            driver.rx_stats(0).zeroed().put(rx);
            driver.tx_stats(0).zeroed().put(tx);
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
