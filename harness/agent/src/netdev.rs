// SPDX-License-Identifier: MIT OR Apache-2.0

//! Queues, page pools and NAPIs through the netdev family, in the namespace of the calling thread.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use devmem::netdev::{self, Netdev};
use netlink_bindings::netdev::Request;
use netlink_socket2::NetlinkSocket;
use protocol::netdev::{Napi, PagePool, Queue, QueueKind, QueueStats, SetNapi, Threading};

use crate::rtnetlink::index_of;

/// The XDP features of an interface (`enum netdev_xdp_act`).
pub(crate) fn xdp_features(interface: &str) -> Result<u64> {
    let mut request = Request::new().op_dev_get_do();
    request.encode().push_ifindex(index_of(interface)?);
    let mut socket = NetlinkSocket::new();
    let mut replies = socket.request(&request)?;
    Ok(replies.recv_one()?.get_xdp_features()?)
}

/// Queues of an interface.
pub(crate) fn queues(interface: &str) -> Result<Vec<Queue>> {
    let queues = Netdev::new().queues(index_of(interface)?)?;
    let queue = |queue: netdev::Queue| Queue {
        id: queue.id,
        kind: kind(queue.kind),
        napi: queue.napi_id,
        dmabuf: queue.dmabuf,
        io_uring: queue.io_uring,
        xsk: queue.xsk,
    };
    Ok(queues.into_iter().map(queue).collect())
}

/// Statistics of each queue of an interface.
pub(crate) fn queue_stats(interface: &str) -> Result<Vec<QueueStats>> {
    let stats = Netdev::new().queue_stats(index_of(interface)?)?;
    let one = |stats: netdev::QueueStats| {
        let (of, id) = stats.queue?;
        let counters = stats.counters.into_iter();
        Some(QueueStats {
            id,
            kind: kind(of),
            stats: counters
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        })
    };
    Ok(stats.into_iter().filter_map(one).collect())
}

/// Sums over the queues of an interface.
pub(crate) fn interface_queue_stats(interface: &str) -> Result<BTreeMap<String, u64>> {
    let stats = Netdev::new()
        .device_stats(index_of(interface)?)?
        .context("the driver keeps no statistics of queues")?;
    let counters = stats.counters.into_iter();
    Ok(counters
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}

/// Page pools of an interface.
pub(crate) fn page_pools(interface: &str) -> Result<Vec<PagePool>> {
    let pools = Netdev::new().page_pools(index_of(interface)?)?;
    Ok(pools.into_iter().map(page_pool).collect())
}

/// Page pools whose interface is gone.
pub(crate) fn stray_pools() -> Result<Vec<PagePool>> {
    let pools = Netdev::new().all_page_pools()?.into_iter();
    let stray = pools.filter(|pool| pool.ifindex.is_none());
    Ok(stray.map(page_pool).collect())
}

fn page_pool(pool: netdev::PagePool) -> PagePool {
    PagePool {
        id: pool.id,
        napi: pool.napi_id.and_then(|napi| napi.try_into().ok()),
        inflight: pool.inflight,
        inflight_mem: pool.inflight_mem,
        detach_time: pool.detach_time,
        dmabuf: pool.dmabuf,
        io_uring: pool.io_uring,
    }
}

/// NAPIs of an interface.
pub(crate) fn napis(interface: &str) -> Result<Vec<Napi>> {
    let napis = Netdev::new().napis(index_of(interface)?)?;
    Ok(napis
        .into_iter()
        .map(|napi| Napi {
            id: napi.id,
            irq: napi.irq,
            threading: napi.threading.map(|threading| match threading {
                netdev::Threading::Softirq => Threading::Softirq,
                netdev::Threading::Thread => Threading::Thread,
                netdev::Threading::BusyThread => Threading::BusyThread,
            }),
            pid: napi.pid,
            defer_hard_irqs: napi.defer_hard_irqs,
            gro_flush_timeout: napi.gro_flush_timeout,
        })
        .collect())
}

/// Changes a NAPI.
pub(crate) fn set_napi(request: &SetNapi) -> Result<()> {
    let change = netdev::NapiChange {
        threading: request.threading.map(|threading| match threading {
            Threading::Softirq => netdev::Threading::Softirq,
            Threading::Thread => netdev::Threading::Thread,
            Threading::BusyThread => netdev::Threading::BusyThread,
        }),
        defer_hard_irqs: request.defer_hard_irqs,
        gro_flush_timeout: request.gro_flush_timeout,
    };
    Ok(Netdev::new().set_napi(request.id, change)?)
}

fn kind(kind: netdev::QueueKind) -> QueueKind {
    match kind {
        netdev::QueueKind::Rx => QueueKind::Rx,
        netdev::QueueKind::Tx => QueueKind::Tx,
    }
}
