// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the kernel has words for; and where it has none, what the interface's state tells.

use super::{BindRx, Evidence};
use crate::error::Refusal;
use crate::ethtool::TcpDataSplit;

/// The preconditions that the kernel has words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
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
const WORDS: [(&str, Cause); 17] = [
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
    ("Failed to bind dmabuf to device", Cause::DmaBufNotMapped),
    ("Failed to map dmabuf attachment", Cause::DmaBufNotMapped),
];

pub(super) fn cause_in_words(refusal: &Refusal) -> Option<Cause> {
    let text = refusal.extack.as_deref()?;
    let (_, cause) = WORDS.iter().find(|(words, _)| text.contains(words))?;
    Some(*cause)
}

/// The cause where the kernel gave an errno only, as Linux 6.12 and before do for some.
pub(super) fn cause_by_evidence(
    refusal: &Refusal,
    asked: &BindRx<'_>,
    evidence: &Evidence,
) -> Option<Cause> {
    match refusal.errno {
        libc::EINVAL
            if evidence
                .split
                .is_some_and(|split| split != TcpDataSplit::On) =>
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
pub(super) fn bound_queues(asked: &BindRx<'_>, evidence: &Evidence) -> Vec<u32> {
    let bound = evidence
        .rx_queues
        .iter()
        .filter(|queue| queue.dmabuf.is_some() || queue.io_uring)
        .map(|queue| queue.id);
    bound.filter(|id| asked.queues.contains(id)).collect()
}

/// The first queue asked for that the interface does not list. An interface that is down lists
/// none: that says nothing.
pub(super) fn absent_queue(asked: &BindRx<'_>, evidence: &Evidence) -> Option<u32> {
    if evidence.rx_queues.is_empty() {
        return None;
    }
    asked
        .queues
        .iter()
        .copied()
        .find(|id| !evidence.rx_queues.iter().any(|queue| queue.id == *id))
}
