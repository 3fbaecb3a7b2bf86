// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues, page pools and NAPIs: the netdev family of generic netlink.

pub use devmem_tcp::netdev::{Napi, NapiChange, PagePool, Queue, QueueKind, QueueStats, Threading};
use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// Queues, from the netdev family. Empty while the interface is down.
    ListQueues {},
    /// Statistics by queue. EOPNOTSUPP when the driver has none.
    GetQueueStats {},
    /// Sums of those statistics over all queues, as the kernel and the driver keep them: also of
    /// queues that are no longer in use.
    GetInterfaceQueueStats {},
    /// Page pools of an interface, also destroyed ones that wait for pages.
    ListPagePools {},
    /// NAPIs of an interface.
    ListNapis {},
}

/// Page pools of a namespace whose interface is gone, and that wait for pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListStrayPools {
    /// Namespace that the interface was in.
    pub ns: Ns,
}

/// Changes a NAPI, napi-set of the netdev family.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetNapi {
    /// Which namespace.
    pub ns: Ns,
    /// Its number.
    pub id: u32,
    /// What to change.
    pub change: NapiChange,
}
