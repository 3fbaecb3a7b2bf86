// SPDX-License-Identifier: MIT OR Apache-2.0

//! What provides the memory that a queue or a page pool has.

use std::fmt;

use devmem_tcp::netdev;
use serde::Serialize;

/// What provides memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "provider", rename_all = "snake_case")]
pub(super) enum Memory {
    /// The host's, as usual.
    Host,
    /// A dma-buf.
    DmaBuf {
        /// The id of its binding.
        binding: u32,
    },
    /// An io_uring with zero-copy receive.
    IoUring,
    /// An AF_XDP socket.
    AfXdp,
}

impl Memory {
    pub(super) fn of_queue(queue: &netdev::Queue) -> Self {
        match queue.dmabuf {
            None if queue.xsk => Self::AfXdp,
            dmabuf => Self::of(dmabuf, queue.io_uring),
        }
    }

    pub(super) fn of(dmabuf: Option<u32>, io_uring: bool) -> Self {
        match dmabuf {
            Some(binding) => Self::DmaBuf { binding },
            None if io_uring => Self::IoUring,
            None => Self::Host,
        }
    }

    /// Whether it is memory that was bound to the queue.
    pub(super) fn is_bound(self) -> bool {
        matches!(self, Self::DmaBuf { .. } | Self::IoUring)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::DmaBuf { binding } => write!(f, "dma-buf {binding}"),
            Self::IoUring => f.write_str("io_uring"),
            Self::AfXdp => f.write_str("AF_XDP"),
        }
    }
}
