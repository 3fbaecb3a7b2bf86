// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules that say to which queue packets go (`ethtool -n`, `-N`). No netlink family has them.

pub(crate) mod wire;

use std::collections::BTreeSet;
use std::net::IpAddr;

use self::wire::{
    DATA, ETHTOOL_GRXCLSRLALL, ETHTOOL_GRXCLSRLCNT, ETHTOOL_GRXCLSRULE, ETHTOOL_SRXCLSRLDEL,
    ETHTOOL_SRXCLSRLINS, LOCATION, RULE_COUNT, RULE_PLACES, RX_CLS_LOC_ANY, RX_CLS_LOC_FIRST,
    RX_CLS_LOC_LAST, RX_CLS_LOC_SPECIAL, Request, parse,
};
use super::ioctl::Device;
use crate::bytes::{u32_at, u64_at};
use crate::error::RequestError;
use crate::interface::Interface;

/// Which packets a rule is about.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum FlowType {
    #[default]
    Tcp4,
    Udp4,
    Sctp4,
    Tcp6,
    Udp6,
    Sctp6,
}

/// A value, and which of its bits are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Masked<T> {
    /// The value.
    pub value: T,
    /// The bits.
    pub mask: T,
}

impl<T> From<(T, T)> for Masked<T> {
    fn from((value, mask): (T, T)) -> Self {
        Self { value, mask }
    }
}

/// What becomes of a packet that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
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
    /// It goes to a queue of the table of an RSS context ([`super::Ethtool::create_rss_context`]).
    RssContext(u32),
    /// It is dropped.
    Drop,
}

/// A rule. What is `None` is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlowRule {
    /// Which packets.
    pub flow: FlowType,
    /// Their source address; of the flow's family.
    pub source: Option<Masked<IpAddr>>,
    /// Their destination address.
    pub destination: Option<Masked<IpAddr>>,
    /// Their source port.
    pub source_port: Option<Masked<u16>>,
    /// Their destination port.
    pub destination_port: Option<Masked<u16>>,
    /// Type of service, or traffic class.
    pub tos: Option<Masked<u8>>,
    /// The VLAN tag.
    pub vlan: Option<Masked<u16>>,
    /// What the driver says that it means.
    pub user_data: Option<Masked<u64>>,
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

/// Where a rule is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RulePlace {
    /// There; a rule that is there is replaced.
    At(u32),
    /// Anywhere.
    Any,
    /// At the first place that is free, where it comes before all others.
    First,
    /// At the last place that is free.
    Last,
}

/// The rules of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FlowRules {
    /// How many places there are.
    pub places: u32,
    /// The driver can choose one ([`RulePlace::Any`] and its like).
    pub chooses: bool,
    /// Those that have rules of kinds that [`FlowRule`] has.
    pub rules: Vec<(u32, FlowRule)>,
    /// Those that have other rules.
    pub others: Vec<u32>,
}

impl FlowRules {
    /// The last place that has no rule, as ethtool(8) takes it: for drivers that choose none by themselves.
    #[must_use]
    pub fn free_place(&self) -> Option<u32> {
        let rules = self.rules.iter().map(|(place, _)| place);
        let taken: BTreeSet<_> = rules.chain(&self.others).collect();
        (0..self.places).rev().find(|place| !taken.contains(place))
    }
}

/// The rules of an interface; of those of kinds that [`FlowRule`] does not have only the places.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none.
pub fn flow_rules(interface: Interface) -> Result<FlowRules, RequestError> {
    let device = Device::new(interface, "flow rules")?;
    let counted = Request::new(ETHTOOL_GRXCLSRLCNT).call(&device, 0)?;
    let count = u32_at(&counted, RULE_COUNT).unwrap_or(0);

    let mut all = Request::new(ETHTOOL_GRXCLSRLALL);
    all.put(RULE_COUNT, &count.to_ne_bytes());
    let all = all.call(&device, count as usize)?;
    let mut rules = Vec::new();
    let mut others = Vec::new();
    for index in 0..u32_at(&all, RULE_COUNT).unwrap_or(0) as usize {
        let Some(place) = u32_at(&all, RULE_PLACES + index * 4) else {
            break;
        };
        let mut request = Request::new(ETHTOOL_GRXCLSRULE);
        request.put(LOCATION, &place.to_ne_bytes());
        let answer = request.call(&device, 0)?;
        match parse(&answer) {
            Some(rule) => rules.push((place, rule)),
            None => others.push(place),
        }
    }
    let (places, chooses) = places(&counted, &all);
    Ok(FlowRules {
        places,
        chooses,
        rules,
        others,
    })
}

