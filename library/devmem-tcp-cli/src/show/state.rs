// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is shown. The names of the fields are those of the JSON, which stay.

use std::collections::BTreeMap;

use devmem_tcp::ethtool::TcpDataSplit;
use devmem_tcp::interface::Link;
use serde::Serialize;

use super::memory::Memory;
use crate::asked::Asked;

/// All that is shown.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Shown {
    /// Each interface.
    pub(super) interfaces: Vec<State>,
    /// Page pools whose interface is gone, while memory of theirs is still in use.
    pub(super) orphaned_page_pools: Asked<Vec<Pool>>,
}

/// An interface.
#[derive(Debug, Clone, Serialize)]
pub(super) struct State {
    pub(super) interface: String,
    pub(super) index: u32,
    pub(super) driver: Asked<Driver>,
    /// `up`, `carrier`, `mtu` in bytes, and whether there is an XDP program, `xdp`.
    pub(super) link: Asked<Link>,
    pub(super) header_split: Asked<HeaderSplit>,
    pub(super) queues: Asked<Vec<Queue>>,
    pub(super) napis: Asked<Vec<Napi>>,
    pub(super) page_pools: Asked<Vec<Pool>>,
    pub(super) statistics: Asked<Vec<Counters<u64>>>,
    /// What the driver counts of packets that were split or not, by its own names.
    pub(super) split_counters: Asked<BTreeMap<String, u64>>,
    pub(super) rss: Asked<Rss>,
    pub(super) flow_rules: Asked<Rules>,
    /// By how much statistics grew in a second; with `--watch`, from the second time on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rates: Option<Vec<Counters<f64>>>,
}

/// Who drives it, and where it is.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Driver {
    pub(super) name: String,
    pub(super) bus: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct HeaderSplit {
    /// `on`, `off`, or null if the driver decides, or doesn't say.
    pub(super) tcp_data_split: Option<&'static str>,
    /// Bytes.
    pub(super) hds_thresh: Option<u32>,
    pub(super) hds_thresh_max: Option<u32>,
}

impl HeaderSplit {
    pub(super) fn name(split: Option<TcpDataSplit>) -> Option<&'static str> {
        match split? {
            TcpDataSplit::On => Some("on"),
            TcpDataSplit::Off => Some("off"),
            TcpDataSplit::Auto => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Rx,
    Tx,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Queue {
    pub(super) kind: Kind,
    pub(super) id: u32,
    pub(super) napi_id: Option<u32>,
    pub(super) memory: Memory,
    /// It is lent to, or borrowed from, another interface.
    pub(super) leased: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Napi {
    pub(super) id: u32,
    pub(super) irq: Option<u32>,
    /// `softirq`, `thread` or `busy_thread`.
    pub(super) polls_in: Option<&'static str>,
    pub(super) pid: Option<u32>,
    pub(super) defer_hard_irqs: Option<u32>,
    pub(super) gro_flush_timeout_ns: Option<u64>,
    pub(super) irq_suspend_timeout_ns: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Pool {
    pub(super) id: u64,
    pub(super) napi_id: Option<u64>,
    pub(super) memory: Memory,
    /// Pages or net_iovs that are not back yet.
    pub(super) outstanding: Option<u64>,
    pub(super) outstanding_bytes: Option<u64>,
    /// How long ago the driver gave it up, in seconds.
    pub(super) detached_for: Option<u64>,
}

/// Counters of a queue, by the names of the kernel's specification (`qstats` in netdev.yaml).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Counters<T> {
    pub(super) kind: Kind,
    pub(super) id: u32,
    pub(super) counters: BTreeMap<String, T>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Rss {
    pub(super) table_entries: usize,
    /// How many entries each queue has; the others get nothing of what is hashed.
    pub(super) entries_by_queue: BTreeMap<u32, usize>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Rules {
    /// How many there can be.
    pub(super) places: u32,
    pub(super) rules: usize,
    pub(super) rules_by_queue: BTreeMap<u32, usize>,
    /// Those that lead to RSS contexts, by the context's number.
    pub(super) rules_by_rss_context: BTreeMap<u32, usize>,
    /// Those that lead to a queue with memory that was bound to it.
    pub(super) rules_to_bound_queues: usize,
}
