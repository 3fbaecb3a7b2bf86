// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receive side scaling: which queue a flow reaches (`rss-get`, `rss-set`; `ethtool -x`, `-X`).

use std::collections::BTreeMap;

use netlink_bindings::ethtool::{IterableRss, Request};

use super::{Ethtool, command, name_interface, rss_ioctl};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// RSS of an interface's default context. What the driver does not report is absent or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rss {
    /// The hash function, one bit of `ETH_RSS_HASH_*` (1 is Toeplitz).
    pub hash_function: Option<u32>,
    /// For each value of the hash's low bits, the RX queue.
    pub indirection: Vec<u32>,
    /// The hash key.
    pub key: Vec<u8>,
    /// What of each kind of flow is hashed; kinds that the driver does not know are absent.
    pub hash_fields: BTreeMap<Flow, HashFields>,
}

/// A kind of flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Flow {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
}

impl Flow {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tcp4, Self::Tcp6, Self::Udp4, Self::Udp6];
}

/// Header fields that a hash covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HashFields {
    /// Source address.
    pub ip_src: bool,
    /// Destination address.
    pub ip_dst: bool,
    /// Source port.
    pub l4_src: bool,
    /// Destination port.
    pub l4_dst: bool,
}

/// `RXH_*` of include/uapi/linux/ethtool.h.
const IP_SRC: u32 = 1 << 4;
const IP_DST: u32 = 1 << 5;
const L4_SRC: u32 = 1 << 6;
const L4_DST: u32 = 1 << 7;

impl HashFields {
    /// None: such a flow is not hashed.
    pub const NONE: Self = Self {
        ip_src: false,
        ip_dst: false,
        l4_src: false,
        l4_dst: false,
    };
    /// Both addresses.
    pub const ADDRESSES: Self = Self {
        ip_src: true,
        ip_dst: true,
        ..Self::NONE
    };
    /// Both addresses and both ports.
    pub const PORTS: Self = Self {
        l4_src: true,
        l4_dst: true,
        ..Self::ADDRESSES
    };

    fn from_wire(bits: u32) -> Self {
        Self {
            ip_src: bits & IP_SRC != 0,
            ip_dst: bits & IP_DST != 0,
            l4_src: bits & L4_SRC != 0,
            l4_dst: bits & L4_DST != 0,
        }
    }

    fn to_wire(self) -> u32 {
        [
            (self.ip_src, IP_SRC),
            (self.ip_dst, IP_DST),
            (self.l4_src, L4_SRC),
            (self.l4_dst, L4_DST),
        ]
        .into_iter()
        .filter_map(|(wanted, bit)| wanted.then_some(bit))
        .sum()
    }
}

/// A new indirection table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Indirection {
    /// These queues; the kernel repeats them until the device's table is full, which must be a
    /// multiple of their number.
    Queues(Vec<u32>),
    /// All RX queues in turn, as after boot.
    Default,
}

/// What to change about RSS; what is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RssChange {
    /// The indirection table.
    pub indirection: Option<Indirection>,
    /// The hash key, of the length that [`Rss::key`] has.
    pub key: Option<Vec<u8>>,
    /// What of a kind of flow is hashed.
    pub hash_fields: Option<(Flow, HashFields)>,
    /// A transformation of what is hashed, `RXH_XFRM_*`.
    pub input_transformation: Option<u32>,
}

impl Ethtool {
    /// RSS of an interface.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver has none, [`RequestError::NoSuchInterface`].
    pub fn rss(&mut self, interface: Interface) -> Result<Rss, RequestError> {
        let mut request = Request::new().op_rss_get_do();
        request.header_mut().cmd = command::RSS_GET;
        name_interface(request.encode().nested_header(), interface);
        let subject = Subject {
            operation: "ethtool rss-get",
            interface,
        };
        self.netlink
            .one(subject, &request, |reply| rss(subject, &reply))
    }

