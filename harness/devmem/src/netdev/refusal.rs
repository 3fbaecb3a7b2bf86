// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which precondition of a binding failed, from the kernel's errno and words and, where those are
//! ambiguous, from what the interface says about itself.

use super::Queue;
use crate::error::{Error, Refusal};
use crate::ethtool::TcpDataSplit;
use crate::interface;

/// Bytes of `struct nlmsghdr`, which precedes the request's own bytes in the offsets that the
/// kernel gives.
pub(super) const NLMSG_HEADER: usize = 16;

/// What was asked for.
pub(super) struct BindRx<'a> {
    pub(super) ifindex: u32,
    pub(super) queues: &'a [u32],
    /// For each queue, where its attribute ends, in bytes from the start of the message.
    pub(super) ends: &'a [usize],
    pub(super) rx_page_size: Option<u32>,
}

/// The state of an interface. What could not be asked is absent.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) split: Option<TcpDataSplit>,
    pub(super) hds_thresh: Option<u32>,
    pub(super) rx_queues: Vec<Queue>,
}

/// The preconditions that the kernel has words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    HeaderSplitOff,
    HdsThreshNotZero,
    XdpAttached,
    QueueAlreadyBound,
    QueueUsedByAfXdp,
    QueueLeased,
    NoSuchQueue,
    NoDma,
    NoDeviceMemoryTx,
    PageSizeUnsupported,
    DmaBufUnaligned,
    DmaBufNotMapped,
}

/// Words of net/core/netdev_rx_queue.c, net/core/devmem.c and net/core/netdev-genl.c, and what they
/// say.
const WORDS: [(&str, Cause); 16] = [
    ("tcp-data-split is disabled", Cause::HeaderSplitOff),
    ("hds-thresh is not zero", Cause::HdsThreshNotZero),
    ("XDP program attached", Cause::XdpAttached),
    ("already memory provider bound", Cause::QueueAlreadyBound),
    ("already in use by AF_XDP", Cause::QueueUsedByAfXdp),
    ("leased to a virtual netdev", Cause::QueueLeased),
    ("belongs to a virtual netdev", Cause::QueueLeased),
    ("rx queue index out of range", Cause::NoSuchQueue),
    ("Device doesn't support DMA", Cause::NoDma),
    ("Driver does not support netmem TX", Cause::NoDeviceMemoryTx),
    (
        "No DMA-capable device found for netmem TX",
        Cause::NoDeviceMemoryTx,
    ),
    ("rx_page_size", Cause::PageSizeUnsupported),
    ("rx-page-size", Cause::PageSizeUnsupported),
    ("not aligned to niov size", Cause::DmaBufUnaligned),
    ("must be a multiple of PAGE_SIZE", Cause::DmaBufUnaligned),
    ("dmabuf", Cause::DmaBufNotMapped),
];

fn cause_in_words(refusal: &Refusal) -> Option<Cause> {
    let text = refusal.extack.as_deref()?;
    let (_, cause) = WORDS.iter().find(|(words, _)| text.contains(words))?;
    Some(*cause)
}

/// The cause where the kernel gave an errno only, as Linux 6.12 and before do for some.
fn cause_by_evidence(refusal: &Refusal, asked: &BindRx<'_>, evidence: &Evidence) -> Option<Cause> {
    match refusal.errno {
        libc::EINVAL
            if evidence
                .split
                .is_some_and(|split| split != TcpDataSplit::Enabled) =>
        {
            Some(Cause::HeaderSplitOff)
        }
        libc::EINVAL if evidence.hds_thresh.is_some_and(|bytes| bytes != 0) => {
            Some(Cause::HdsThreshNotZero)
        }
        libc::EINVAL | libc::ERANGE if absent_queue(asked, evidence).is_some() => {
            Some(Cause::NoSuchQueue)
        }
        libc::EEXIST if !bound_queues(asked, evidence).is_empty() => Some(Cause::QueueAlreadyBound),
        libc::EEXIST if !evidence.rx_queues.is_empty() => Some(Cause::XdpAttached),
        libc::EBUSY
            if evidence
                .rx_queues
                .iter()
                .any(|queue| queue.xsk && asked.queues.contains(&queue.id)) =>
        {
            Some(Cause::QueueUsedByAfXdp)
        }
        _ => None,
    }
}

/// Those of the queues asked for that have a memory provider.
fn bound_queues(asked: &BindRx<'_>, evidence: &Evidence) -> Vec<u32> {
    let bound = evidence
        .rx_queues
        .iter()
        .filter(|queue| queue.dmabuf.is_some() || queue.io_uring)
        .map(|queue| queue.id);
    bound.filter(|id| asked.queues.contains(id)).collect()
}

