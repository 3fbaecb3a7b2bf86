// SPDX-License-Identifier: GPL-2.0

//! ethtool: rings, header split, RSS, statistics.

use i82576::{
    limits,
    ring,
    rss, //
};
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        Ethtool,
        ExtAck,
        HeaderSplit,
        RingRequest, //
    },
    stats::{
        self,
        RxQueueStats,
        TxQueueStats, //
    },
};

use crate::{
    netdev::{
        Adapter,
        Control,
        Settings, //
    },
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

/// A ring of about `len` descriptors.
fn ring_of(len: u32, extack: &ExtAck<'_>) -> Result<ring::Ring> {
    u16::try_from(len)
        .ok()
        .and_then(ring::Ring::new)
        .ok_or_else(|| {
            extack.set(c"rings have 64 to 4096 descriptors, in multiples of 8");
            EINVAL
        })
}

impl<'bound> Ethtool for Adapter<'bound> {
    const STATISTICS: &'static [&'static CStr] = &NAMES;
    const RSS_ENTRIES: u32 = rss::TABLE_SIZE as u32;

    fn rings(control: &Control<'bound>) -> net::ethtool::Rings {
        net::ethtool::Rings {
            rx: u32::from(control.settings.rx_len.len()),
            tx: u32::from(control.settings.tx_len.len()),
            rx_max: u32::from(limits::RING_MAX),
            tx_max: u32::from(limits::RING_MAX),
            header_split: if control.settings.split {
                HeaderSplit::Enabled
            } else {
                HeaderSplit::Disabled
            },
            // The device splits every packet that it can.
            hds_thresh: 0,
            hds_thresh_max: 0,
        }
    }

    fn set_rings(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        request: RingRequest,
        extack: &ExtAck<'_>,
    ) -> Result {
        let settings = Settings {
            rx_len: ring_of(request.rx, extack)?,
            tx_len: ring_of(request.tx, extack)?,
            // Off is what the driver prefers: one buffer for each packet instead of two.
            split: request.header_split == HeaderSplit::Enabled,
            ..control.settings
        };

        Self::reconfigure(dev, control, settings).inspect_err(|error| {
            if *error == ETIMEDOUT {
                extack.set(c"the device did not start again: take the interface down and up");
            }
        })
    }

    fn channels(control: &Control<'bound>) -> (u32, u32) {
        // CAST: There are at most 16 queue pairs.
        let pairs = control.pairs.len() as u32;

        (pairs, pairs)
    }

    fn rss(control: &Control<'bound>, key: Option<&mut [u8]>, table: Option<&mut [u32]>) {
        if let Some(key) = key {
            for (to, from) in key.iter_mut().zip(control.key.bytes()) {
                *to = *from;
            }
        }
        if let Some(table) = table {
            for (to, from) in table.iter_mut().zip(control.table.entries()) {
                *to = u32::from(*from);
            }
        }
    }

    fn set_rss(
        dev: Locked<'_, Self>,
        control: &mut Control<'bound>,
        key: Option<&[u8]>,
        table: Option<&[u32]>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let mut new = *control.table.entries();

        if let Some(table) = table {
            for (to, from) in new.iter_mut().zip(table) {
                *to = u8::try_from(*from)?;
            }
        }
        let table = rss::IndirectionTable::new(new).ok_or_else(|| {
            extack.set(c"no such queue");
            EINVAL
        })?;

        if let Some(key) = key {
            control.key = rss::Key::new(key.try_into().map_err(|_| EINVAL)?);
        }
        control.table = table;
        dev.device()
            .driver()
            .hw
            .set_rss(&control.key, &control.table);
        Ok(())
    }

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
