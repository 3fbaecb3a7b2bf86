// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of sending from device memory (`tcp_sendmsg_locked` in net/ipv4/tcp.c).

use super::{BadControlMessage, OutOfRange, Refusal, RequestError, SystemCall};

/// Why memory could not be sent, or a completion not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The range is not inside the dma-buf.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// The socket is of another protocol than TCP: the kernel would take offsets for addresses of this process.
    #[error(
        "the socket is of IP protocol {protocol}, not of TCP (6), which alone sends from a dma-buf; MPTCP \
         (262) does not"
    )]
    NotTcp {
        /// `SO_PROTOCOL`; 0 if it is of none.
        protocol: u32,
    },
    /// No room now: the socket is non-blocking or has a timeout.
    #[error("the socket has no room now; poll it and try again")]
    WouldBlock,
    /// The flow does not leave through the binding's interface.
    #[error(
        "the connection's route does not go through the interface that the dma-buf is bound to, \
         or that interface is gone; pin the socket with SO_BINDTODEVICE or bind there ({refusal})"
    )]
    RouteElsewhere {
        /// `ENODEV`.
        refusal: Refusal,
    },
    /// The binding is gone, is not one for sending, or the device lost scatter-gather.
    #[error(
        "the binding cannot be sent from: it is closed, or is not a TX binding, or \
         scatter-gather is off: ethtool -K <interface> sg on ({refusal})"
    )]
    NotSendable {
        /// `EINVAL`.
        refusal: Refusal,
    },
    /// Too many sends wait for their completion (`net.core.optmem_max`).
    #[error(
        "{in_flight} sends wait for completion and the socket has no room for one more; read \
         completions, then try again ({refusal})"
    )]
    TooManyInFlight {
        /// Sends that are not complete.
        in_flight: usize,
        /// `ENOBUFS`.
        refusal: Refusal,
    },
    /// A completion names a send that is not in flight.
    #[error("the kernel completed sends {first}..={last}, but not all of them are in flight")]
    UnexpectedCompletion {
        /// First id of the range.
        first: u32,
        /// Last id of the range, inclusive.
        last: u32,
    },
    /// Sends were not complete in time.
    #[error(
        "{in_flight} sends were not complete in time; the peer may have stopped reading, or the \
         device dropped its queue"
    )]
    CompletionTimeout {
        /// Sends that are not complete.
        in_flight: usize,
    },
    /// A system call failed.
    #[error(transparent)]
    SystemCall(#[from] SystemCall),
    /// The interface does not exist.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A control message is cut.
    #[error(transparent)]
    BadControlMessage(#[from] BadControlMessage),
}

impl SendError {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::RouteElsewhere { refusal }
            | Self::NotSendable { refusal }
            | Self::TooManyInFlight { refusal, .. } => Some(refusal),
            Self::Request(error) => error.refusal(),
            _ => None,
        }
    }

    /// The errno behind the error, positive, if a system call gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::WouldBlock => Some(libc::EAGAIN),
            Self::SystemCall(error) => error.errno(),
            Self::Request(error) => error.errno(),
            other => other.refusal().map(|refusal| refusal.errno),
        }
    }
}
