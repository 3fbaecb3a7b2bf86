// SPDX-License-Identifier: MIT OR Apache-2.0

//! The generic netlink family `netdev` (Documentation/netlink/specs/netdev.yaml): queues, NAPI
//! instances, page pools, queue statistics, and the binding of dma-bufs.

mod bind;
mod qstats;
mod refusal;

use std::collections::BTreeMap;

use netlink_bindings::netdev::{
    IterableNapi, IterablePagePool, IterableQueue, NapiThreaded, QueueType, Request,
};

pub use bind::{RxBinder, RxBinding, TxBinder, TxBinding};
pub use qstats::QueueStats;

#[cfg(feature = "zcrx")]
pub(crate) use bind::precondition;

pub use crate::operations::netdev as operations;

use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::{Netlink, Subject, uint};

/// Direction of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum QueueKind {
    /// Receives.
    Rx,
    /// Transmits.
    Tx,
}

impl QueueKind {
    fn from_wire(value: u32) -> Option<Self> {
        match QueueType::from_value(value.into())? {
            QueueType::Rx => Some(Self::Rx),
            QueueType::Tx => Some(Self::Tx),
        }
    }
}

/// A queue of a running interface (`queue-get`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Queue {
    /// Direction; each has its own ids.
    pub kind: QueueKind,
    /// Index within its direction, from 0.
    pub id: u32,
    /// The NAPI instance that serves the queue.
    pub napi_id: Option<u32>,
    /// Id of the dma-buf binding whose memory the queue receives into ([`RxBinding::id`]).
    pub dmabuf: Option<u32>,
    /// Whether an io_uring (zero-copy receive) provides the queue's memory.
    pub io_uring: bool,
    /// Whether an AF_XDP socket uses the queue.
    pub xsk: bool,
    /// Whether the queue is part of a lease between a physical and a virtual interface.
    pub leased: bool,
}

/// A NAPI instance of an interface (`napi-get`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Napi {
    /// Its id, as [`Queue::napi_id`] names it.
    pub id: u32,
    /// Its interrupt.
    pub irq: Option<u32>,
    /// Where it polls.
    pub threading: Option<Threading>,
    /// Process id of its thread; it may have one that it no longer uses.
    pub pid: Option<u32>,
    /// Empty polls before interrupts are enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// GRO flush timeout in nanoseconds.
    pub gro_flush_timeout: Option<u64>,
    /// How long interrupts stay off while an application polls, in nanoseconds.
    pub irq_suspend_timeout: Option<u64>,
}

/// Where a NAPI instance polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Threading {
    /// In the softirq that its interrupt raises.
    Softirq,
    /// In a thread that its interrupt wakes.
    Thread,
    /// In a thread that polls all the time.
    BusyThread,
}

impl Threading {
    fn from_wire(value: u64) -> Option<Self> {
        Some(match NapiThreaded::from_value(value)? {
            NapiThreaded::Disabled => Self::Softirq,
            NapiThreaded::Enabled => Self::Thread,
            NapiThreaded::BusyPoll => Self::BusyThread,
        })
    }

    fn to_wire(self) -> NapiThreaded {
        match self {
            Self::Softirq => NapiThreaded::Disabled,
            Self::Thread => NapiThreaded::Enabled,
            Self::BusyThread => NapiThreaded::BusyPoll,
        }
    }
}

/// What to change of a NAPI instance; `None` leaves it as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NapiChange {
    /// Where it polls.
    pub threading: Option<Threading>,
    /// Empty polls before interrupts are enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// GRO flush timeout in nanoseconds.
    pub gro_flush_timeout: Option<u32>,
}

/// A page pool (`page-pool-get`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PagePool {
    /// Its id, unique in the system.
    pub id: u64,
    /// The interface that it belongs to; none if that is gone while memory is still out.
    pub interface: Option<Interface>,
    /// The NAPI instance that uses it.
    pub napi_id: Option<u64>,
    /// Pages or net_iovs that are allocated and not yet returned.
    pub inflight: Option<u64>,
    /// The same in bytes.
    pub inflight_mem: Option<u64>,
    /// When the driver gave it up, in seconds of `CLOCK_BOOTTIME`; none while it is in use.
    pub detach_time: Option<u64>,
    /// Id of the dma-buf binding that it allocates from.
    pub dmabuf: Option<u32>,
    /// Whether it allocates from an io_uring's memory.
    pub io_uring: bool,
}

