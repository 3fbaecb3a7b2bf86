// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which precondition of a binding failed, from the kernel's errno and words and, where those are
//! ambiguous, from what the interface says about itself.

use super::Queue;
use crate::error::{Error, Refusal};
use crate::ethtool::TcpDataSplit;
use crate::interface;

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

/// Whether the kernel points at the page size, which is the attribute before the queues.
fn points_at_page_size(refusal: &Refusal, asked: &BindRx<'_>) -> bool {
    let first = asked
        .ends
        .first()
        .and_then(|end| end.checked_sub(QUEUE_ATTRIBUTE + PAGE_SIZE_ATTRIBUTE));
    asked.rx_page_size.is_some() && first.is_some() && refusal.bad_attribute == first
}

/// Bytes of the page size's attribute: its header and a u32.
const PAGE_SIZE_ATTRIBUTE: usize = 4 + 4;

/// Bytes of a `queues` attribute: its header, and a header and a u32 for each of type and id.
const QUEUE_ATTRIBUTE: usize = 4 + 2 * (4 + 4);

/// Names the precondition behind a refusal of `bind-rx`.
pub(super) fn bind_rx(error: Error, asked: &BindRx<'_>, look: impl FnOnce() -> Evidence) -> Error {
    let interface = interface::label(asked.ifindex);
    let refusal = match error {
        Error::Refused { refusal, .. } => refusal,
        Error::Unsupported {
            refusal, operation, ..
        } => {
            return match cause_in_words(&refusal) {
                Some(cause) => explain(cause, interface, refusal, asked, &Evidence::default()),
                // Without words: the interface has no queue management at all (the kernel points at
                // it), lacks one of the operations, or the kernel has no device memory.
                None if refusal.extack.is_none() => Error::NoQueueManagement { interface, refusal },
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
    if points_at_page_size(&refusal, asked) {
        let cause = Cause::PageSizeUnsupported;
        return explain(cause, interface, refusal, asked, &Evidence::default());
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
    let (refusal, unsupported) = match &error {
        Error::Refused { refusal, .. } => (refusal, false),
        Error::Unsupported { refusal, .. } => (refusal, true),
        _ => return error,
    };
    let cause = match cause_in_words(refusal) {
        Some(cause) => cause,
        None if unsupported && refusal.extack.is_none() => Cause::NoDeviceMemoryTx,
        None => return error,
    };
    let asked = BindRx {
        ifindex,
        queues: &[],
        ends: &[],
        rx_page_size: None,
    };
    let refusal = refusal.clone();
    explain(
        cause,
        interface::label(ifindex),
        refusal,
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
        // What exporters of a PCI device's memory say when the topology leaves no path to it.
        Cause::DmaBufNotMapped if refusal.errno == libc::EXDEV => {
            Error::NoPeerToPeer { interface, refusal }
        }
        Cause::DmaBufNotMapped => Error::DmaBufNotMapped { interface, refusal },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netdev::QueueKind;
    use crate::netlink::HEADER;

    /// An index that no interface has.
    const IFINDEX: u32 = u32::MAX;
    /// Where the queues' attributes of a request start: after the headers, ifindex, fd and
    /// page size.
    const FIRST: usize = HEADER + 4 + 8 + 8 + 8;

    fn refusal(errno: i32, extack: Option<&str>, bad_attribute: Option<usize>) -> Refusal {
        Refusal {
            errno,
            extack: extack.map(str::to_owned),
            bad_attribute,
        }
    }

    /// The error as the netlink layer passes it on.
    fn error(refusal: Refusal) -> Error {
        let (interface, operation) = (String::new(), "netdev bind-rx");
        match refusal.errno {
            libc::EOPNOTSUPP => Error::Unsupported {
                interface,
                operation,
                refusal,
            },
            _ => Error::Refused {
                interface,
                operation,
                refusal,
            },
        }
    }

    fn queue(id: u32) -> Queue {
        Queue {
            kind: QueueKind::Rx,
            id,
            napi_id: None,
            dmabuf: None,
            io_uring: false,
            xsk: false,
            leased: false,
        }
    }

    /// An interface on which a binding to any of four queues must work.
    fn ready() -> Evidence {
        Evidence {
            split: Some(TcpDataSplit::Enabled),
            hds_thresh: Some(0),
            rx_queues: (0..4).map(queue).collect(),
        }
    }

    fn name(refusal: Refusal, queues: &[u32], evidence: Evidence) -> Error {
        let ends: Vec<usize> = (1..=queues.len())
            .map(|count| FIRST + count * QUEUE_ATTRIBUTE)
            .collect();
        let asked = BindRx {
            ifindex: IFINDEX,
            queues,
            ends: &ends,
            rx_page_size: Some(8192),
        };
        bind_rx(error(refusal), &asked, || evidence)
    }

    /// The variant's name, and for queues which.
    fn summary(error: &Error) -> String {
        let debug = format!("{error:?}");
        let variant = debug
            .split([' ', '('])
            .next()
            .unwrap_or_default()
            .to_owned();
        match error {
            Error::QueueAlreadyBound { queues, .. } => format!("{variant} {queues:?}"),
            Error::NoSuchQueue { queue, .. } => format!("{variant} {queue}"),
            _ => variant,
        }
    }

    #[test]
    fn the_kernels_words_name_the_precondition_and_stay_in_the_error() {
        const ALIGNMENT: &str =
            "dmabuf sg entry (addr=0x1000, len=4096) not aligned to niov size 8192";
        const XDP: &str = "unable to custom memory provider to device with XDP program attached";
        let table = [
            (libc::EINVAL, "tcp-data-split is disabled", "HeaderSplitOff"),
            (libc::EINVAL, "hds-thresh is not zero", "HdsThreshNotZero"),
            (libc::EEXIST, XDP, "XdpAttached"),
            (
                libc::EEXIST,
                "designated queue already memory provider bound",
                "QueueAlreadyBound [1, 2]",
            ),
            (
                libc::EBUSY,
                "designated queue already in use by AF_XDP",
                "QueueUsedByAfXdp",
            ),
            (
                libc::EBUSY,
                "rx queue leased to a virtual netdev",
                "QueueLeased",
            ),
            (
                libc::EOPNOTSUPP,
                "rx queue belongs to a virtual netdev",
                "QueueLeased",
            ),
            (libc::ERANGE, "rx queue index out of range", "NoSuchQueue 2"),
            (libc::EOPNOTSUPP, "Device doesn't support DMA", "NoDma"),
            (
                libc::EOPNOTSUPP,
                "device does not support: rx_page_size",
                "PageSizeUnsupported",
            ),
            (
                libc::EINVAL,
                "rx-page-size must be a power of 2",
                "PageSizeUnsupported",
            ),
            (libc::EINVAL, ALIGNMENT, "DmaBufUnaligned"),
            (
                libc::ENODEV,
                "Failed to bind dmabuf to device",
                "DmaBufNotMapped",
            ),
            (
                libc::EXDEV,
                "Failed to bind dmabuf to device",
                "NoPeerToPeer",
            ),
            (
                libc::ENOMEM,
                "Failed to map dmabuf attachment",
                "DmaBufNotMapped",
            ),
            (libc::EINVAL, "words that no kernel has today", "Refused"),
        ];
        for (errno, words, expected) in table {
            let error = name(refusal(errno, Some(words), None), &[1, 2], ready());
            assert_eq!(summary(&error), expected, "for \"{words}\"");
            assert_eq!(error.errno(), Some(errno), "for \"{words}\"");
            assert_eq!(error.extack(), Some(words));
            assert!(
                error.to_string().contains(words),
                "the message hides the words: {error}"
            );
        }
    }

    #[test]
    fn an_errno_without_words_is_explained_by_the_state_of_the_interface() {
        let mut bound = ready();
        bound.rx_queues[2].dmabuf = Some(7);
        let mut zcrx = ready();
        zcrx.rx_queues[1].io_uring = true;
        let mut xsk = ready();
        xsk.rx_queues[1].xsk = true;
        let auto = Evidence {
            split: Some(TcpDataSplit::Auto),
            ..ready()
        };
        let thresh = Evidence {
            hds_thresh: Some(1),
            ..ready()
        };
        let table: [(i32, Evidence, &[u32], &str); 10] = [
            (libc::EINVAL, auto, &[1], "HeaderSplitOff"),
            (libc::EINVAL, thresh, &[1], "HdsThreshNotZero"),
            (libc::EINVAL, ready(), &[1, 4], "NoSuchQueue 4"),
            (libc::EINVAL, ready(), &[1], "Refused"),
            (libc::EINVAL, Evidence::default(), &[99], "Refused"),
            (libc::EEXIST, bound, &[1, 2], "QueueAlreadyBound [2]"),
            (libc::EEXIST, zcrx, &[1, 2], "QueueAlreadyBound [1]"),
            (libc::EEXIST, ready(), &[1], "XdpAttached"),
            (libc::EEXIST, Evidence::default(), &[1], "Refused"),
            (libc::EBUSY, xsk, &[1], "QueueUsedByAfXdp"),
        ];
        for (errno, evidence, queues, expected) in table {
            let case = format!("errno {errno}, {evidence:?}, queues {queues:?}");
            let error = name(refusal(errno, None, None), queues, evidence);
            assert_eq!(summary(&error), expected, "for {case}");
        }
    }

    #[test]
    fn the_queue_that_the_kernel_points_at_is_named() {
        for (index, expected) in [(0, 5), (1, 6), (2, 7)] {
            // The id is the last attribute of its queue.
            let id = FIRST + (index + 1) * QUEUE_ATTRIBUTE - 8;
            let error = name(
                refusal(libc::EINVAL, None, Some(id)),
                &[5, 6, 7],
                Evidence::default(),
            );
            assert_eq!(summary(&error), format!("NoSuchQueue {expected}"));
        }
        // An attribute before the queues, or after them, is not about a queue.
        for offset in [FIRST - 16, FIRST + 3 * QUEUE_ATTRIBUTE] {
            let error = name(
                refusal(libc::EINVAL, None, Some(offset)),
                &[5, 6, 7],
                Evidence::default(),
            );
            assert_eq!(summary(&error), "Refused", "offset {offset}");
        }
    }

    #[test]
    fn a_page_size_that_the_kernel_points_at_is_named() {
        let error = name(
            refusal(libc::ERANGE, Some("integer out of range"), Some(FIRST - 8)),
            &[1],
            ready(),
        );
        assert_eq!(summary(&error), "PageSizeUnsupported");
        assert!(
            error.to_string().contains("8192"),
            "unclear message: {error}"
        );
    }

    #[test]
    fn a_device_without_queue_management_is_named_with_and_without_a_pointer() {
        for pointer in [Some(HEADER + 4), None] {
            let error = name(refusal(libc::EOPNOTSUPP, None, pointer), &[1], ready());
            assert_eq!(summary(&error), "NoQueueManagement");
        }
    }

    #[test]
    fn refusals_of_tx_bindings_are_named() {
        let table = [
            (
                libc::EOPNOTSUPP,
                Some("Driver does not support netmem TX"),
                "NoDeviceMemoryTx",
            ),
            (
                libc::EOPNOTSUPP,
                Some("No DMA-capable device found for netmem TX"),
                "NoDeviceMemoryTx",
            ),
            (libc::EOPNOTSUPP, None, "NoDeviceMemoryTx"),
            (
                libc::EOPNOTSUPP,
                Some("Device doesn't support DMA"),
                "NoDma",
            ),
            (
                libc::EINVAL,
                Some("TX dma-buf size must be a multiple of PAGE_SIZE"),
                "DmaBufUnaligned",
            ),
            (
                libc::EXDEV,
                Some("Failed to bind dmabuf to device"),
                "NoPeerToPeer",
            ),
            (libc::ENOMEM, None, "Refused"),
        ];
        for (errno, words, expected) in table {
            let error = bind_tx(error(refusal(errno, words, None)), IFINDEX);
            assert_eq!(summary(&error), expected, "for {words:?}");
            assert_eq!(error.errno(), Some(errno));
        }
    }
}
