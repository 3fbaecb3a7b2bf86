// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What users may ask for, and what the device cannot do of it.

use super::{
    Filter,
    Protocol, //
};
use crate::limits::MAX_RX_QUEUES;

/// A value whose bits in `mask` are compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Masked<T> {
    /// The value.
    pub value: T,
    /// Which of its bits are compared.
    pub mask: T,
}

/// Addresses of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Addresses {
    /// Of IPv4.
    V4 {
        /// The source.
        source: Masked<[u8; 4]>,
        /// The destination.
        destination: Masked<[u8; 4]>,
    },
    /// Of IPv6.
    V6 {
        /// One of them is compared.
        compared: bool,
    },
}

/// What becomes of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// It goes to this receive queue.
    Queue(u32),
    /// It goes to a queue of a virtual function.
    VirtualFunction,
    /// It goes to a queue of an RSS context.
    RssContext,
    /// It is dropped.
    Drop,
}

/// A rule, as users can express it: more than the device can do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The protocol.
    pub protocol: Protocol,
    /// The addresses.
    pub addresses: Addresses,
    /// The source port.
    pub source_port: Masked<u16>,
    /// The destination port.
    pub destination_port: Masked<u16>,
    /// The type of service is compared.
    pub tos: bool,
    /// The MAC address is compared.
    pub mac: bool,
    /// The VLAN tag is compared.
    pub vlan: bool,
    /// Data that mean something to other devices are given.
    pub user_data: bool,
    /// What becomes of a packet that matches.
    pub action: Action,
}

/// Why the device cannot have a rule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// An address of IPv6 is compared.
    Ipv6,
    /// Part of an address is compared.
    PartOfAddress,
    /// Part of a port is compared.
    PartOfPort,
    /// The type of service is compared.
    Tos,
    /// The MAC address is compared.
    Mac,
    /// The VLAN tag is compared.
    Vlan,
    /// There is data for another device.
    UserData,
    /// The action is to drop packets.
    Drop,
    /// Packets are to go to a virtual function.
    VirtualFunction,
    /// Packets are to go to an RSS context.
    RssContext,
    /// There is no such queue.
    NoSuchQueue,
    /// There is no such place.
    NoSuchPlace,
    /// There is no place left.
    Full,
}

impl Refusal {
    /// The same in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Ipv6 => "only addresses of IPv4 are compared",
            Self::PartOfAddress => "an address is compared as a whole or not at all",
            Self::PartOfPort => "a port is compared as a whole or not at all",
            Self::Tos => "the type of service is not compared",
            Self::Mac => "MAC addresses are not compared",
            Self::Vlan => "VLAN tags are not compared",
            Self::UserData => "there is no user-defined data",
            Self::Drop => "packets are not dropped",
            Self::VirtualFunction => "packets do not go to virtual functions",
            Self::RssContext => "packets do not go to RSS contexts",
            Self::NoSuchQueue => "no such queue",
            Self::NoSuchPlace => "no such place",
            Self::Full => "all filters are in use",
        }
    }
}

impl TryFrom<&Rule> for Filter {
    type Error = Refusal;

    /// The filter that implements the rule. One without addresses is for both versions of IP.
    fn try_from(rule: &Rule) -> Result<Self, Refusal> {
        let (source, destination) = match rule.addresses {
            Addresses::V4 {
                source,
                destination,
            } => (address(source)?, address(destination)?),
            Addresses::V6 { compared: false } => (None, None),
            Addresses::V6 { compared: true } => return Err(Refusal::Ipv6),
        };
        for (compared, refusal) in [
            (rule.tos, Refusal::Tos),
            (rule.mac, Refusal::Mac),
            (rule.vlan, Refusal::Vlan),
            (rule.user_data, Refusal::UserData),
        ] {
            if compared {
                return Err(refusal);
            }
        }
        let queue = match rule.action {
            Action::Queue(queue) if queue < u32::from(MAX_RX_QUEUES) => queue,
            Action::Queue(_) => return Err(Refusal::NoSuchQueue),
            Action::VirtualFunction => return Err(Refusal::VirtualFunction),
            Action::RssContext => return Err(Refusal::RssContext),
            Action::Drop => return Err(Refusal::Drop),
        };

        Ok(Self {
            protocol: rule.protocol,
            source,
            destination,
            source_port: port(rule.source_port)?,
            destination_port: port(rule.destination_port)?,
            // CAST: It is below 16.
            queue: queue as u8,
        })
    }
}

fn address(address: Masked<[u8; 4]>) -> Result<Option<[u8; 4]>, Refusal> {
    match address.mask {
        [0, 0, 0, 0] => Ok(None),
        [0xff, 0xff, 0xff, 0xff] => Ok(Some(address.value)),
        _ => Err(Refusal::PartOfAddress),
    }
}

fn port(port: Masked<u16>) -> Result<Option<u16>, Refusal> {
    match port.mask {
        0 => Ok(None),
        u16::MAX => Ok(Some(port.value)),
        _ => Err(Refusal::PartOfPort),
    }
}