/// Counters of a page pool (`page-pool-stats-get`); they need a kernel with
/// `CONFIG_PAGE_POOL_STATS`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PagePoolStats {
    /// Id of the pool.
    pub id: u64,
    /// Counters by the name that the YNL specification gives them, as in `alloc-fast`.
    pub counters: BTreeMap<String, u64>,
}

impl PagePoolStats {
    /// The counter of this name, as in `recycle-ring`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }
}

/// A client of the family, in the network namespace of the thread that first uses it.
#[derive(Debug)]
pub struct Netdev {
    pub(crate) netlink: Netlink,
}

impl Default for Netdev {
    fn default() -> Self {
        Self::new()
    }
}

impl Netdev {
    /// A client; its socket opens with the first request.
    #[must_use]
    pub fn new() -> Self {
        Self {
            netlink: Netlink::default(),
        }
    }

    /// The queues of an interface. An interface that is down has none.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`], or what the kernel refuses.
    pub fn queues(&mut self, interface: Interface) -> Result<Vec<Queue>, RequestError> {
        let mut request = Request::new().op_queue_get_dump();
        request.encode().push_ifindex(interface.index());
        let subject = Subject {
            operation: "netdev queue-get",
            interface,
        };
        self.netlink
            .list(subject, &request, |attributes| queue(subject, &attributes))
    }

    /// The NAPI instances of an interface. An interface that is down has none.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`], or what the kernel refuses.
    pub fn napis(&mut self, interface: Interface) -> Result<Vec<Napi>, RequestError> {
        let mut request = Request::new().op_napi_get_dump();
        request.encode().push_ifindex(interface.index());
        let subject = Subject {
            operation: "netdev napi-get",
            interface,
        };
        self.netlink
            .list(subject, &request, |attributes| napi(subject, &attributes))
    }

    /// Changes a NAPI instance (`napi-set`).
    ///
    /// # Errors
    ///
    /// What the kernel refuses: ENOENT when there is none of that id, or its interface is down.
    pub fn set_napi(&mut self, id: u32, change: NapiChange) -> Result<(), RequestError> {
        let mut request = Request::new().op_napi_set_do();
        let mut attributes = request.encode().push_id(id);
        if let Some(count) = change.defer_hard_irqs {
            attributes = attributes.push_defer_hard_irqs(count);
        }
        if let Some(nanoseconds) = change.gro_flush_timeout {
            attributes = attributes.push_gro_flush_timeout(nanoseconds);
        }
        if let Some(threading) = change.threading {
            attributes = attributes.push_threaded(threading.to_wire() as u32);
        }
        drop(attributes);
        let subject = Subject {
            operation: "netdev napi-set",
            interface: Interface::NONE,
        };
        self.netlink.acknowledged(subject, &request)
    }

    /// The page pools of an interface.
    ///
    /// Pools whose interface is gone are not listed; [`Netdev::all_page_pools`] shows them.
    ///
    /// # Errors
    ///
    /// What the kernel refuses.
    pub fn page_pools(&mut self, interface: Interface) -> Result<Vec<PagePool>, RequestError> {
        let mut pools = self.all_page_pools()?;
        pools.retain(|pool| pool.interface == Some(interface));
        Ok(pools)
    }

    /// The page pools of the network namespace, those without an interface among them.
    ///
    /// # Errors
    ///
    /// What the kernel refuses.
    pub fn all_page_pools(&mut self) -> Result<Vec<PagePool>, RequestError> {
        let request = Request::new().op_page_pool_get_dump();
        let subject = Subject {
            operation: "netdev page-pool-get",
            interface: Interface::NONE,
        };
        self.netlink.list(subject, &request, |attributes| {
            page_pool(subject, &attributes)
        })
    }

    /// Counters of every page pool of the network namespace.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] or [`RequestError::KernelTooOld`] on a kernel without
    /// `CONFIG_PAGE_POOL_STATS`.
    pub fn page_pool_stats(&mut self) -> Result<Vec<PagePoolStats>, RequestError> {
        let request = Request::new().op_page_pool_stats_get_dump();
        let subject = Subject {
            operation: "netdev page-pool-stats-get",
            interface: Interface::NONE,
        };
        self.netlink.list(subject, &request, |attributes| {
            let info = attributes
                .get_info()
                .map_err(|error| subject.incomplete(error))?;
            let id = uint(info.get_buf(), 1).ok_or_else(|| subject.incomplete("no id"))?;
            Ok(PagePoolStats {
                id,
                counters: counters(attributes.get_buf(), &POOL_COUNTERS),
            })
        })
    }

