// SPDX-License-Identifier: GPL-2.0

//! Statistics: the driver's own.

use kernel::prelude::*;
use net::ethtool::Statistics;

use crate::{
    netdev::Adapter,
    stats::QueueStats, //
};

/// The driver's own statistics: sums over all queues.
type Statistic = (&'static CStr, fn(&QueueStats) -> u64);

const STATISTICS: [Statistic; 19] = [
    (c"rx_split", |s| s.rx_split.get()),
    (c"rx_unsplit_dropped", |s| s.rx_unsplit_dropped.get()),
    (c"rx_unverified_dropped", |s| s.rx_unverified_dropped.get()),
    (c"rx_alloc_dropped", |s| s.rx_alloc_dropped.get()),
    (c"rx_alloc_fail", |s| s.rx_alloc_fail.get()),
    (c"rx_starved", |s| s.rx_starved.get()),
    (c"rx_xdp_drop", |s| s.rx_xdp_drop.get()),
    (c"rx_xdp_tx", |s| s.rx_xdp_tx.get()),
    (c"rx_xdp_redirect", |s| s.rx_xdp_redirect.get()),
    (c"rx_xdp_failed", |s| s.rx_xdp_failed.get()),
    (c"rx_xsk_copied", |s| s.rx_xsk_copied.get()),
    (c"tx_csum", |s| s.tx_csum.get()),
    (c"tx_tso", |s| s.tx_tso.get()),
    (c"tx_net_iovs", |s| s.tx_net_iovs.get()),
    (c"tx_doorbells", |s| s.tx_doorbells.get()),
    (c"tx_xdp", |s| s.tx_xdp.get()),
    (c"tx_xdp_dropped", |s| s.tx_xdp_dropped.get()),
    (c"tx_xsk", |s| s.tx_xsk.get()),
    (c"tx_xsk_dropped", |s| s.tx_xsk_dropped.get()),
];

/// Rings that the device did not stop accessing, whose memory is never freed.
const LEAKED_RINGS: &CStr = c"leaked_rings";

/// Those of queues, and then that of the device.
const NAMES: [&CStr; STATISTICS.len() + 1] = {
    let mut names = [LEAKED_RINGS; STATISTICS.len() + 1];
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
            None => self.hw.leaked_rings(),
        }
    }
}
