// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which precondition of a binding failed, from the kernel's errno and words and, where those are
//! ambiguous, from what the interface says about itself.

mod cause;
mod pointer;
#[cfg(test)]
mod tests;

use super::Queue;
use crate::error::{BindError, Error, Refusal};
use crate::ethtool::TcpDataSplit;
use crate::interface;

use cause::{Cause, absent_queue, bound_queues, cause_by_evidence, cause_in_words};
use pointer::{points_at_page_size, queue_pointed_at};

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
                None if refusal.extack.is_none() => {
                    Error::Bind(BindError::NoQueueManagement { interface, refusal })
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
        return Error::Bind(BindError::NoSuchQueue {
            interface,
            queue,
            refusal,
        });
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

/// Names the precondition behind an errno without a message, if the interface's state shows it.
pub(super) fn by_evidence(
    refusal: &Refusal,
    asked: &BindRx<'_>,
    look: impl FnOnce() -> Evidence,
) -> Option<Error> {
    let evidence = look();
    let cause = cause_by_evidence(refusal, asked, &evidence)?;
    let interface = interface::label(asked.ifindex);
    Some(explain(cause, interface, refusal.clone(), asked, &evidence))
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
        Cause::HeaderSplitOff => Error::Bind(BindError::HeaderSplitOff { interface, refusal }),
        Cause::HdsThreshNotZero => Error::Bind(BindError::HdsThreshNotZero { interface, refusal }),
        Cause::XdpAttached => Error::Bind(BindError::XdpAttached { interface, refusal }),
        Cause::QueueAlreadyBound => {
            let bound = bound_queues(asked, evidence);
            Error::Bind(BindError::QueueAlreadyBound {
                interface,
                queues: if bound.is_empty() { queues } else { bound },
                refusal,
            })
        }
        Cause::QueueUsedByAfXdp => Error::Bind(BindError::QueueUsedByAfXdp {
            interface,
            queues,
            refusal,
        }),
        Cause::QueueLeased => Error::Bind(BindError::QueueLeased {
            interface,
            queues,
            refusal,
        }),
        Cause::NoSuchQueue => {
            let largest = queues.iter().copied().max().unwrap_or_default();
            Error::Bind(BindError::NoSuchQueue {
                interface,
                queue: absent_queue(asked, evidence).unwrap_or(largest),
                refusal,
            })
        }
        Cause::NoDma => Error::Bind(BindError::NoDma { interface, refusal }),
        Cause::NoDeviceMemoryTx => Error::Bind(BindError::NoDeviceMemoryTx { interface, refusal }),
        Cause::PageSizeUnsupported => Error::Bind(BindError::PageSizeUnsupported {
            interface,
            rx_page_size: asked.rx_page_size.unwrap_or_default(),
            refusal,
        }),
        Cause::DmaBufUnaligned => Error::Bind(BindError::DmaBufUnaligned { interface, refusal }),
        // What exporters of a PCI device's memory say when the topology leaves no path to it.
        Cause::DmaBufNotMapped if refusal.errno == libc::EXDEV => {
            Error::Bind(BindError::NoPeerToPeer { interface, refusal })
        }
        Cause::DmaBufNotMapped => Error::Bind(BindError::DmaBufNotMapped { interface, refusal }),
    }
}
