// SPDX-License-Identifier: GPL-2.0

//! Statistics: the driver's own, and those of each queue.

use kernel::prelude::*;
use net::{
    ethtool::Statistics,
    stats::{
        self,
        RxQueueStats,
        TxQueueStats, //
    },
};

use crate::{
    netdev::Adapter,
    stats::QueueStats, //
};

/// The driver's own statistics: sums over all queues.
type Statistic = (&'static CStr, fn(&QueueStats) -> u64);

const STATISTICS: [Statistic; 10] = [
    (c"rx_split", |s| s.rx_split.get()),
    (c"rx_unsplit_dropped", |s| s.rx_unsplit_dropped.get()),
    (c"rx_unverified_dropped", |s| s.rx_unverified_dropped.get()),
    (c"rx_alloc_dropped", |s| s.rx_alloc_dropped.get()),
    (c"rx_alloc_fail", |s| s.rx_alloc_fail.get()),
    (c"rx_starved", |s| s.rx_starved.get()),
    (c"tx_csum", |s| s.tx_csum.get()),
    (c"tx_tso", |s| s.tx_tso.get()),
    (c"tx_net_iovs", |s| s.tx_net_iovs.get()),
    (c"tx_doorbells", |s| s.tx_doorbells.get()),
];

const NAMES: [&CStr; STATISTICS.len()] = {
    let mut names = [c""; STATISTICS.len()];
    let mut i = 0;
    while i < STATISTICS.len() {
        names[i] = STATISTICS[i].0;
        i += 1;
    }
    names
};

impl Statistics for Adapter<'_> {
    const STATISTICS: &'static [&'static CStr] = &NAMES;

    fn statistic(&self, index: usize) -> u64 {
        match STATISTICS.get(index) {
            Some((_, value)) => self.stats.iter().map(|stats| value(stats)).sum(),
            None => 0,
        }
    }
}

impl stats::QueueStats for Adapter<'_> {
    fn rx_stats(&self, index: u32) -> RxQueueStats {
        self.stats
            .get(index as usize)
            .map_or_else(RxQueueStats::default, |stats| RxQueueStats {
                packets: stats.rx_packets.get(),
                bytes: stats.rx_bytes.get(),
                alloc_fail: stats.rx_alloc_fail.get(),
                csum_unnecessary: stats.rx_csum_verified.get(),
                csum_none: stats.rx_csum_none.get(),
                csum_bad: stats.rx_csum_bad.get(),
            })
    }

    fn tx_stats(&self, index: u32) -> TxQueueStats {
        self.stats
            .get(index as usize)
            .map_or_else(TxQueueStats::default, |stats| TxQueueStats {
                packets: stats.tx_packets.get(),
                bytes: stats.tx_bytes.get(),
                needs_csum: stats.tx_csum.get(),
                hw_gso_packets: stats.tx_tso.get(),
            })
    }
}
