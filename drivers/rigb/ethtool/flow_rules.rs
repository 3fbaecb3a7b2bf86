// SPDX-License-Identifier: GPL-2.0

//! Flow steering rules: the device's five-tuple filters.

use i82576::{
    five_tuple::{
        self,
        Filter,
        Place,
        Protocol,
        Refusal,
        Rule, //
    },
    limits, //
};
use kernel::prelude::*;
use net::{
    device::Locked,
    ethtool::{
        FlowAction,
        FlowAddresses,
        FlowPlace,
        FlowRule,
        FlowRules,
        Masked,
        Transport, //
    },
};

use crate::netdev::{
    Adapter,
    Control, //
};

impl<'bound> FlowRules for Adapter<'bound> {
    const FLOW_PLACES: u32 = limits::FIVE_TUPLE_FILTERS as u32;

    fn flow_rule(control: &Control, place: u32) -> Option<FlowRule> {
        let table = control.five_tuples.as_ref()?;

        table
            .get(place)
            .map(|filter| users_rule(filter, table.is_ipv6(place)))
    }

    fn insert_flow_rule(
        dev: Locked<'_, Self>,
        control: &mut Control,
        place: FlowPlace,
        rule: &FlowRule,
    ) -> Result<u32> {
        let adapter = dev.device().driver();
        let table = control.five_tuples.as_mut().ok_or(EOPNOTSUPP)?;
        let place = match place {
            FlowPlace::At(place) => Place::At(place),
            FlowPlace::First => Place::First,
            FlowPlace::Last => Place::Last,
        };

        let place = Filter::try_from(&device_rule(rule))
            .and_then(|filter| table.insert(place, filter))
            .map_err(|refusal| {
                // The core has no extack for this operation.
                dev_dbg!(adapter.parent, "rule refused: {}\n", refusal.reason());
                errno(refusal)
            })?;
        table.set_ipv6(place, matches!(rule.addresses, FlowAddresses::V6 { .. }));
        adapter.hw.set_five_tuple(table, place);
        Ok(place.into())
    }

    fn delete_flow_rule(dev: Locked<'_, Self>, control: &mut Control, place: u32) -> Result {
        let table = control.five_tuples.as_mut().ok_or(EOPNOTSUPP)?;

        table.remove(place).ok_or(ENOENT)?;
        dev.device()
            .driver()
            .hw
            .set_five_tuple(table, u16::try_from(place)?);
        Ok(())
    }
}

fn errno(refusal: Refusal) -> Error {
    match refusal {
        Refusal::NoSuchQueue | Refusal::NoSuchPlace => EINVAL,
        Refusal::Full => ENOSPC,
        _ => EOPNOTSUPP,
    }
}

/// Converts a user's rule for `i82576`.
fn device_rule(rule: &FlowRule) -> Rule {
    Rule {
        protocol: match rule.protocol {
            Transport::Tcp => Protocol::Tcp,
            Transport::Udp => Protocol::Udp,
            Transport::Sctp => Protocol::Sctp,
        },
        addresses: match rule.addresses {
            FlowAddresses::V4 {
                source,
                destination,
            } => five_tuple::Addresses::V4 {
                source: device_field(source),
                destination: device_field(destination),
            },
            FlowAddresses::V6 {
                source,
                destination,
            } => five_tuple::Addresses::V6 {
                compared: source.is_compared() || destination.is_compared(),
            },
        },
        source_port: device_field(rule.source_port),
        destination_port: device_field(rule.destination_port),
        tos: rule.tos.is_compared(),
        mac: rule.mac.is_compared(),
        vlan: rule.vlan_type.is_compared() || rule.vlan_tag.is_compared(),
        user_data: rule.user_data.is_compared(),
        action: match rule.action {
            FlowAction::Queue(queue) => five_tuple::Action::Queue(queue),
            FlowAction::VirtualFunction { .. } => five_tuple::Action::VirtualFunction,
            FlowAction::RssContext(_) => five_tuple::Action::RssContext,
            FlowAction::Drop => five_tuple::Action::Drop,
        },
    }
}

fn device_field<T>(field: Masked<T>) -> five_tuple::Masked<T> {
    five_tuple::Masked {
        value: field.value,
        mask: field.mask,
    }
}

/// A filter, as users see it: the rule was for IPv6, or it is for IPv4.
fn users_rule(filter: &Filter, ipv6: bool) -> FlowRule {
    FlowRule {
        protocol: match filter.protocol {
            Protocol::Tcp => Transport::Tcp,
            Protocol::Udp => Transport::Udp,
            Protocol::Sctp => Transport::Sctp,
        },
        addresses: if ipv6 {
            FlowAddresses::V6 {
                source: Masked::default(),
                destination: Masked::default(),
            }
        } else {
            FlowAddresses::V4 {
                source: users_field(filter.source, [u8::MAX; 4]),
                destination: users_field(filter.destination, [u8::MAX; 4]),
            }
        },
        source_port: users_field(filter.source_port, u16::MAX),
        destination_port: users_field(filter.destination_port, u16::MAX),
        tos: Masked::default(),
        mac: Masked::default(),
        vlan_type: Masked::default(),
        vlan_tag: Masked::default(),
        user_data: Masked::default(),
        action: FlowAction::Queue(filter.queue.into()),
    }
}

/// A mask of all bits, or of none.
fn users_field<T: Default>(value: Option<T>, all: T) -> Masked<T> {
    value.map_or_else(Masked::default, |value| Masked { value, mask: all })
}
