// SPDX-License-Identifier: MIT OR Apache-2.0

//! What steering changes of an interface.

use std::time::Duration;

use super::table;
use crate::error::RequestError;
use crate::ethtool::{
    Ethtool, FlowRule, FlowRules, Indirection, RingChange, Rings, RssChange, RulePlace,
    TcpDataSplit, delete_flow_rule, flow_rules, insert_flow_rule,
};
use crate::interface::Interface;
use crate::netdev::{Netdev, QueueKind};

/// The feature that lets a device have flow rules, as in `ethtool -k`.
const NTUPLE: &str = "rx-ntuple-filter";
/// How long to wait before looking again at a queue.
const PAUSE: Duration = Duration::from_millis(10);

/// What steering changes, so that a test can stand in for the kernel.
pub(super) trait Nic {
    /// Whether and how headers are split, and the threshold.
    fn rings(&mut self) -> Result<Rings, RequestError>;
    fn set_split(
        &mut self,
        split: TcpDataSplit,
        hds_thresh: Option<u32>,
    ) -> Result<(), RequestError>;
    /// The indirection table.
    fn table(&mut self) -> Result<Vec<u32>, RequestError>;
    fn set_table(&mut self, table: Vec<u32>) -> Result<(), RequestError>;
    /// Makes an RSS context with this table; returns its number.
    fn create_context(&mut self, table: Vec<u32>) -> Result<u32, RequestError>;
    fn delete_context(&mut self, context: u32) -> Result<(), RequestError>;
    /// Whether flow rules can be turned on, and are not.
    fn rules_are_off(&mut self) -> Result<bool, RequestError>;
    fn turn_rules(&mut self, on: bool) -> Result<(), RequestError>;
    fn rules(&mut self) -> Result<FlowRules, RequestError>;
    /// Inserts a rule; returns its place.
    fn insert(&mut self, place: RulePlace, rule: &FlowRule) -> Result<u32, RequestError>;
    fn delete(&mut self, place: u32) -> Result<(), RequestError>;
    /// How many queues receive; 0 if the driver doesn't say.
    fn rx_queues(&mut self) -> u32;
    /// The queues that have a memory provider, which needs headers to be split.
    fn bound(&mut self) -> Vec<u32>;
    /// Waits a moment for them to change.
    fn pause(&mut self) {
        std::thread::sleep(PAUSE);
    }
}

/// An interface.
#[derive(Debug)]
pub(super) struct Kernel {
    interface: Interface,
    ethtool: Ethtool,
}

impl Kernel {
    pub(super) fn new(interface: Interface) -> Self {
        let ethtool = Ethtool::new();
        Self { interface, ethtool }
    }

    fn set(&mut self, table: Indirection) -> Result<(), RequestError> {
        let change = RssChange {
            indirection: Some(table),
            ..RssChange::default()
        };
        self.ethtool.set_rss(self.interface, &change)
    }
}

impl Nic for Kernel {
    fn rings(&mut self) -> Result<Rings, RequestError> {
        self.ethtool.rings(self.interface)
    }

    fn set_split(
        &mut self,
        split: TcpDataSplit,
        hds_thresh: Option<u32>,
    ) -> Result<(), RequestError> {
        let change = RingChange {
            tcp_data_split: Some(split),
            hds_thresh,
            ..RingChange::default()
        };
        self.ethtool.set_rings(self.interface, change)
    }

    fn table(&mut self) -> Result<Vec<u32>, RequestError> {
        Ok(self.ethtool.rss(self.interface)?.indirection)
    }

    fn set_table(&mut self, table: Vec<u32>) -> Result<(), RequestError> {
        // The kernel's own is not set as a user's would be: then there could be no fewer queues, and none that is
        // added would get flows (net/ethtool/common.c).
        if table::spreads_over(&table, self.rx_queues()) {
            self.set(Indirection::Default)?;
            if self.table()? == table {
                return Ok(());
            }
        }
        self.set(Indirection::Queues(table))
    }

    fn create_context(&mut self, table: Vec<u32>) -> Result<u32, RequestError> {
        let table = Indirection::Queues(table);
        self.ethtool.create_rss_context(self.interface, &table)
    }

    fn delete_context(&mut self, context: u32) -> Result<(), RequestError> {
        self.ethtool.delete_rss_context(self.interface, context)
    }

    fn rules_are_off(&mut self) -> Result<bool, RequestError> {
        let features = self.ethtool.features(self.interface)?;
        Ok(features.changeable.contains(NTUPLE) && !features.active.contains(NTUPLE))
    }

    fn turn_rules(&mut self, on: bool) -> Result<(), RequestError> {
        self.ethtool.set_features(self.interface, &[(NTUPLE, on)])
    }

    fn rules(&mut self) -> Result<FlowRules, RequestError> {
        flow_rules(self.interface)
    }

    fn insert(&mut self, place: RulePlace, rule: &FlowRule) -> Result<u32, RequestError> {
        insert_flow_rule(self.interface, place, rule)
    }

    fn delete(&mut self, place: u32) -> Result<(), RequestError> {
        delete_flow_rule(self.interface, place)
    }

    fn rx_queues(&mut self) -> u32 {
        let channels = self.ethtool.channels(self.interface);
        channels.map_or(0, |channels| channels.rx + channels.combined)
    }

    fn bound(&mut self) -> Vec<u32> {
        let queues = Netdev::new().queues(self.interface).unwrap_or_default();
        let bound = queues.iter().filter(|queue| {
            queue.kind == QueueKind::Rx && (queue.dmabuf.is_some() || queue.io_uring)
        });
        bound.map(|queue| queue.id).collect()
    }
}
