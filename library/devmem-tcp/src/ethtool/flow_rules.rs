// SPDX-License-Identifier: MIT OR Apache-2.0

//! Rules that say to which queue packets go (`ethtool -n`, `-N`). No netlink family has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ioctl::Device;
use crate::bytes::{u32_at, u64_at};
use crate::error::RequestError;
use crate::interface::Interface;

const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
const ETHTOOL_GRXCLSRULE: u32 = 0x2f;
const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
const ETHTOOL_SRXCLSRLDEL: u32 = 0x31;
const ETHTOOL_SRXCLSRLINS: u32 = 0x32;

/// Of `flow_type`: what is behind the addresses and ports counts, too.
const FLOW_EXT: u32 = 0x8000_0000;
const RX_CLS_LOC_SPECIAL: u32 = 0x8000_0000;
const RX_CLS_LOC_ANY: u32 = 0xffff_ffff;
const RX_CLS_LOC_FIRST: u32 = 0xffff_fffe;
const RX_CLS_LOC_LAST: u32 = 0xffff_fffd;
const RX_CLS_FLOW_DISC: u64 = u64::MAX;

/// `struct ethtool_rxnfc`, of which `struct ethtool_rx_flow_spec` is a part: offsets in bytes.
const DATA: usize = 8;
const FLOW_TYPE: usize = 16;
const VALUES: usize = 20;
const MASKS: usize = 92;
const RING_COOKIE: usize = 168;
const LOCATION: usize = 176;
const RULE_COUNT: usize = 184;
const RULE_PLACES: usize = 188;
/// From `VALUES` and `MASKS` on: the VLAN tag, and data for the driver.
const VLAN: usize = 62;
const USER_DATA: usize = 64;

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

impl FlowType {
    /// `TCP_V4_FLOW` and its like.
    const NUMBERS: [(Self, u32); 6] = [
        (Self::Tcp4, 1),
        (Self::Udp4, 2),
        (Self::Sctp4, 3),
        (Self::Tcp6, 5),
        (Self::Udp6, 6),
        (Self::Sctp6, 7),
    ];