/// The first queue asked for that the interface does not list. An interface that is down lists
/// none: that says nothing.
fn absent_queue(asked: &BindRx<'_>, evidence: &Evidence) -> Option<u32> {
    if evidence.rx_queues.is_empty() {
        return None;
    }
    asked
        .queues
        .iter()
        .copied()
        .find(|id| !evidence.rx_queues.iter().any(|queue| queue.id == *id))
}

/// The queue that the kernel points at. Its offset lies inside the attribute that holds the queue.
fn queue_pointed_at(refusal: &Refusal, asked: &BindRx<'_>) -> Option<u32> {
    let offset = refusal.bad_attribute?;
    let first = asked.ends.first()?.checked_sub(QUEUE_ATTRIBUTE)?;
    if offset < first {
        return None;
    }
    let index = asked.ends.iter().position(|&end| offset < end)?;
    asked.queues.get(index).copied()
}

/// Bytes of a `queues` attribute: its header, and a header and a u32 for each of type and id.
const QUEUE_ATTRIBUTE: usize = 4 + 2 * (4 + 4);

/// Names the precondition behind a refusal of `bind-rx`.
pub(super) fn bind_rx(error: Error, asked: &BindRx<'_>, look: impl FnOnce() -> Evidence) -> Error {
    let interface = interface::label(asked.ifindex);
    let refusal = match error {
        Error::Refused { refusal, .. } => refusal,
        // The kernel points at the interface when its driver has no queue management, and has words
        // for other reasons.
        Error::Unsupported {
            refusal, operation, ..
        } => {
            return match cause_in_words(&refusal) {
                Some(cause) => explain(cause, interface, refusal, asked, &Evidence::default()),
                None if refusal.extack.is_none() && refusal.bad_attribute.is_some() => {
                    Error::NoQueueManagement { interface, refusal }
                }
                None => Error::Unsupported {
                    interface,
                    operation,
                    refusal,
                },
            };
        }
        other => return other,
    };
    if let Some(queue) = queue_pointed_at(&refusal, asked) {
        return Error::NoSuchQueue {
            interface,
            queue,
            refusal,
        };
    }
    let evidence = look();
    let cause = cause_in_words(&refusal).or_else(|| {
        if refusal.extack.is_none() {
            cause_by_evidence(&refusal, asked, &evidence)
        } else {
            None
        }
    });
    match cause {
        Some(cause) => explain(cause, interface, refusal, asked, &evidence),
        None => Error::Refused {
            interface,
            operation: "netdev bind-rx",
            refusal,
        },
    }
}

/// Names the precondition behind a refusal of `bind-tx`.
pub(super) fn bind_tx(error: Error, ifindex: u32) -> Error {
    let (Error::Refused { refusal, .. } | Error::Unsupported { refusal, .. }) = &error else {
        return error;
    };
    let Some(cause) = cause_in_words(refusal) else {
        return error;
    };
    let asked = BindRx {
        ifindex,
        queues: &[],
        ends: &[],
        rx_page_size: None,
    };
    explain(
        cause,
        interface::label(ifindex),
        refusal.clone(),
        &asked,
        &Evidence::default(),
    )
}

fn explain(
    cause: Cause,
    interface: String,
    refusal: Refusal,
    asked: &BindRx<'_>,
    evidence: &Evidence,
) -> Error {
    let queues = asked.queues.to_vec();
    match cause {
        Cause::HeaderSplitOff => Error::HeaderSplitOff { interface, refusal },
        Cause::HdsThreshNotZero => Error::HdsThreshNotZero { interface, refusal },
        Cause::XdpAttached => Error::XdpAttached { interface, refusal },
        Cause::QueueAlreadyBound => {
            let bound = bound_queues(asked, evidence);
            Error::QueueAlreadyBound {
                interface,
                queues: if bound.is_empty() { queues } else { bound },
                refusal,
            }
        }
        Cause::QueueUsedByAfXdp => Error::QueueUsedByAfXdp {
            interface,
            queues,
            refusal,
        },
        Cause::QueueLeased => Error::QueueLeased {
            interface,
            queues,
            refusal,
        },
        Cause::NoSuchQueue => {
            let largest = queues.iter().copied().max().unwrap_or_default();
            Error::NoSuchQueue {
                interface,
                queue: absent_queue(asked, evidence).unwrap_or(largest),
                refusal,
            }
        }
        Cause::NoDma => Error::NoDma { interface, refusal },
        Cause::NoDeviceMemoryTx => Error::NoDeviceMemoryTx { interface, refusal },
        Cause::PageSizeUnsupported => Error::PageSizeUnsupported {
            interface,
            rx_page_size: asked.rx_page_size.unwrap_or_default(),
            refusal,
        },
        Cause::DmaBufUnaligned => Error::DmaBufUnaligned { interface, refusal },
        Cause::DmaBufNotMapped => Error::DmaBufNotMapped { interface, refusal },
    }
}
