// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the verdicts rest on: what the kernel, the driver and this process were found to be.

use devmem_tcp::ethtool::{Channels, Features, Rings, Rss};
use devmem_tcp::interface::Link;
use devmem_tcp::zcrx;

use crate::asked::Asked;

/// All that was found.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) interface: String,
    /// The driver's name.
    pub(super) driver: Asked<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub(super) release: String,
    /// Operations of the netlink family `netdev`.
    pub(super) netdev: Asked<Vec<&'static str>>,
    /// Operations of the netlink family `ethtool`.
    pub(super) ethtool: Asked<Vec<&'static str>>,
    /// The file with the kernel's configuration.
    pub(super) configuration: Option<String>,
    /// `CONFIG_NET_DEVMEM`, if that can be read.
    pub(super) net_devmem: Option<bool>,
    pub(super) link: Asked<Link>,
    pub(super) rings: Asked<Rings>,
    pub(super) channels: Asked<Channels>,
    pub(super) rx_queues: Asked<Vec<RxQueue>>,
    /// The RX queue that the user named for the attempt: its flows are the user's business.
    pub(super) named: Option<u32>,
    pub(super) rss: Asked<Rss>,
    pub(super) rules: Asked<Rules>,
    pub(super) features: Asked<Features>,
    /// What the kernel's zero-copy receive can do; none without it.
    pub(super) zcrx: Asked<Option<zcrx::Features>>,
    /// Whether `/dev/udmabuf` can be opened, and how large a udmabuf can be, in MiB.
    pub(super) udmabuf: Asked<Option<u64>>,
    /// Names of the dma-heaps.
    pub(super) heaps: Vec<String>,
    pub(super) caller: Caller,
    /// `net.core.optmem_max`, in bytes.
    pub(super) optmem_max: Option<u64>,
    pub(super) attempts: Attempts,
}

/// An RX queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct RxQueue {
    pub(super) id: u32,
    /// A memory provider, AF_XDP or a lease has it.
    pub(super) taken: bool,
}

/// Flow rules.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// How many there can be.
    pub(super) places: u32,
    /// The queues that they lead to, one a rule.
    pub(super) queues: Vec<u32>,
    /// How many there are of kinds that the library doesn't know, or that lead to an RSS context.
    pub(super) others: u32,
}

/// What this process may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    /// `CAP_NET_ADMIN`, in whatever user namespace.
    pub(super) net_admin: bool,
    /// `CAP_IPC_LOCK`.
    pub(super) ipc_lock: bool,
    /// It is in the initial user namespace.
    pub(super) initial_namespace: bool,
    /// `RLIMIT_MEMLOCK` in bytes; none if there is no limit.
    pub(super) memlock: Option<u64>,
}

/// What came of trying it.
#[derive(Debug, Clone)]
pub(super) struct Attempts {
    /// Binding a dma-buf to an RX queue.
    pub(super) bind_rx: Attempt,
    /// Sizes of receive buffers in bytes, beside a page, that such a binding was made with.
    pub(super) page_sizes: Asked<Vec<u32>>,
    /// Binding a dma-buf to send from.
    pub(super) bind_tx: Attempt,
    /// Registering an RX queue with an io_uring.
    pub(super) zcrx: Attempt,
    /// Registering with an io_uring without a device.
    pub(super) no_device: Attempt,
}

/// What came of trying something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It works: with what.
    Works(String),
    /// The driver or the kernel lacks it: how it said so.
    Lacks(String),
    /// The driver has it; a precondition that another finding is about doesn't hold.
    NotNow(String),
    /// It was not tried, or failed for a reason that says nothing: why.
    Unknown(String),
}

impl Caller {
    /// Whether it may register with an io_uring (`io_register_zcrx` in io_uring/zcrx.c).
    pub(super) fn may_register(&self) -> bool {
        self.net_admin && self.initial_namespace
    }
}

impl Facts {
    /// How many RX queues it has.
    pub(super) fn rx_queues(&self) -> Option<usize> {
        let running = self.rx_queues.known().map(Vec::len).filter(|&n| n > 0);
        let set = self.channels.known().map(|c| (c.rx + c.combined) as usize);
        running.or(set)
    }

    /// The last RX queue that nothing uses: no provider, no hashed flow, no rule. The first is never among
    /// them, as what is not hashed comes there. None if there is none, or it is not known.
    pub(super) fn free_queue(&self) -> Option<u32> {
        let hashed = self.rss.known().filter(|rss| !rss.indirection.is_empty())?;
        if self.rules.known().is_some_and(|rules| rules.others > 0) {
            return None;
        }
        let ruled = self.rules.known().map_or(&[][..], |rules| &rules.queues);
        let queues = self.rx_queues.known()?.iter().filter(|queue| {
            let id = &queue.id;
            *id > 0 && !queue.taken && !hashed.indirection.contains(id) && !ruled.contains(id)
        });
        queues.map(|queue| queue.id).max()
    }
}