    /// Statistics of the whole interface, counted since the device appeared; none if the driver
    /// cannot tell.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver has no queue statistics,
    /// [`RequestError::NoSuchInterface`].
    pub fn device_stats(
        &mut self,
        interface: Interface,
    ) -> Result<Option<QueueStats>, RequestError> {
        Ok(self.qstats(interface, false)?.pop())
    }

    /// Statistics of each queue, counted since it was last configured.
    ///
    /// # Errors
    ///
    /// As [`Netdev::device_stats`].
    pub fn queue_stats(&mut self, interface: Interface) -> Result<Vec<QueueStats>, RequestError> {
        self.qstats(interface, true)
    }

    fn qstats(
        &mut self,
        interface: Interface,
        per_queue: bool,
    ) -> Result<Vec<QueueStats>, RequestError> {
        let request = qstats::request(interface, per_queue);
        let subject = Subject {
            operation: "netdev qstats-get",
            interface,
        };
        self.netlink.list(subject, &request, |attributes| {
            Ok(qstats::decode(&attributes))
        })
    }
}

/// Attribute types of `page-pool-stats` in include/uapi/linux/netdev.h and their names in the
/// specification.
const POOL_COUNTERS: [(u16, &str); 11] = [
    (8, "alloc-fast"),
    (9, "alloc-slow"),
    (10, "alloc-slow-high-order"),
    (11, "alloc-empty"),
    (12, "alloc-refill"),
    (13, "alloc-waive"),
    (14, "recycle-cached"),
    (15, "recycle-cache-full"),
    (16, "recycle-ring"),
    (17, "recycle-ring-full"),
    (18, "recycle-released-refcnt"),
];

fn queue(subject: Subject, attributes: &IterableQueue<'_>) -> Result<Queue, RequestError> {
    let kind = attributes
        .get_type()
        .map_err(|error| subject.incomplete(error))?;
    Ok(Queue {
        kind: QueueKind::from_wire(kind)
            .ok_or_else(|| subject.incomplete("no a queue type that is known"))?,
        id: attributes
            .get_id()
            .map_err(|error| subject.incomplete(error))?,
        napi_id: attributes.get_napi_id().ok(),
        dmabuf: attributes.get_dmabuf().ok(),
        io_uring: attributes.get_io_uring().is_ok(),
        xsk: attributes.get_xsk().is_ok(),
        leased: attributes.get_lease().is_ok(),
    })
}

/// The attribute of a NAPI that says where it polls (`NETDEV_A_NAPI_THREADED`).
const THREADED: u16 = 8;

fn napi(subject: Subject, attributes: &IterableNapi<'_>) -> Result<Napi, RequestError> {
    Ok(Napi {
        id: attributes
            .get_id()
            .map_err(|error| subject.incomplete(error))?,
        irq: attributes.get_irq().ok(),
        threading: uint(attributes.get_buf(), THREADED).and_then(Threading::from_wire),
        pid: attributes.get_pid().ok(),
        defer_hard_irqs: attributes.get_defer_hard_irqs().ok(),
        gro_flush_timeout: uint(attributes.get_buf(), 6),
        irq_suspend_timeout: uint(attributes.get_buf(), 7),
    })
}

fn page_pool(
    subject: Subject,
    attributes: &IterablePagePool<'_>,
) -> Result<PagePool, RequestError> {
    let buf = attributes.get_buf();
    Ok(PagePool {
        id: uint(buf, 1).ok_or_else(|| subject.incomplete("no id"))?,
        interface: attributes.get_ifindex().ok().map(Interface::from_index),
        napi_id: uint(buf, 3),
        inflight: uint(buf, 4),
        inflight_mem: uint(buf, 5),
        detach_time: uint(buf, 6),
        dmabuf: attributes.get_dmabuf().ok(),
        io_uring: attributes.get_io_uring().is_ok(),
    })
}

/// The counters of `names` that are among the attributes.
fn counters(attributes: &[u8], names: &[(u16, &'static str)]) -> BTreeMap<String, u64> {
    names
        .iter()
        .filter_map(|&(kind, name)| Some((name.to_owned(), uint(attributes, kind)?)))
        .collect()
}
