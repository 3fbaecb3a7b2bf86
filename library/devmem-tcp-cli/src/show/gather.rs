// SPDX-License-Identifier: MIT OR Apache-2.0

//! Asks the kernel for what is shown.

use std::collections::BTreeMap;
use std::fs;

use devmem_tcp::ethtool::{self, Ethtool, FlowAction, FlowRules};
use devmem_tcp::interface::Interface;
use devmem_tcp::netdev::{self, Netdev, QueueKind, Threading};

use super::memory::Memory;
use super::split;
use super::state::{
    Counters, Driver, HeaderSplit, Kind, Napi, Pool, Queue, Rss, Rules, Shown, State,
};
use crate::asked::Asked;

/// Asks about interfaces; those that are gone by now are left out.
pub(super) fn shown(interfaces: &[Interface]) -> Shown {
    let pools = Asked::from(Netdev::new().all_page_pools());
    let states = interfaces
        .iter()
        .filter_map(|&interface| Some(state(interface, interface.name().ok()?, &pools)));
    Shown {
        interfaces: states.collect(),
        orphaned_page_pools: pools_of(&pools, None),
    }
}

fn state(interface: Interface, name: String, pools: &Asked<Vec<netdev::PagePool>>) -> State {
    let mut netdev = Netdev::new();
    let mut ethtool = Ethtool::new();
    let queues = Asked::from(netdev.queues(interface))
        .map(|queues| queues.iter().map(queue).collect::<Vec<_>>());
    let bound = |id: u32| {
        let mut queues = queues.known().into_iter().flatten();
        queues.any(|queue| (queue.kind, queue.id) == (Kind::Rx, id) && queue.memory.is_bound())
    };
    let rings = Asked::from(ethtool.rings(interface));
    State {
        interface: name,
        index: interface.index(),
        driver: Asked::from(ethtool::driver_info(interface)).map(|info| Driver {
            name: info.driver,
            bus: info.bus_info,
        }),
        link: interface.link().into(),
        header_split: rings.map(|rings| HeaderSplit {
            tcp_data_split: HeaderSplit::name(rings.tcp_data_split),
            hds_thresh: rings.hds_thresh,
            hds_thresh_max: rings.hds_thresh_max,
        }),
        napis: Asked::from(netdev.napis(interface)).map(|napis| napis.iter().map(napi).collect()),
        page_pools: pools_of(pools, Some(interface)),
        statistics: Asked::from(netdev.queue_stats(interface))
            .map(|stats| stats.into_iter().filter_map(counters).collect()),
        split_counters: Asked::from(ethtool::driver_stats(interface)).map(split::counters),
        rss: Asked::from(ethtool.rss(interface)).map(|rss| Rss {
            table_entries: rss.indirection.len(),
            entries_by_queue: count(rss.indirection),
        }),
        flow_rules: Asked::from(ethtool::flow_rules(interface)).map(|all| rules(&all, bound)),
        queues,
        rates: None,
    }
}

fn queue(queue: &netdev::Queue) -> Queue {
    Queue {
        kind: kind(queue.kind),
        id: queue.id,
        napi_id: queue.napi_id,
        memory: Memory::of_queue(queue),
        leased: queue.leased,
    }
}

fn kind(kind: QueueKind) -> Kind {
    match kind {
        QueueKind::Rx => Kind::Rx,
        QueueKind::Tx => Kind::Tx,
    }
}

fn napi(napi: &netdev::Napi) -> Napi {
    Napi {
        id: napi.id,
        irq: napi.irq,
        polls_in: napi.threading.map(|threading| match threading {
            Threading::Softirq => "softirq",
            Threading::Thread => "thread",
            Threading::BusyThread => "busy_thread",
        }),
        pid: napi.pid,
        defer_hard_irqs: napi.defer_hard_irqs,
        gro_flush_timeout_ns: napi.gro_flush_timeout,
        irq_suspend_timeout_ns: napi.irq_suspend_timeout,
    }
}

/// The pools of an interface, or those that have none.
fn pools_of(
    pools: &Asked<Vec<netdev::PagePool>>,
    interface: Option<Interface>,
) -> Asked<Vec<Pool>> {
    let now = uptime();
    pools.clone().map(|pools| {
        let pools = pools.iter().filter(|pool| pool.interface == interface);
        let pools = pools.map(|pool| Pool {
            id: pool.id,
            napi_id: pool.napi_id,
            memory: Memory::of(pool.dmabuf, pool.io_uring),
            outstanding: pool.inflight,
            outstanding_bytes: pool.inflight_mem,
            detached_for: pool.detach_time.map(|then| now.saturating_sub(then)),
        });
        pools.collect()
    })
}

/// Seconds since the machine started, by the clock that the kernel gives times of pools in.
fn uptime() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let whole = text.split('.').next().and_then(|text| text.parse().ok());
    whole.unwrap_or_default()
}

fn counters(stats: netdev::QueueStats) -> Option<Counters<u64>> {
    let (direction, id) = stats.queue?;
    Some(Counters {
        kind: kind(direction),
        id,
        counters: stats.counters,
    })
}

fn rules(all: &FlowRules, bound: impl Fn(u32) -> bool) -> Rules {
    let queues = all.rules.iter().filter_map(|(_, rule)| match rule.action {
        FlowAction::Queue(queue) => Some(queue),
        _ => None,
    });
    let contexts = all.rules.iter().filter_map(|(_, rule)| match rule.action {
        FlowAction::RssContext(context) => Some(context),
        _ => None,
    });
    let by_queue = count(queues);
    let to_bound = by_queue.iter().filter(|&(&queue, _)| bound(queue));
    Rules {
        places: all.places,
        rules: all.rules.len() + all.others.len(),
        rules_to_bound_queues: to_bound.map(|(_, rules)| rules).sum(),
        rules_by_queue: by_queue,
        rules_by_rss_context: count(contexts),
    }
}

/// How often each is there.
fn count(queues: impl IntoIterator<Item = u32>) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for queue in queues {
        *counts.entry(queue).or_default() += 1;
    }
    counts
}
