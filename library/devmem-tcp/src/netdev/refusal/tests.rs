// SPDX-License-Identifier: MIT OR Apache-2.0

//! Answers as kernels give them, and the errors that they become.

use super::pointer::QUEUE_ATTRIBUTE;
use super::*;
use crate::netdev::QueueKind;
use crate::netlink::HEADER;

/// An index that no interface has.
const NOBODY: Interface = Interface::from_index(u32::MAX);
/// Where the queues' attributes of a request start: after the headers, interface, fd and
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
fn error(refusal: Refusal) -> RequestError {
    let (interface, operation) = (String::new(), "netdev bind-rx");
    match refusal.errno {
        libc::EOPNOTSUPP => RequestError::Unsupported {
            interface,
            operation,
            refusal,
        },
        _ => RequestError::Refused {
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
        split: Some(TcpDataSplit::On),
        hds_thresh: Some(0),
        rx_queues: (0..4).map(queue).collect(),
    }
}

fn name(refusal: Refusal, queues: &[u32], evidence: Evidence) -> BindError {
    let ends: Vec<usize> = (1..=queues.len())
        .map(|count| FIRST + count * QUEUE_ATTRIBUTE)
        .collect();
    let asked = BindRx {
        interface: NOBODY,
        queues,
        ends: &ends,
        rx_page_size: Some(8192),
    };
    bind_rx(error(refusal), &asked, || evidence)
}

/// The variant's name, and for queues which.
fn summary(error: &BindError) -> String {
    let debug = format!("{error:?}");
    let variant = debug
        .trim_start_matches("Request(")
        .split([' ', '('])
        .next()
        .unwrap_or_default()
        .to_owned();
    match error {
        BindError::QueueAlreadyBound { queues, .. } => format!("{variant} {queues:?}"),
        BindError::NoSuchQueue { queue, .. } => format!("{variant} {queue}"),
        _ => variant,
    }
}

#[test]
fn the_kernels_words_name_the_precondition_and_stay_in_the_error() {
    const ALIGNMENT: &str = "dmabuf sg entry (addr=0x1000, len=4096) not aligned to niov size 8192";
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
        let said = error
            .refusal()
            .and_then(|refusal| refusal.extack.as_deref());
        assert_eq!(said, Some(words));
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
fn a_kernel_that_does_not_know_page_sizes_is_too_old() {
    let unknown = refusal(libc::EINVAL, Some(UNKNOWN_ATTRIBUTE), Some(FIRST - 8));
    let error = name(unknown, &[1], ready()).to_string();
    assert!(
        error.contains("no rx-page-size") && error.contains("7.3"),
        "{error}"
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
        let error = bind_tx(error(refusal(errno, words, None)), NOBODY);
        assert_eq!(summary(&error), expected, "for {words:?}");
        assert_eq!(error.errno(), Some(errno));
    }
}
