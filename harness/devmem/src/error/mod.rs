// SPDX-License-Identifier: MIT OR Apache-2.0

//! What can go wrong, named by the precondition that failed.

mod bind;
mod memory;
mod refusal;

use std::io;

pub use bind::BindError;
pub use memory::MemoryError;
pub use refusal::Refusal;

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed: the precondition that does not hold, and what the kernel said.
///
/// `interface` is the interface's name and index as a human-readable text. [`Error::errno`] and
/// [`Error::extack`] return the kernel's answer for any variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory cannot be bound to a queue.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Memory cannot be allocated, mapped or looked up.
    #[error(transparent)]
    Memory(#[from] MemoryError),

    // ---- the request as such ----
    /// No interface has this index or name in this network namespace.
    #[error("{interface} does not exist in this network namespace; see: ip link ({refusal})")]
    NoSuchInterface {
        /// Name or index that was asked for.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The caller lacks a capability.
    #[error(
        "{operation}: not permitted; run it as root or with {capability} in the network \
         namespace's user namespace ({refusal})"
    )]
    NotPrivileged {
        /// What was tried.
        operation: &'static str,
        /// The capability that it takes.
        capability: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The generic netlink family or the operation does not exist in the running kernel.
    #[error("the running kernel has no {missing}; it requires {requirement} ({refusal})")]
    KernelTooOld {
        /// The family or operation, as in `netdev bind-rx`.
        missing: String,
        /// The kernel that has it.
        requirement: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The driver does not offer an operation.
    #[error(
        "{interface}: its driver or this kernel's configuration does not offer {operation} \
         ({refusal})"
    )]
    Unsupported {
        /// Name and index of the interface.
        interface: String,
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The kernel has no feature of this name.
    #[error("there is no feature {feature}; see the names: ethtool -k <interface>")]
    NoSuchFeature {
        /// The name that was asked for.
        feature: String,
    },
    /// The device lacks a feature that the kernel knows.
    #[error("{interface} has no feature {feature}; see what it has: ethtool -k <interface>")]
    FeatureLacking {
        /// Name and index of the interface.
        interface: String,
        /// Name of the feature, as in `ethtool -k`.
        feature: String,
    },
    /// A feature did not change to the requested value.
    #[error("{interface}: feature {feature} stays {}; the device fixes it or another feature \
     requires it: ethtool -k <interface>", if *.wanted { "off" } else { "on" })]
    FeatureUnchanged {
        /// Name and index of the interface.
        interface: String,
        /// Name of the feature, as in `ethtool -k`.
        feature: String,
        /// The requested value.
        wanted: bool,
    },
    /// The kernel refused a request for a reason that has no variant of its own.
    #[error("{interface}: {operation} was refused: {refusal}")]
    Refused {
        /// Name and index of the interface.
        interface: String,
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// An answer is incomplete.
    #[error("{operation}: the kernel's answer is incomplete: {what}")]
    BadAnswer {
        /// What was tried.
        operation: &'static str,
        /// What is wrong.
        what: String,
    },

    /// The range is not inside the buffer.
    #[error("{len} bytes at offset {offset} are not inside a buffer of {buffer_len} bytes")]
    OutOfRange {
        /// Start of the range, in bytes.
        offset: u64,
        /// Length of the range, in bytes.
        len: u64,
        /// Length of the buffer, in bytes.
        buffer_len: u64,
    },
    /// A system call failed.
    #[error("{operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        source: io::Error,
    },

    // ---- sockets ----
    /// A segment mixes device memory with host memory (`Found non-dmabuf skb with net_iov` in the
    /// kernel log).
    #[error(
        "the flow carries a segment that is part device memory, part host memory; it is lost: \
         close the connection. Likely the driver hands GRO a packet with linear payload from the \
         bound queue ({refusal})"
    )]
    MixedSegment {
        /// `ENODEV`.
        refusal: Refusal,
    },
    /// The kernel could not hand out the next segment as device memory.
    #[error(
        "the kernel could not hand over the next segment; it is lost: close the connection \
         ({refusal})"
    )]
    SegmentUnreadable {
        /// `EFAULT`.
        refusal: Refusal,
    },
    /// A segment arrived in host memory, and the area has no buffer that it can be copied into.
    #[error(
        "a segment arrived in host memory, and there is no free buffer to copy it into: steer the \
         flow to the queue before it starts; return buffers, and receive again. Nothing can be \
         copied into a dma-buf ({refusal})"
    )]
    NoBufferToCopyInto {
        /// `ENOMEM`.
        refusal: Refusal,
    },
    /// A segment arrived in the memory of another queue.
    #[error(
        "a segment arrived in the memory of a queue that is not this receiver's; steer the flow to \
         one queue and receive from that ({refusal})"
    )]
    SegmentElsewhere {
        /// `EFAULT`.
        refusal: Refusal,
    },
    /// No data, or no room, now: the socket is non-blocking or has a timeout.
    #[error("the socket has no data or no room now; poll it and try again")]
    WouldBlock,
    /// Control messages and byte counts do not agree.
    #[error("the kernel's control messages do not add up: {what}")]
    BadControlMessages {
        /// What does not add up.
        what: String,
    },
    /// The kernel accepted fewer tokens than were returned.
    #[error(
        "the kernel accepted {taken} of {given} tokens; some were returned twice or belong to \
         another socket"
    )]
    TokensNotTaken {
        /// Tokens that the kernel accepted.
        taken: usize,
        /// Tokens that were returned.
        given: usize,
    },
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
}

impl Error {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Bind(error) => error.refusal(),
            Self::NoSuchInterface { refusal, .. }
            | Self::NotPrivileged { refusal, .. }
            | Self::KernelTooOld { refusal, .. }
            | Self::Unsupported { refusal, .. }
            | Self::Refused { refusal, .. }
            | Self::MixedSegment { refusal }
            | Self::SegmentUnreadable { refusal }
            | Self::NoBufferToCopyInto { refusal }
            | Self::SegmentElsewhere { refusal }
            | Self::RouteElsewhere { refusal }
            | Self::NotSendable { refusal }
            | Self::TooManyInFlight { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// The errno behind the error, positive, if a system call or the kernel's netlink answer gave
    /// one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Memory(error) => error.errno(),
            Self::Io { source, .. } => source.raw_os_error(),
            Self::WouldBlock => Some(libc::EAGAIN),
            other => other.refusal().map(|refusal| refusal.errno),
        }
    }

    /// The kernel's explanation in words, if it gave one.
    #[must_use]
    pub fn extack(&self) -> Option<&str> {
        self.refusal()?.extack.as_deref()
    }

    pub(crate) fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io {
            operation,
            source: source.into(),
        }
    }
}
