// SPDX-License-Identifier: MIT OR Apache-2.0

//! Binding dma-bufs to queues (`bind-rx`) and to interfaces (`bind-tx`).

use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

use netlink_bindings::netdev::{QueueType, Request};
use netlink_bindings::utils::Pusher;

use super::{Netdev, QueueKind, refusal};
use crate::dmabuf;
use crate::error::{BindError, Error, Refusal, Result};
use crate::ethtool::Ethtool;
use crate::interface;
use crate::netlink::{HEADER, Netlink, Subject};

/// A dma-buf that RX queues receive into.
///
/// The binding belongs to a netlink socket that this value owns: when it is dropped (or the process
/// dies) the kernel returns the queues to host memory before the socket is gone. Fragments that
/// applications still hold keep the memory alive. The kernel releases the dma-buf once all fragments
/// are back in its page pool, which it checks once a second: an exporter gets its memory back only
/// then.
#[derive(Debug)]
pub struct RxBinding {
    id: u32,
    ifindex: u32,
    queues: Vec<u32>,
    _netlink: Netlink,
}

impl RxBinding {
    /// The id that the kernel gave it, as fragments and [`super::Queue::dmabuf`] name it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The interface.
    #[must_use]
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// The RX queues that it was bound to.
    #[must_use]
    pub fn queues(&self) -> &[u32] {
        &self.queues
    }
}

/// A dma-buf that an interface can send from. It lives as long as this value, as [`RxBinding`]
/// does; sends in flight keep the memory alive.
#[derive(Debug)]
pub struct TxBinding {
    id: u32,
    ifindex: u32,
    len: usize,
    netlink: Mutex<Option<Netlink>>,
}

impl TxBinding {
    /// Ends it, also for those who share it: their sends are [`Error::NotSendable`] from now on.
    pub fn close(&self) {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        drop(netlink.take());
    }

    /// The id that the kernel gave it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The interface.
    #[must_use]
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Length of the dma-buf, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
impl TxBinding {
    /// A binding that the kernel knows nothing of.
    pub(crate) fn fake(id: u32, len: usize) -> Self {
        Self {
            id,
            ifindex: 1,
            len,
            netlink: Mutex::default(),
        }
    }
}

/// Makes the RX queues `queues` of an interface receive payload into `dmabuf`, in fragments of at
/// most one base page.
///
/// It takes `CAP_NET_ADMIN`, header split on ([`crate::ethtool::TcpDataSplit::On`]), an
/// hds-thresh of 0, no XDP program and no other memory provider on those queues
/// (`__netif_mp_open_rxq` in net/core/netdev_rx_queue.c).
///
/// # Errors
///
/// The precondition that does not hold.
pub fn bind_rx(ifindex: u32, dmabuf: impl AsFd, queues: &[u32]) -> Result<RxBinding> {
    bind_rx_with_page_size(ifindex, dmabuf, queues, None)
}

/// As [`bind_rx`], with the size of a receive buffer in bytes: a power of two that the driver
/// offers. A fragment is then at most that long, and fewer of them carry the same bytes.
///
/// Every piece of the dma-buf that is contiguous for the device must be aligned to that size, and a
/// multiple of it. Pages that a udmabuf is made of are not, unless they are huge; memory of
/// [`crate::heap`] is, and so is most accelerators'.
///
/// # Errors
///
/// [`BindError::PageSizeUnsupported`] and [`BindError::DmaBufUnaligned`] if that is not so, and the
/// precondition that does not hold.
pub fn bind_rx_with_page_size(
    ifindex: u32,
    dmabuf: impl AsFd,
    queues: &[u32],
    rx_page_size: Option<u32>,
) -> Result<RxBinding> {
    let fd = dmabuf.as_fd();
    dmabuf::check(fd)?;
    if queues.is_empty() {
        return Err(Error::Bind(BindError::NoQueues {
            interface: interface::label(ifindex),
        }));
    }

    let mut request = Request::new().op_bind_rx_do();
    let mut attributes = request
        .encode()
        .push_ifindex(ifindex)
        .push_fd(fd.as_raw_fd() as u32);
    if let Some(bytes) = rx_page_size {
        attributes = attributes.push_rx_page_size(bytes);
    }
    // Where each queue's attribute ends, for the offset in the kernel's answer.
    let mut ends = Vec::with_capacity(queues.len());
    for &queue in queues {
        attributes = attributes
            .nested_queues()
            .push_type(QueueType::Rx as u32)
            .push_id(queue)
            .end_nested();
        ends.push(HEADER + attributes.as_vec().len());
    }
    drop(attributes);

    let mut netlink = Netlink::default();
    let subject = Subject {
        operation: "netdev bind-rx",
        ifindex,
    };
    netlink
        .one(subject, &request, |reply| {
            reply.get_id().map_err(|error| subject.incomplete(error))
        })
        .map(|id| RxBinding {
            id,
            ifindex,
            queues: queues.to_vec(),
            _netlink: netlink,
        })
        .map_err(|error| {
            let asked = refusal::BindRx {
                ifindex,
                queues,
                ends: &ends,
                rx_page_size,
            };
            refusal::bind_rx(error, &asked, || evidence(ifindex))
        })
}

/// Lets an interface send from `dmabuf`, whose length must be whole pages. It takes no privilege.
///
/// # Errors
///
/// [`BindError::NoDeviceMemoryTx`] and others that name the precondition.
pub fn bind_tx(ifindex: u32, dmabuf: impl AsFd) -> Result<TxBinding> {
    let fd = dmabuf.as_fd();
    dmabuf::check(fd)?;
    let len = dmabuf::len_of(fd)?;

    let mut request = Request::new().op_bind_tx_do();
    request
        .encode()
        .push_ifindex(ifindex)
        .push_fd(fd.as_raw_fd() as u32);

    let mut netlink = Netlink::default();
    let subject = Subject {
        operation: "netdev bind-tx",
        ifindex,
    };
    netlink
        .one(subject, &request, |reply| {
            reply.get_id().map_err(|error| subject.incomplete(error))
        })
        .map(|id| TxBinding {
            id,
            ifindex,
            len,
            netlink: Mutex::new(Some(netlink)),
        })
        .map_err(|error| refusal::bind_tx(error, ifindex))
}

/// The precondition of a binding to `queue` behind a refusal without words, as io_uring gives it:
/// from what the interface says about itself.
pub(crate) fn precondition(refusal: &Refusal, ifindex: u32, queue: u32) -> Option<Error> {
    let asked = refusal::BindRx {
        ifindex,
        queues: &[queue],
        ends: &[],
        rx_page_size: None,
    };
    refusal::by_evidence(refusal, &asked, || evidence(ifindex))
}

/// What the interface says about itself after a refusal.
fn evidence(ifindex: u32) -> refusal::Evidence {
    let queues = Netdev::new().queues(ifindex).ok();
    let rings = Ethtool::new().rings(ifindex).ok();
    refusal::Evidence {
        split: rings.as_ref().and_then(|rings| rings.tcp_data_split),
        hds_thresh: rings.and_then(|rings| rings.hds_thresh),
        rx_queues: queues
            .map(|queues| {
                queues
                    .into_iter()
                    .filter(|queue| queue.kind == QueueKind::Rx)
                    .collect()
            })
            .unwrap_or_default(),
    }
}
