// SPDX-License-Identifier: MIT OR Apache-2.0

//! Binding dma-bufs to queues (`bind-rx`) and to interfaces (`bind-tx`).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use netlink_bindings::netdev::{QueueType, Request};
use netlink_bindings::utils::Pusher;

use super::{Netdev, QueueKind, refusal};
use crate::dmabuf;
use crate::error::BindError;
use crate::ethtool::Ethtool;
use crate::interface::Interface;
use crate::namespace::Namespace;
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
    interface: Interface,
    queues: Vec<u32>,
    _netlink: Netlink,
}

impl RxBinding {
    /// A binding to an interface, whose queues are to be named.
    pub fn to(interface: Interface) -> RxBinder {
        RxBinder {
            interface,
            queues: Vec::new(),
            rx_page_size: None,
            namespace: None,
        }
    }

    /// The id that the kernel gave it, as fragments and [`super::Queue::dmabuf`] name it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> Interface {
        self.interface
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
    interface: Interface,
    len: usize,
    netlink: Mutex<Option<Netlink>>,
}

impl TxBinding {
    /// A binding to an interface.
    pub fn to(interface: Interface) -> TxBinder {
        TxBinder {
            interface,
            namespace: None,
        }
    }

    /// Ends it, also for those who share it: their sends are [`crate::SendError::NotSendable`] from now on.
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
    pub fn interface(&self) -> Interface {
        self.interface
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
            interface: Interface::from_index(1),
            len,
            netlink: Mutex::default(),
        }
    }
}

/// What to bind, and to what: [`RxBinding::to`].
#[derive(Debug, Clone)]
#[must_use = "nothing is bound before `RxBinder::bind`"]
pub struct RxBinder {
    interface: Interface,
    queues: Vec<u32>,
    rx_page_size: Option<u32>,
    namespace: Option<Namespace>,
}

impl RxBinder {
    /// Adds an RX queue.
    pub fn queue(mut self, queue: u32) -> Self {
        self.queues.push(queue);
        self
    }

    /// Adds RX queues.
    pub fn queues(mut self, queues: impl IntoIterator<Item = u32>) -> Self {
        self.queues.extend(queues);
        self
    }

    /// Size of a receive buffer in bytes: a power of two that the driver offers; a base page if it is not
    /// set. A fragment is at most that long, so that fewer of larger ones carry the same bytes.
    ///
    /// Every piece of the dma-buf that is contiguous for the device must be aligned to that size, and a
    /// multiple of it. Pages that a udmabuf is made of are not, unless they are huge; memory of
    /// [`crate::heap`] is, and so is most devices'.
    pub fn rx_page_size(mut self, bytes: u32) -> Self {
        self.rx_page_size = Some(bytes);
        self
    }

    /// The network namespace of the interface; that of the calling thread if it is not set.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Makes the queues receive payload into `dmabuf`.
    ///
    /// It takes `CAP_NET_ADMIN`, header split on ([`crate::ethtool::TcpDataSplit::On`]), an
    /// hds-thresh of 0, no XDP program and no other memory provider on those queues
    /// (`__netif_mp_open_rxq` in net/core/netdev_rx_queue.c).
    ///
    /// # Errors
    ///
    /// The precondition that does not hold.
    pub fn bind(&self, dmabuf: impl AsFd) -> Result<RxBinding, BindError> {
        let fd = dmabuf.as_fd();
        dmabuf::check(fd)?;
        Namespace::run_in(self.namespace.as_ref(), || {
            self.bind_over(Netlink::default(), fd)
        })
    }

    pub(crate) fn bind_over(
        &self,
        mut netlink: Netlink,
        dmabuf: BorrowedFd<'_>,
    ) -> Result<RxBinding, BindError> {
        let interface = self.interface;
        if self.queues.is_empty() {
            return Err(BindError::NoQueues {
                interface: interface.label(),
            });
        }
        let mut request = Request::new().op_bind_rx_do();
        let mut attributes = request
            .encode()
            .push_ifindex(interface.index())
            .push_fd(dmabuf.as_raw_fd() as u32);
        if let Some(bytes) = self.rx_page_size {
            attributes = attributes.push_rx_page_size(bytes);
        }
        // Where each queue's attribute ends, for the offset in the kernel's answer.
        let mut ends = Vec::with_capacity(self.queues.len());
        for &queue in &self.queues {
            attributes = attributes
                .nested_queues()
                .push_type(QueueType::Rx as u32)
                .push_id(queue)
                .end_nested();
            ends.push(HEADER + attributes.as_vec().len());
        }
        drop(attributes);

        let subject = Subject {
            operation: "netdev bind-rx",
            interface,
        };
        netlink
            .one(subject, &request, |reply| {
                reply.get_id().map_err(|error| subject.incomplete(error))
            })
            .map(|id| RxBinding {
                id,
                interface,
                queues: self.queues.clone(),
                _netlink: netlink,
            })
            .map_err(|error| {
                let asked = refusal::BindRx {
                    interface,
                    queues: &self.queues,
                    ends: &ends,
                    rx_page_size: self.rx_page_size,
                };
                refusal::bind_rx(error, &asked, || evidence(interface))
            })
    }
}

/// What an interface is to send from: [`TxBinding::to`].
#[derive(Debug, Clone)]
#[must_use = "nothing is bound before `TxBinder::bind`"]
pub struct TxBinder {
    interface: Interface,
    namespace: Option<Namespace>,
}

impl TxBinder {
    /// The network namespace of the interface; that of the calling thread if it is not set.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Lets the interface send from `dmabuf`, whose length must be whole pages. It takes no privilege.
    ///
    /// # Errors
    ///
    /// [`BindError::NoDeviceMemoryTx`] and others that name the precondition.
    pub fn bind(&self, dmabuf: impl AsFd) -> Result<TxBinding, BindError> {
        let fd = dmabuf.as_fd();
        dmabuf::check(fd)?;
        let len = dmabuf::len_of(fd)?;
        Namespace::run_in(self.namespace.as_ref(), || self.bind_here(fd, len))
    }

    fn bind_here(&self, dmabuf: BorrowedFd<'_>, len: usize) -> Result<TxBinding, BindError> {
        let interface = self.interface;
        let mut request = Request::new().op_bind_tx_do();
        request
            .encode()
            .push_ifindex(interface.index())
            .push_fd(dmabuf.as_raw_fd() as u32);

        let mut netlink = Netlink::default();
        let subject = Subject {
            operation: "netdev bind-tx",
            interface,
        };
        netlink
            .one(subject, &request, |reply| {
                reply.get_id().map_err(|error| subject.incomplete(error))
            })
            .map(|id| TxBinding {
                id,
                interface,
                len,
                netlink: Mutex::new(Some(netlink)),
            })
            .map_err(|error| refusal::bind_tx(error, interface))
    }
}

/// The precondition of a binding to `queue` behind a refusal without words, as io_uring gives it:
/// from what the interface says about itself.
#[cfg(feature = "zcrx")]
pub(crate) fn precondition(
    refusal: &crate::Refusal,
    interface: Interface,
    queue: u32,
) -> Option<BindError> {
    let asked = refusal::BindRx {
        interface,
        queues: &[queue],
        ends: &[],
        rx_page_size: None,
    };
    refusal::by_evidence(refusal, &asked, || evidence(interface))
}

/// What the interface says about itself after a refusal.
fn evidence(interface: Interface) -> refusal::Evidence {
    let queues = Netdev::new().queues(interface).ok();
    let rings = Ethtool::new().rings(interface).ok();
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