/// How many places there are and whether the driver chooses, from what is said of the number of rules (`ETHTOOL_GRXCLSRLCNT`) and of all of
/// them (`ETHTOOL_GRXCLSRLALL`). Drivers that choose places say it in the former alone, as bnxt; some others in
/// the latter alone, as mlx5.
fn places(counted: &[u8], all: &[u8]) -> (u32, bool) {
    let data = |answer| u64_at(answer, DATA).unwrap_or(0) as u32;
    let chooses = data(counted) & RX_CLS_LOC_SPECIAL != 0;
    let places = match data(all) {
        places if places != 0 && !chooses => places,
        _ => data(counted) & !RX_CLS_LOC_SPECIAL,
    };
    (places, chooses)
}

/// Makes a rule, and returns where it is.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none, or not such a one;
/// [`RequestError::Refused`] if there is no room, queue or place.
pub fn insert_flow_rule(
    interface: Interface,
    place: RulePlace,
    rule: &FlowRule,
) -> Result<u32, RequestError> {
    let device = Device::new(interface, "a flow rule")?;
    let place = match place {
        RulePlace::At(place) => place,
        RulePlace::Any => RX_CLS_LOC_ANY,
        RulePlace::First => RX_CLS_LOC_FIRST,
        RulePlace::Last => RX_CLS_LOC_LAST,
    };
    let answer = Request::rule(ETHTOOL_SRXCLSRLINS, place, rule).call(&device, 0)?;
    Ok(u32_at(&answer, LOCATION).unwrap_or(place))
}

/// Deletes the rule at a place.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none, [`RequestError::Refused`] if there is none
/// at that place.
pub fn delete_flow_rule(interface: Interface, place: u32) -> Result<(), RequestError> {
    let device = Device::new(interface, "deletion of a flow rule")?;
    let mut request = Request::new(ETHTOOL_SRXCLSRLDEL);
    request.put(LOCATION, &place.to_ne_bytes());
    request.call(&device, 0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_where_each_kind_of_driver_says_them() {
        let answer = |data: u32| {
            let mut answer = [0; RULE_PLACES];
            answer[DATA..][..8].copy_from_slice(&u64::from(data).to_ne_bytes());
            answer
        };
        for (driver, counted, all, expected) in [
            ("mlx5", 0, 1024, 1024),
            ("igb", 8, 8, 8),
            ("one that says it once", 8, 0, 8),
            // The number of rules is what it says in the second answer.
            ("bnxt", 512 | RX_CLS_LOC_SPECIAL, 2, 512),
            ("rigb", 8 | RX_CLS_LOC_SPECIAL, 8, 8),
        ] {
            let chooses = counted & RX_CLS_LOC_SPECIAL != 0;
            let said = places(&answer(counted), &answer(all));
            assert_eq!(said, (expected, chooses), "{driver}");
        }
    }

    #[test]
    fn the_free_place_is_the_last_that_no_rule_of_any_kind_has() {
        let free = |places, rules: &[u32], others: &[u32]| {
            let rule = FlowRule::all(FlowType::Tcp4, 0);
            let rules = rules.iter().map(|&place| (place, rule)).collect();
            let (others, chooses) = (others.to_vec(), false);
            FlowRules {
                places,
                chooses,
                rules,
                others,
            }
            .free_place()
        };
        assert_eq!(free(1024, &[], &[]), Some(1023));
        assert_eq!(free(4, &[0, 3], &[2]), Some(1));
        assert_eq!(free(3, &[0, 2], &[1]), None);
        assert_eq!(free(0, &[], &[]), None);
    }
}
