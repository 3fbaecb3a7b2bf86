// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of zero-copy receive through io_uring (io_uring/zcrx.c).

use std::io;

use super::{Refusal, SystemCall};

/// Why a connection is not received from any more, or fragments not be recycled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZcrxError {
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
    /// Fragments of another queue were recycled, which are lost to theirs. The others are recycled.
    #[error("{count} fragments belong to another queue; recycle each with its own Refill")]
    FragmentsElsewhere {
        /// How many.
        count: usize,
    },
    /// The running kernel lacks an operation.
    #[error("the running kernel has no {missing}; it requires {requirement} ({refusal})")]
    KernelTooOld {
        /// What it lacks.
        missing: &'static str,
        /// The kernel that has it.
        requirement: &'static str,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The kernel's offsets lead out of the refill ring.
    #[error("the kernel's offsets lead out of the refill ring")]
    BrokenRefillRing,
    /// A system call failed.
    #[error(transparent)]
    SystemCall(#[from] SystemCall),
}

impl ZcrxError {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NoBufferToCopyInto { refusal }
            | Self::SegmentElsewhere { refusal }
            | Self::KernelTooOld { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// The errno behind the error, positive, if a system call gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::SystemCall(error) => error.errno(),
            other => other.refusal().map(|refusal| refusal.errno),
        }
    }

    pub(crate) fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        SystemCall::new(operation, source).into()
    }
}
