// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of receiving from a socket into device memory (`tcp_recvmsg_dmabuf` in net/ipv4/tcp.c).

use super::{BadControlMessage, MemoryError, Refusal, SystemCall};

/// Why a socket could not be received from, or fragments not be recycled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// No data now: the socket is non-blocking or has a timeout.
    #[error("the socket has no data now; poll it and try again")]
    WouldBlock,
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
    /// All memory that is received into by copying holds fragments.
    #[error("all {len} bytes of the memory hold fragments; recycle some, then receive again")]
    MemoryFull {
        /// Length of the memory, in bytes.
        len: usize,
    },
    /// Control messages and byte counts do not agree.
    #[error(transparent)]
    BadControlMessage(#[from] BadControlMessage),
    /// Some fragments belong to another connection, which lacks that memory until it closes. The others are
    /// recycled.
    #[error("fragments of another connection: {count}; recycle each with its own receiver")]
    FragmentsElsewhere {
        /// How many.
        count: usize,
    },
    /// The kernel accepted fewer tokens than were returned.
    #[error("the kernel accepted {taken} of {given} tokens; some were returned twice")]
    TokensNotTaken {
        /// Tokens that the kernel accepted.
        taken: usize,
        /// Tokens that were returned.
        given: usize,
    },
    /// The running kernel has no device memory TCP.
    #[error(
        "the running kernel has no SO_DEVMEM_DONTNEED; it requires Linux 6.12 or newer with CONFIG_PAGE_POOL \
         ({refusal})"
    )]
    KernelTooOld {
        /// `ENOPROTOOPT`.
        refusal: Refusal,
    },
    /// The memory that is received into by copying cannot be written.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A system call failed.
    #[error(transparent)]
    SystemCall(#[from] SystemCall),
}

impl ReceiveError {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::MixedSegment { refusal }
            | Self::SegmentUnreadable { refusal }
            | Self::KernelTooOld { refusal } => Some(refusal),
            _ => None,
        }
    }

    /// The errno behind the error, positive, if a system call gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::WouldBlock => Some(libc::EAGAIN),
            Self::SystemCall(error) => error.errno(),
            Self::Memory(error) => error.errno(),
            other => other.refusal().map(|refusal| refusal.errno),
        }
    }
}
