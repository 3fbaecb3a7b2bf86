// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which precondition of a binding failed, from the kernel's errno and words and, where those are
//! ambiguous, from what the interface says about itself.

mod cause;
mod pointer;
#[cfg(test)]
mod tests;

use super::Queue;
use crate::error::{BindError, Refusal, RequestError};
use crate::ethtool::TcpDataSplit;
use crate::interface::Interface;

use cause::{Cause, absent_queue, bound_queues, cause_by_evidence, cause_in_words};
use pointer::{points_at_page_size, queue_pointed_at};

/// What lib/nlattr.c says of an attribute that the kernel does not know.
const UNKNOWN_ATTRIBUTE: &str = "Unknown attribute type";

/// What was asked for.
pub(super) struct BindRx<'a> {
    pub(super) interface: Interface,
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

/// Names the precondition behind a refusal of `bind-rx`.
pub(super) fn bind_rx(
    error: RequestError,
    asked: &BindRx<'_>,
    look: impl FnOnce() -> Evidence,
) -> BindError {
    let interface = asked.interface.label();
    let refusal = match error {
        RequestError::Refused { refusal, .. } => refusal,
        RequestError::Unsupported {
            refusal, operation, ..
        } => {
            return match cause_in_words(&refusal) {
                Some(cause) => explain(cause, interface, refusal, asked, &Evidence::default()),
                // Without words: the interface has no queue management at all (the kernel points at
                // it), lacks one of the operations, or the kernel has no device memory.
                None if refusal.extack.is_none() => {
                    BindError::NoQueueManagement { interface, refusal }
                }
                None => RequestError::Unsupported {
                    interface,
                    operation,
                    refusal,
                }
                .into(),
            };
        }
        other => return other.into(),
    };
    if let Some(queue) = queue_pointed_at(&refusal, asked) {
        return BindError::NoSuchQueue {
            interface,
            queue,
            refusal,
        };
    }
    if points_at_page_size(&refusal, asked) {
        if refusal.extack.as_deref() == Some(UNKNOWN_ATTRIBUTE) {
            return RequestError::KernelTooOld {
                missing: "rx-page-size of netdev bind-rx".to_owned(),
                requirement: "NETDEV_A_DMABUF_RX_PAGE_SIZE, as Linux 7.3 has it",
                refusal,
            }
            .into();
        }
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
        None => RequestError::Refused {
            interface,
            operation: "netdev bind-rx",
            refusal,
        }
        .into(),
    }
}

/// Names the precondition behind an errno without a message, if the interface's state shows it.
#[cfg(feature = "zcrx")]
pub(super) fn by_evidence(
    refusal: &Refusal,
    asked: &BindRx<'_>,
    look: impl FnOnce() -> Evidence,
) -> Option<BindError> {
    let evidence = look();
    let cause = cause_by_evidence(refusal, asked, &evidence)?;
    let interface = asked.interface.label();
    Some(explain(cause, interface, refusal.clone(), asked, &evidence))
}

/// Names the precondition behind a refusal of `bind-tx`.
pub(super) fn bind_tx(error: RequestError, interface: Interface) -> BindError {
    let (refusal, unsupported) = match &error {
        RequestError::Refused { refusal, .. } => (refusal, false),
        RequestError::Unsupported { refusal, .. } => (refusal, true),
        _ => return error.into(),
    };
    let cause = match cause_in_words(refusal) {
        Some(cause) => cause,
        None if unsupported && refusal.extack.is_none() => Cause::NoDeviceMemoryTx,
        None => return error.into(),
    };
    let asked = BindRx {
        interface,
        queues: &[],
        ends: &[],
        rx_page_size: None,
    };
    let refusal = refusal.clone();
    explain(
        cause,
        interface.label(),
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
) -> BindError {
    let queues = asked.queues.to_vec();
    match cause {
        Cause::HeaderSplitOff => BindError::HeaderSplitOff { interface, refusal },
        Cause::HdsThreshNotZero => BindError::HdsThreshNotZero { interface, refusal },
        Cause::XdpAttached => BindError::XdpAttached { interface, refusal },
        Cause::QueueAlreadyBound => {
            let bound = bound_queues(asked, evidence);
            BindError::QueueAlreadyBound {
                interface,
                queues: if bound.is_empty() { queues } else { bound },
                refusal,
            }
        }
        Cause::QueueUsedByAfXdp => BindError::QueueUsedByAfXdp {
            interface,
            queues,
            refusal,
        },
        Cause::QueueLeased => BindError::QueueLeased {
            interface,
            queues,
            refusal,
        },
        Cause::NoSuchQueue => {
            let largest = queues.iter().copied().max().unwrap_or_default();
            BindError::NoSuchQueue {
                interface,
                queue: absent_queue(asked, evidence).unwrap_or(largest),
                refusal,
            }
        }
        Cause::NoDma => BindError::NoDma { interface, refusal },
        Cause::NoDeviceMemoryTx => BindError::NoDeviceMemoryTx { interface, refusal },
        Cause::PageSizeUnsupported => BindError::PageSizeUnsupported {
            interface,
            rx_page_size: asked.rx_page_size.unwrap_or_default(),
            refusal,
        },
        Cause::DmaBufUnaligned => BindError::DmaBufUnaligned { interface, refusal },
        // What exporters of a PCI device's memory say when the topology leaves no path to it.
        Cause::DmaBufNotMapped if refusal.errno == libc::EXDEV => {
            BindError::NoPeerToPeer { interface, refusal }
        }
        Cause::DmaBufNotMapped => BindError::DmaBufNotMapped { interface, refusal },
    }
}
