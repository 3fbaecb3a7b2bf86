// SPDX-License-Identifier: MIT OR Apache-2.0

//! What steering changes of an interface.

use crate::error::RequestError;
use crate::ethtool::{
    Ethtool, FlowRule, Indirection, RingChange, Rings, RssChange, RulePlace, TcpDataSplit,
    delete_flow_rule, flow_rules, insert_flow_rule,
};
use crate::interface::Interface;
use crate::netdev::Netdev;

/// The feature that lets a device have flow rules, as in `ethtool -k`.
const NTUPLE: &str = "rx-ntuple-filter";

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
    /// Inserts a rule; returns its place.
    fn insert(&mut self, rule: &FlowRule) -> Result<u32, RequestError>;
    fn delete(&mut self, place: u32) -> Result<(), RequestError>;
    /// Whether any queue has a memory provider, which needs headers to be split.
    fn is_bound(&mut self) -> bool;
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
        let change = RssChange {
            indirection: Some(Indirection::Queues(table)),
            ..RssChange::default()
        };
        self.ethtool.set_rss(self.interface, &change)
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

    fn insert(&mut self, rule: &FlowRule) -> Result<u32, RequestError> {
        match insert_flow_rule(self.interface, RulePlace::Any, rule) {
            // Drivers without RX_CLS_LOC_SPECIAL want a place.
            Err(RequestError::Refused { .. }) => {
                let rules = flow_rules(self.interface)?;
                let taken = |place: &u32| rules.rules.iter().any(|(at, _)| at == place);
                let place = (0..rules.places).find(|place| !taken(place)).unwrap_or(0);
                insert_flow_rule(self.interface, RulePlace::At(place), rule)
            }
            inserted => inserted,
        }
    }

    fn delete(&mut self, place: u32) -> Result<(), RequestError> {
        delete_flow_rule(self.interface, place)
    }

    fn is_bound(&mut self) -> bool {
        let queues = Netdev::new().queues(self.interface).unwrap_or_default();
        queues
            .iter()
            .any(|queue| queue.dmabuf.is_some() || queue.io_uring)
    }
}
