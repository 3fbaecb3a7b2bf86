// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues, page pools and NAPIs: the netdev family of generic netlink.

use std::collections::BTreeMap;

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

/// Changes a NAPI, napi-set of the netdev family. `None` leaves a parameter as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetNapi {
    /// Which namespace.
    pub ns: Ns,
    /// Its number.
    pub id: u32,
    /// Where it polls.
    pub threading: Option<Threading>,
    /// Empty polls before interrupts are enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// GRO flush timeout in nanoseconds.
    pub gro_flush_timeout: Option<u32>,
}

/// One queue as the netdev family shows it (queue-get).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Number within its kind.
    pub id: u32,
    /// Receive or transmit.
    pub kind: QueueKind,
    /// The NAPI that serves it, while the interface is up.
    pub napi: Option<u32>,
    /// The dma-buf that is bound to it, by the number that bind-rx returned.
    pub dmabuf: Option<u32>,
    /// An io_uring provides its memory.
    pub io_uring: bool,
    /// It works on the memory of an AF_XDP socket.
    pub xsk: bool,
}

/// Direction of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueKind {
    /// Receive.
    Rx,
    /// Transmit.
    Tx,
}

/// Statistics of one queue (qstats-get) by their names in the YNL specification, for instance
/// `rx-packets`. Only those that the driver tracks are present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStats {
    /// Number within its kind.
    pub id: u32,
    /// Receive or transmit.
    pub kind: QueueKind,
    /// Values by name.
    pub stats: BTreeMap<String, u64>,
}

/// One page pool (page-pool-get).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagePool {
    /// Number, unique in the guest.
    pub id: u64,
    /// The NAPI that recycles directly into it.
    pub napi: Option<u32>,
    /// Pages or net_iovs that are out with the driver, the stack or the user.
    pub inflight: Option<u64>,
    /// The same in bytes.
    pub inflight_mem: Option<u64>,
    /// The pool was destroyed and waits for its pages; seconds since boot.
    pub detach_time: Option<u64>,
    /// The dma-buf that it hands out pieces of, by the number that bind-rx returned.
    pub dmabuf: Option<u32>,
    /// It hands out pieces of an io_uring's area.
    pub io_uring: bool,
}

/// One NAPI (napi-get).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Napi {
    /// Number, unique in the guest.
    pub id: u32,
    /// Its interrupt line.
    pub irq: Option<u32>,
    /// Where it polls.
    pub threading: Option<Threading>,
    /// Its thread.
    pub pid: Option<u32>,
    /// Empty polls before interrupts are enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// GRO flush timeout in nanoseconds.
    pub gro_flush_timeout: Option<u64>,
}

/// Where a NAPI polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Threading {
    /// In the softirq that its interrupt raises.
    Softirq,
    /// In a thread that its interrupt wakes.
    Thread,
    /// In a thread that polls all the time.
    BusyThread,
}
