// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules that steer packets to queues, in the namespace of the calling thread.

use anyhow::Result;
use devmem::ethtool::{self, Masked};
use protocol::flow_rules::{
    DeleteFlowRule, FlowAction, FlowRule, FlowRules, FlowType, InsertFlowRule, RulePlace,
};

use crate::rtnetlink::index_of;

/// The rules of an interface.
pub(crate) fn list(interface: &str) -> Result<FlowRules> {
    let ethtool::FlowRules { places, rules } = ethtool::flow_rules(index_of(interface)?)?;
    let rules = rules.iter().map(|(place, rule)| (*place, told(rule)));
    Ok(FlowRules {
        places,
        rules: rules.collect(),
    })
}

/// Makes a rule.
pub(crate) fn insert(request: &InsertFlowRule) -> Result<u32> {
    let place = match request.place {
        RulePlace::At(place) => ethtool::RulePlace::At(place),
        RulePlace::Any => ethtool::RulePlace::Any,
        RulePlace::First => ethtool::RulePlace::First,
        RulePlace::Last => ethtool::RulePlace::Last,
    };
    let index = index_of(&request.interface)?;
    Ok(ethtool::insert_flow_rule(
        index,
        place,
        &meant(&request.rule),
    )?)
}

/// Deletes a rule.
pub(crate) fn delete(request: &DeleteFlowRule) -> Result<()> {
    let index = index_of(&request.interface)?;
    Ok(ethtool::delete_flow_rule(index, request.place)?)
}

/// The flow types, in the protocol and in the kernel's interface.
const FLOWS: [(FlowType, ethtool::FlowType); 6] = [
    (FlowType::Tcp4, ethtool::FlowType::Tcp4),
    (FlowType::Udp4, ethtool::FlowType::Udp4),
    (FlowType::Sctp4, ethtool::FlowType::Sctp4),
    (FlowType::Tcp6, ethtool::FlowType::Tcp6),
    (FlowType::Udp6, ethtool::FlowType::Udp6),
    (FlowType::Sctp6, ethtool::FlowType::Sctp6),
];

/// Converts a rule from the host for the kernel.
fn meant(rule: &FlowRule) -> ethtool::FlowRule {
    fn field<T>(field: Option<(T, T)>) -> Option<Masked<T>> {
        field.map(|(value, mask)| Masked { value, mask })
    }
    let flow = FLOWS.iter().find(|(host, _)| *host == rule.flow);
    ethtool::FlowRule {
        flow: flow.map_or_else(Default::default, |(_, kernel)| *kernel),
        source: field(rule.source),
        destination: field(rule.destination),
        source_port: field(rule.source_port),
        destination_port: field(rule.destination_port),
        tos: field(rule.tos),
        vlan: field(rule.vlan),
        user_data: field(rule.user_data),
        action: match rule.action {
            FlowAction::Queue(queue) => ethtool::FlowAction::Queue(queue),
            FlowAction::VirtualFunction { function, queue } => {
                ethtool::FlowAction::VirtualFunction { function, queue }
            }
            FlowAction::Drop => ethtool::FlowAction::Drop,
        },
    }
}

/// Converts a rule from the kernel for the host.
fn told(rule: &ethtool::FlowRule) -> FlowRule {
    fn field<T>(field: Option<Masked<T>>) -> Option<(T, T)> {
        field.map(|Masked { value, mask }| (value, mask))
    }
    let flow = FLOWS.iter().find(|(_, kernel)| *kernel == rule.flow);
    FlowRule {
        flow: flow.map_or(FlowType::Tcp4, |(host, _)| *host),
        source: field(rule.source),
        destination: field(rule.destination),
        source_port: field(rule.source_port),
        destination_port: field(rule.destination_port),
        tos: field(rule.tos),
        vlan: field(rule.vlan),
        user_data: field(rule.user_data),
        action: match rule.action {
            ethtool::FlowAction::Queue(queue) => FlowAction::Queue(queue),
            ethtool::FlowAction::VirtualFunction { function, queue } => {
                FlowAction::VirtualFunction { function, queue }
            }
            ethtool::FlowAction::Drop => FlowAction::Drop,
        },
    }
}
