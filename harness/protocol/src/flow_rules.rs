// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules that say to which queue packets go (`ethtool -n`, `-N`).

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// The rules of an interface.
    ListFlowRules {},
    /// Makes a rule; the answer is where it is.
    InsertFlowRule {
        /// Where to put it.
        place: RulePlace,
        /// The rule.
        rule: FlowRule,
    },
    /// Deletes a rule.
    DeleteFlowRule {
        /// Where it is.
        place: u32,
    },
}

/// Answer to [`ListFlowRules`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRules {
    /// How many places there are.
    pub places: u32,
    /// Those that have rules.
    pub rules: Vec<(u32, FlowRule)>,
}

/// Where a rule is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RulePlace {
    /// There; a rule that is there is replaced.
    At(u32),
    /// Anywhere.
    Any,
    /// At the first place that is free.
    First,
    /// At the last place that is free.
    Last,
}

/// Which packets a rule is about.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlowType {
    Tcp4,
    Udp4,
    Sctp4,
    Tcp6,
    Udp6,
    Sctp6,
}

/// What becomes of a packet that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlowAction {
    /// It goes to an RX queue.
    Queue(u32),
    /// It goes to a queue of a virtual function, counted from 1.
    VirtualFunction {
        /// Which one.
        function: u8,
        /// Its queue.
        queue: u32,
    },
    /// It is dropped.
    Drop,
}

/// A rule. Each field is a value and which of its bits are compared; `None`: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRule {
    /// Which packets.
    pub flow: FlowType,
    /// Their source address; of the flow's family.
    pub source: Option<(IpAddr, IpAddr)>,
    /// Their destination address.
    pub destination: Option<(IpAddr, IpAddr)>,
    /// Their source port.
    pub source_port: Option<(u16, u16)>,
    /// Their destination port.
    pub destination_port: Option<(u16, u16)>,
    /// Type of service, or traffic class.
    pub tos: Option<(u8, u8)>,
    /// The VLAN tag.
    pub vlan: Option<(u16, u16)>,
    /// What the driver says that it means.
    pub user_data: Option<(u64, u64)>,
    /// What becomes of them.
    pub action: FlowAction,
}

impl FlowRule {
    /// All packets of a kind go to a queue.
    #[must_use]
    pub fn all(flow: FlowType, queue: u32) -> Self {
        Self {
            flow,
            source: None,
            destination: None,
            source_port: None,
            destination_port: None,
            tos: None,
            vlan: None,
            user_data: None,
            action: FlowAction::Queue(queue),
        }
    }
}