    fn is_v6(self) -> bool {
        matches!(self, Self::Tcp6 | Self::Udp6 | Self::Sctp6)
    }
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
pub struct FlowRules {
    /// How many places there are.
    pub places: u32,
    /// Those that have rules of kinds that [`FlowRule`] has.
    pub rules: Vec<(u32, FlowRule)>,
    /// How many have other rules.
    pub others: u32,
}

/// `struct ethtool_rxnfc`.
struct Request([u8; RULE_PLACES]);

impl Request {
    fn new(command: u32) -> Self {
        let mut request = Self([0; RULE_PLACES]);
        request.put(0, &command.to_ne_bytes());
        request
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.0[offset..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Runs it, with room for `places` numbers behind it.
    fn call(&self, device: &Device, places: usize) -> Result<Vec<u8>, RequestError> {
        let words: Vec<u32> = (0..RULE_PLACES / 4)
            .filter_map(|word| u32_at(&self.0, word * 4))
            .collect();
        // The struct ends with 4 bytes to align it.
        device.call(&words, places.max(1) * 4)
    }

    /// Fills in a rule, at a place.
    fn rule(command: u32, place: u32, rule: &FlowRule) -> Self {
        let mut request = Self::new(command);
        request.put(LOCATION, &place.to_ne_bytes());
        let number = FlowType::NUMBERS.iter().find(|(it, _)| *it == rule.flow);
        let mut flow = number.map_or(0, |(_, number)| *number);
        if rule.vlan.is_some() || rule.user_data.is_some() {
            flow |= FLOW_EXT;
        }
        request.put(FLOW_TYPE, &flow.to_ne_bytes());
        let cookie = match rule.action {
            FlowAction::Queue(queue) => queue.into(),
            FlowAction::VirtualFunction { function, queue } => {
                u64::from(function) << 32 | u64::from(queue)
            }
            FlowAction::Drop => RX_CLS_FLOW_DISC,
        };
        request.put(RING_COOKIE, &cookie.to_ne_bytes());

        let mut field = |offset: usize, [value, mask]: [Vec<u8>; 2]| {
            request.put(VALUES + offset, &value);
            request.put(MASKS + offset, &mask);
        };
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let address = address_len(rule.flow);
        let ports = 2 * address;
        if let Some(Masked { value, mask }) = rule.source {
            field(0, [value, mask].map(octets));
        }
        if let Some(Masked { value, mask }) = rule.destination {
            field(address, [value, mask].map(octets));
        }
        if let Some(Masked { value, mask }) = rule.source_port {
            field(ports, [value, mask].map(|port| port.to_be_bytes().to_vec()));
        }
        if let Some(Masked { value, mask }) = rule.destination_port {
            field(
                ports + 2,
                [value, mask].map(|port| port.to_be_bytes().to_vec()),
            );
        }
        if let Some(Masked { value, mask }) = rule.tos {
            field(ports + 4, [value, mask].map(|tos| vec![tos]));
        }
        if let Some(Masked { value, mask }) = rule.vlan {
            field(VLAN, [value, mask].map(|tag| tag.to_be_bytes().to_vec()));
        }
        if let Some(Masked { value, mask }) = rule.user_data {
            field(
                USER_DATA,
                [value, mask].map(|data| data.to_be_bytes().to_vec()),
            );
        }
        request
    }
}

/// Bytes of an address.
fn address_len(flow: FlowType) -> usize {
    if flow.is_v6() { 16 } else { 4 }
}

/// The rule in a `struct ethtool_rxnfc`; none of a kind that [`FlowRule`] does not have.
fn parse(answer: &[u8]) -> Option<FlowRule> {
    let flow_type = u32_at(answer, FLOW_TYPE)?;
    let (flow, _) = *FlowType::NUMBERS
        .iter()
        .find(|(_, number)| *number == flow_type & 0xff)?;
    let extended = flow_type & FLOW_EXT != 0;
    let at = |offset: usize, len: usize| {
        let value = answer.get(VALUES + offset..)?.get(..len)?;
        let mask = answer.get(MASKS + offset..)?.get(..len)?;
        mask.iter().any(|byte| *byte != 0).then_some([value, mask])
    };
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let small = |[value, mask]: [&[u8]; 2]| Masked {
        value: number(value) as u16,
        mask: number(mask) as u16,
    };
    let address = |[value, mask]: [&[u8]; 2]| {
        let of = |bytes: &[u8]| {
            let v4 = <[u8; 4]>::try_from(bytes).map(|it| Ipv4Addr::from(it).into());
            let v6 = <[u8; 16]>::try_from(bytes).map(|it| Ipv6Addr::from(it).into());
            v4.or(v6).ok()
        };
        Some(Masked {
            value: of(value)?,
            mask: of(mask)?,
        })
    };
    let len = address_len(flow);
    let cookie = u64_at(answer, RING_COOKIE)?;
    let queue = cookie as u32;
    Some(FlowRule {
        flow,
        source: at(0, len).and_then(address),
        destination: at(len, len).and_then(address),
        source_port: at(2 * len, 2).map(small),
        destination_port: at(2 * len + 2, 2).map(small),
        tos: at(2 * len + 4, 1).map(|[value, mask]| Masked {
            value: value[0],
            mask: mask[0],
        }),
        vlan: at(VLAN, 2).map(small).filter(|_| extended),
        user_data: at(USER_DATA, 8)
            .map(|[value, mask]| Masked {
                value: number(value),
                mask: number(mask),
            })
            .filter(|_| extended),
        action: match u8::try_from(cookie >> 32) {
            _ if cookie == RX_CLS_FLOW_DISC => FlowAction::Drop,
            Ok(0) => FlowAction::Queue(queue),
            Ok(function) => FlowAction::VirtualFunction { function, queue },
            Err(_) => return None,
        },
    })
}

/// The rules of an interface; those of kinds that [`FlowRule`] does not have are only counted.
///
/// # Errors
///
/// [`RequestError::Unsupported`] if the driver has none.
pub fn flow_rules(interface: Interface) -> Result<FlowRules, RequestError> {
    let device = Device::new(interface, "flow rules")?;
    let count = Request::new(ETHTOOL_GRXCLSRLCNT).call(&device, 0)?;
    let places = u64_at(&count, DATA).unwrap_or(0) as u32 & !RX_CLS_LOC_SPECIAL;
    let count = u32_at(&count, RULE_COUNT).unwrap_or(0);

    let mut all = Request::new(ETHTOOL_GRXCLSRLALL);
    all.put(RULE_COUNT, &count.to_ne_bytes());
    let all = all.call(&device, count as usize)?;
    let mut rules = Vec::new();
    let mut others = 0;
    for index in 0..u32_at(&all, RULE_COUNT).unwrap_or(0) as usize {
        let Some(place) = u32_at(&all, RULE_PLACES + index * 4) else {
            break;
        };
        let mut request = Request::new(ETHTOOL_GRXCLSRULE);
        request.put(LOCATION, &place.to_ne_bytes());
        let answer = request.call(&device, 0)?;
        match parse(&answer) {
            Some(rule) => rules.push((place, rule)),
            None => others += 1,
        }
    }
    Ok(FlowRules {
        places,
        rules,
        others,
    })
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

    fn exactly<T>(value: T, mask: T) -> Option<Masked<T>> {
        Some(Masked { value, mask })
    }

    #[test]
    fn a_rule_is_laid_out_as_the_kernel_has_it() {
        let rule = FlowRule {
            flow: FlowType::Tcp4,
            source: exactly([192, 0, 2, 2].into(), [255; 4].into()),
            destination: None,
            source_port: None,
            destination_port: exactly(5201, 0xffff),
            tos: None,
            vlan: None,
            user_data: None,
            action: FlowAction::Queue(3),
        };
        let Request(bytes) = Request::rule(ETHTOOL_SRXCLSRLINS, 7, &rule);
        // include/uapi/linux/ethtool.h, with the alignment of x86-64.
        let mut expected = [0; RULE_PLACES];
        expected[0] = 0x32;
        expected[16] = 1;
        expected[20..24].copy_from_slice(&[192, 0, 2, 2]);
        expected[30..32].copy_from_slice(&[0x14, 0x51]);
        expected[92..96].copy_from_slice(&[255; 4]);
        expected[102..104].copy_from_slice(&[255; 2]);
        expected[168] = 3;
        expected[176] = 7;
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_rule_comes_back_as_it_was() {
        let v6 = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
        let rule = FlowRule {
            flow: FlowType::Sctp6,
            source: exactly(v6(1), [0xffff; 8].into()),
            destination: exactly(v6(0), [0xffff, 0xffff, 0, 0, 0, 0, 0, 0].into()),
            source_port: exactly(0x1200, 0xff00),
            destination_port: exactly(80, 0xffff),
            tos: exactly(4, 0xfc),
            vlan: exactly(100, 0xfff),
            user_data: exactly(0x0102_0304_0506_0708, u64::MAX),
            action: FlowAction::VirtualFunction {
                function: 2,
                queue: 1,
            },
        };
        let Request(bytes) = Request::rule(ETHTOOL_SRXCLSRLINS, 0, &rule);
        assert_eq!(parse(&bytes), Some(rule));
        let rule = FlowRule {
            action: FlowAction::Drop,
            vlan: None,
            user_data: None,
            ..rule
        };
        let Request(bytes) = Request::rule(ETHTOOL_SRXCLSRLINS, 0, &rule);
        assert_eq!(parse(&bytes), Some(rule));
    }
}
