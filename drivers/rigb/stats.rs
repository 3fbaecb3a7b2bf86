// SPDX-License-Identifier: GPL-2.0

//! Per-queue statistics, which last as long as the device.

use net::stats::{
    Counter,
    RxQueueStats,
    SharedCounter,
    TxQueueStats, //
};

use crate::netdev::Adapter;

/// A queue pair's counters. NAPI writes those of RX, `tx_packets`, `tx_bytes` and `tx_wake`; the
/// transmit path writes the others of TX.
pub(crate) struct QueueStats {
    pub(crate) rx_packets: Counter,
    pub(crate) rx_bytes: Counter,
    /// Packets that the device split.
    pub(crate) rx_split: Counter,
    /// Packets that the device did not split, on a queue whose memory the CPU cannot read.
    pub(crate) rx_unsplit_dropped: Counter,
    /// Packets without a verified checksum, on such a queue.
    pub(crate) rx_unverified_dropped: Counter,
    /// Packets dropped for lack of memory.
    pub(crate) rx_alloc_dropped: Counter,
    /// Packets with errors.
    pub(crate) rx_errors: Counter,
    /// Times that a pool had no memory for a descriptor.
    pub(crate) rx_alloc_fail: Counter,
    /// Polls that ended with too few descriptors posted for the device to raise an interrupt.
    pub(crate) rx_starved: Counter,
    /// Packets that an XDP program dropped, transmitted or redirected.
    pub(crate) rx_xdp_drop: Counter,
    pub(crate) rx_xdp_tx: Counter,
    pub(crate) rx_xdp_redirect: Counter,
    /// Packets that were dropped because an XDP program, or its action, failed.
    pub(crate) rx_xdp_failed: Counter,
    /// Packets that were passed to the stack from a queue with an AF_XDP pool.
    pub(crate) rx_xsk_copied: Counter,
    pub(crate) rx_csum_verified: Counter,
    pub(crate) rx_csum_none: Counter,
    pub(crate) rx_csum_bad: Counter,
    /// Packets that the device had no descriptor for; reading statistics adds to it.
    pub(crate) rx_missed: SharedCounter,
    pub(crate) tx_packets: Counter,
    pub(crate) tx_bytes: Counter,
    /// Packets whose checksum the device filled in, and others.
    pub(crate) tx_csum: Counter,
    pub(crate) tx_csum_none: Counter,
    /// Frames that the device segmented, their bytes, and the packets that it made of them.
    pub(crate) tx_tso: Counter,
    pub(crate) tx_tso_bytes: Counter,
    pub(crate) tx_tso_wire_packets: Counter,
    pub(crate) tx_tso_wire_bytes: Counter,
    /// Times that the queue was stopped for lack of descriptors, and woken.
    pub(crate) tx_stop: Counter,
    pub(crate) tx_wake: Counter,
    /// Parts of frames in device memory: of one or more fragments, as [`net::dma::TxMappings`] has
    /// them.
    pub(crate) tx_net_iovs: Counter,
    pub(crate) tx_dropped: Counter,
    /// Doorbell writes.
    pub(crate) tx_doorbells: Counter,
    /// Frames that XDP programs put on the ring, this device's or others'.
    pub(crate) tx_xdp: Counter,
    /// Such frames that did not fit.
    pub(crate) tx_xdp_dropped: Counter,
    /// Frames of AF_XDP sockets that were put on the ring, and those that the device cannot send.
    pub(crate) tx_xsk: Counter,
    pub(crate) tx_xsk_dropped: Counter,
}

impl QueueStats {
    pub(crate) const fn new() -> Self {
        Self {
            rx_packets: Counter::new(),
            rx_bytes: Counter::new(),
            rx_split: Counter::new(),
            rx_unsplit_dropped: Counter::new(),
            rx_unverified_dropped: Counter::new(),
            rx_alloc_dropped: Counter::new(),
            rx_errors: Counter::new(),
            rx_alloc_fail: Counter::new(),
            rx_starved: Counter::new(),
            rx_xdp_drop: Counter::new(),
            rx_xdp_tx: Counter::new(),
            rx_xdp_redirect: Counter::new(),
            rx_xdp_failed: Counter::new(),
            rx_xsk_copied: Counter::new(),
            rx_csum_verified: Counter::new(),
            rx_csum_none: Counter::new(),
            rx_csum_bad: Counter::new(),
            rx_missed: SharedCounter::new(),
            tx_packets: Counter::new(),
            tx_bytes: Counter::new(),
            tx_csum: Counter::new(),
            tx_csum_none: Counter::new(),
            tx_tso: Counter::new(),
            tx_tso_bytes: Counter::new(),
            tx_tso_wire_packets: Counter::new(),
            tx_tso_wire_bytes: Counter::new(),
            tx_stop: Counter::new(),
            tx_wake: Counter::new(),
            tx_net_iovs: Counter::new(),
            tx_dropped: Counter::new(),
            tx_doorbells: Counter::new(),
            tx_xdp: Counter::new(),
            tx_xdp_dropped: Counter::new(),
            tx_xsk: Counter::new(),
            tx_xsk_dropped: Counter::new(),
        }
    }

    /// Packets received and dropped by the driver.
    pub(crate) fn rx_dropped(&self) -> u64 {
        self.rx_unsplit_dropped.get()
            + self.rx_unverified_dropped.get()
            + self.rx_alloc_dropped.get()
            + self.rx_xdp_failed.get()
    }
}

impl Adapter<'_> {
    /// Packets that the device had no descriptor for in RX queue `index`, as it counts them: reads a
    /// register, so not for `ndo_get_stats64`.
    pub(crate) fn rx_missed(&self, index: u32, stats: &QueueStats) -> u64 {
        stats.rx_missed.add(self.hw.take_rx_drops(index));
        stats.rx_missed.get()
    }
}

impl net::stats::QueueStats for Adapter<'_> {
    fn rx_stats(&self, index: u32) -> RxQueueStats {
        let Some(stats) = self.stats.get(index as usize) else {
            return RxQueueStats::default();
        };
        let missed = self.rx_missed(index, stats);

        RxQueueStats {
            packets: Some(stats.rx_packets.get()),
            bytes: Some(stats.rx_bytes.get()),
            alloc_fail: Some(stats.rx_alloc_fail.get()),
            // The device counts no other drops of a queue.
            hw_drops: Some(missed),
            hw_drop_overruns: Some(missed),
            csum_unnecessary: Some(stats.rx_csum_verified.get()),
            csum_none: Some(stats.rx_csum_none.get()),
            csum_bad: Some(stats.rx_csum_bad.get()),
            ..Default::default()
        }
    }

    fn tx_stats(&self, index: u32) -> TxQueueStats {
        let Some(stats) = self.stats.get(index as usize) else {
            return TxQueueStats::default();
        };

        TxQueueStats {
            packets: Some(stats.tx_packets.get()),
            bytes: Some(stats.tx_bytes.get()),
            csum_none: Some(stats.tx_csum_none.get()),
            needs_csum: Some(stats.tx_csum.get()),
            hw_gso_packets: Some(stats.tx_tso.get()),
            hw_gso_bytes: Some(stats.tx_tso_bytes.get()),
            hw_gso_wire_packets: Some(stats.tx_tso_wire_packets.get()),
            hw_gso_wire_bytes: Some(stats.tx_tso_wire_bytes.get()),
            stop: Some(stats.tx_stop.get()),
            wake: Some(stats.tx_wake.get()),
            ..Default::default()
        }
    }
}
