// SPDX-License-Identifier: MIT OR Apache-2.0

//! Flow rules as the ioctl has them: `struct ethtool_rxnfc` (include/uapi/linux/ethtool.h).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{FlowAction, FlowRule, FlowType, Masked};
use crate::bytes::{u32_at, u64_at};
use crate::error::RequestError;
use crate::ethtool::ioctl::Device;

pub(super) const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
pub(super) const ETHTOOL_GRXCLSRULE: u32 = 0x2f;
pub(super) const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
pub(super) const ETHTOOL_SRXCLSRLDEL: u32 = 0x31;
pub(super) const ETHTOOL_SRXCLSRLINS: u32 = 0x32;

/// Of `flow_type`: what is behind the addresses and ports counts, too.
const FLOW_EXT: u32 = 0x8000_0000;
/// Of `flow_type`: `rss_context` counts, and the queue in `ring_cookie` is added to what its table says.
const FLOW_RSS: u32 = 0x2000_0000;
pub(super) const RX_CLS_LOC_SPECIAL: u32 = 0x8000_0000;
pub(super) const RX_CLS_LOC_ANY: u32 = 0xffff_ffff;
pub(super) const RX_CLS_LOC_FIRST: u32 = 0xffff_fffe;
pub(super) const RX_CLS_LOC_LAST: u32 = 0xffff_fffd;
const RX_CLS_FLOW_DISC: u64 = u64::MAX;

/// `struct ethtool_rxnfc`, of which `struct ethtool_rx_flow_spec` is a part: offsets in bytes.
pub(super) const DATA: usize = 8;
const FLOW_TYPE: usize = 16;
const VALUES: usize = 20;
const MASKS: usize = 92;
const RING_COOKIE: usize = 168;
pub(super) const LOCATION: usize = 176;
pub(super) const RULE_COUNT: usize = 184;
/// In a union with `RULE_COUNT`.
const RSS_CONTEXT: usize = 184;
pub(super) const RULE_PLACES: usize = 188;
/// From `VALUES` and `MASKS` on: the VLAN tag, and data for the driver.
const VLAN: usize = 62;
const USER_DATA: usize = 64;

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

/// `struct ethtool_rxnfc`.
pub(super) struct Request([u8; RULE_PLACES]);

impl Request {
    pub(super) fn new(command: u32) -> Self {
        let mut request = Self([0; RULE_PLACES]);
        request.put(0, &command.to_ne_bytes());
        request
    }

    pub(super) fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.0[offset..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Runs it, with room for `places` numbers behind it.
    pub(super) fn call(&self, device: &Device, places: usize) -> Result<Vec<u8>, RequestError> {
        let words: Vec<u32> = (0..RULE_PLACES / 4)
            .filter_map(|word| u32_at(&self.0, word * 4))
            .collect();
        // The struct ends with 4 bytes to align it.
        device.call(&words, places.max(1) * 4)
    }

    /// Fills in a rule, at a place.
    pub(super) fn rule(command: u32, place: u32, rule: &FlowRule) -> Self {
        let mut request = Self::new(command);
        request.put(LOCATION, &place.to_ne_bytes());
        let number = FlowType::NUMBERS.iter().find(|(it, _)| *it == rule.flow);
        let mut flow = number.map_or(0, |(_, number)| *number);
        if rule.vlan.is_some() || rule.user_data.is_some() {
            flow |= FLOW_EXT;
        }
        if let FlowAction::RssContext(context) = rule.action {
            flow |= FLOW_RSS;
            request.put(RSS_CONTEXT, &context.to_ne_bytes());
        }
        request.put(FLOW_TYPE, &flow.to_ne_bytes());
        let cookie = match rule.action {
            FlowAction::Queue(queue) => queue.into(),
            FlowAction::RssContext(_) => 0,
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
pub(crate) fn parse(answer: &[u8]) -> Option<FlowRule> {
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
            _ if flow_type & FLOW_RSS != 0 => match cookie {
                0 => FlowAction::RssContext(u32_at(answer, RSS_CONTEXT)?),
                _ => return None,
            },
            Ok(0) => FlowAction::Queue(queue),
            Ok(function) => FlowAction::VirtualFunction { function, queue },
            Err(_) => return None,
        },
    })
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

        let rule = FlowRule {
            action: FlowAction::RssContext(9),
            ..rule
        };
        let Request(bytes) = Request::rule(ETHTOOL_SRXCLSRLINS, 7, &rule);
        expected[16..20].copy_from_slice(&0x2000_0001_u32.to_ne_bytes());
        expected[168] = 0;
        expected[184] = 9;
        assert_eq!(bytes, expected);
        assert_eq!(parse(&bytes), Some(rule));
        expected[168] = 1;
        assert_eq!(
            parse(&expected),
            None,
            "a queue that is added to the table's"
        );
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