    /// Changes RSS of an interface. What isn't the indirection table alone takes Linux 6.17 or newer.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`, [`RequestError::Refused`] for a
    /// queue that does not exist or a table or key of the wrong length,
    /// [`RequestError::KernelTooOld`].
    pub fn set_rss(
        &mut self,
        interface: Interface,
        change: &RssChange,
    ) -> Result<(), RequestError> {
        let mut request = Request::new().op_rss_set_do();
        request.header_mut().cmd = command::RSS_SET;
        let mut attributes = name_interface(request.encode().nested_header(), interface);
        if let Some(indirection) = &change.indirection {
            attributes = attributes.push_indir(&table(indirection));
        }
        if let Some(key) = &change.key {
            attributes = attributes.push_hkey(key);
        }
        if let Some(transformation) = change.input_transformation {
            attributes = attributes.push_input_xfrm(transformation);
        }
        if let Some((flow, fields)) = change.hash_fields {
            let nested = attributes.nested_flow_hash();
            let fields = fields.to_wire();
            attributes = match flow {
                Flow::Tcp4 => nested.push_tcp4(fields),
                Flow::Tcp6 => nested.push_tcp6(fields),
                Flow::Udp4 => nested.push_udp4(fields),
                Flow::Udp6 => nested.push_udp6(fields),
            }
            .end_nested();
        }
        drop(attributes);
        let subject = Subject {
            operation: "ethtool rss-set",
            interface,
        };
        match (self.netlink.acknowledged(subject, &request), change) {
            (
                Err(RequestError::KernelTooOld { .. }),
                RssChange {
                    indirection: Some(table),
                    key: None,
                    hash_fields: None,
                    input_transformation: None,
                },
            ) => rss_ioctl::set_table(interface, table),
            (done, _) => done,
        }
    }
}

/// The table as the kernel takes it: u32 in host order; an empty one resets.
pub(super) fn table(indirection: &Indirection) -> Vec<u8> {
    match indirection {
        Indirection::Queues(queues) => queues
            .iter()
            .flat_map(|queue| queue.to_ne_bytes())
            .collect(),
        Indirection::Default => Vec::new(),
    }
}

fn rss(subject: Subject, reply: &IterableRss<'_>) -> Result<Rss, RequestError> {
    let table = reply.get_indir().unwrap_or_default();
    let entries = table.chunks_exact(4);
    if !entries.remainder().is_empty() {
        return Err(subject.incomplete(format!("an indirection table of {} bytes", table.len())));
    }
    Ok(Rss {
        hash_function: reply.get_hfunc().ok(),
        indirection: entries
            .map(|entry| u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]))
            .collect(),
        key: reply.get_hkey().unwrap_or_default().to_vec(),
        hash_fields: reply.get_flow_hash().map_or_else(
            |_| BTreeMap::new(),
            |flows| {
                [
                    (Flow::Tcp4, flows.get_tcp4()),
                    (Flow::Tcp6, flows.get_tcp6()),
                    (Flow::Udp4, flows.get_udp4()),
                    (Flow::Udp6, flows.get_udp6()),
                ]
                .into_iter()
                .filter_map(|(flow, bits)| Some((flow, HashFields::from_wire(bits.ok()?))))
                .collect()
            },
        ),
    })
}

#[cfg(test)]
mod tests {
    use netlink_bindings::ethtool::{PushRss, Rss as RssAttributes};

    use super::*;

    const SUBJECT: Subject = Subject {
        operation: "ethtool rss-get",
        interface: Interface::from_index(1),
    };

    #[test]
    fn a_table_that_was_encoded_decodes_to_the_same_queues() {
        let queues = vec![0, 3, 1, 70_000];
        let mut attributes = Vec::new();
        PushRss::new(&mut attributes)
            .push_indir(&table(&Indirection::Queues(queues.clone())))
            .push_hkey(&[1, 2, 3]);
        let decoded = rss(SUBJECT, &RssAttributes::new(&attributes)).expect("whole entries");
        assert_eq!(
            decoded,
            Rss {
                hash_function: None,
                indirection: queues,
                key: vec![1, 2, 3],
                hash_fields: BTreeMap::new(),
            }
        );
    }

    #[test]
    fn hash_fields_that_were_encoded_decode_to_the_same() {
        for bits in 0..16 {
            let fields = HashFields {
                ip_src: bits & 1 != 0,
                ip_dst: bits & 2 != 0,
                l4_src: bits & 4 != 0,
                l4_dst: bits & 8 != 0,
            };
            let mut attributes = Vec::new();
            PushRss::new(&mut attributes)
                .nested_flow_hash()
                .push_udp4(fields.to_wire())
                .end_nested();
            let decoded = rss(SUBJECT, &RssAttributes::new(&attributes)).expect("no table");
            assert_eq!(decoded.hash_fields, [(Flow::Udp4, fields)].into());
        }
    }

    #[test]
    fn a_table_that_is_cut_is_an_error_and_not_a_shorter_table() {
        let mut attributes = Vec::new();
        PushRss::new(&mut attributes).push_indir(&[0; 7]);
        assert!(rss(SUBJECT, &RssAttributes::new(&attributes)).is_err());
    }
}
