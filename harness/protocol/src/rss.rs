// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receive-side scaling: which queue a flow is received on.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// Key and indirection table, `ethtool -x`.
    GetRss {},
    /// Changes the indirection table or the key, `ethtool -X`. `None` leaves it as it is.
    SetRss {
        /// A queue for each entry; its length must be the device's.
        table: Option<Vec<u32>>,
        /// Hash key; its length must be the device's.
        key: Option<Vec<u8>>,
    },
    /// Changes what of a kind of flow is hashed, `ethtool -N <interface> rx-flow-hash`.
    SetHashFields {
        /// Which flows.
        flow: FlowKind,
        /// What of them.
        fields: HashFields,
    },
    /// Changes the transformation of what is hashed, `ethtool -X <interface> xfrm`.
    SetInputTransformation {
        /// `RXH_XFRM_*`, as a set: 1 is symmetric-xor, 2 is symmetric-or-xor.
        transformation: u32,
    },
}

/// Receive-side scaling, `ethtool -x`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rss {
    /// The indirection table: a queue for each value of the hash's low bits.
    pub table: Vec<u32>,
    /// The hash key, in bytes.
    pub key: Vec<u8>,
    /// What of each kind of flow is hashed, where the driver says so.
    pub hash_fields: BTreeMap<FlowKind, HashFields>,
}

/// A kind of flow, `ethtool -n <interface> rx-flow-hash`.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FlowKind {
    Tcp4,
    Tcp6,
    Udp4,
    Udp6,
}

impl FlowKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tcp4, Self::Tcp6, Self::Udp4, Self::Udp6];
}

/// Header fields that a hash covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Where a flow would be received: the Toeplitz hash over its addresses and ports with the
/// interface's key, looked up in its indirection table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FlowQueue {
    /// Which namespace.
    pub ns: Ns,
    /// Interface that receives.
    pub interface: String,
    /// Sender of the received packets.
    pub source: SocketAddr,
    /// Receiver of the packets; of the same family.
    pub destination: SocketAddr,
}

/// Answer to [`FlowQueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPlace {
    /// Toeplitz hash.
    pub hash: u32,
    /// Index into the indirection table.
    pub entry: u32,
    /// What the table says there.
    pub queue: u32,
}
