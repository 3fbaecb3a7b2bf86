// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receive-side scaling: which queue a flow is received on.

use std::net::SocketAddr;

pub use devmem_tcp::ethtool::{Flow, HashFields, Indirection, Rss, RssChange};
use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// Key, indirection table, and what is hashed, `ethtool -x`.
    GetRss {},
    /// Changes those, `ethtool -X`, `-N <interface> rx-flow-hash`.
    SetRss {
        /// What to change.
        change: RssChange,
    },
    /// Makes an RSS context, `ethtool -X <interface> context new`; the answer is its number.
    CreateRssContext {
        /// Its table.
        indirection: Indirection,
    },
}

interface_requests! {
    /// Where a flow would be received: the Toeplitz hash over its addresses and ports with the
    /// interface's key, looked up in its indirection table.
    FlowQueue {
        /// Sender of the received packets.
        source: SocketAddr,
        /// Receiver of the packets; of the same family.
        destination: SocketAddr,
    },
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
