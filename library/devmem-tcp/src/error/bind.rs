// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of binding device memory to queues (net/core/netdev_rx_queue.c, net/core/devmem.c and
//! io_uring/zcrx.c in the kernel).

use super::{MemoryError, Refusal, RequestError};

/// Why memory cannot be bound: the precondition that does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Header split is not explicitly on (`hds_config` is not `ENABLED`).
    #[error(
        "{interface}: header split is off; turn it on first: ethtool -G <interface> \
         tcp-data-split on ({refusal})"
    )]
    HeaderSplitOff {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// Packets below a threshold would not be split.
    #[error(
        "{interface}: hds-thresh is not zero; set it to 0: ethtool -G <interface> hds-thresh 0 \
         ({refusal})"
    )]
    HdsThreshNotZero {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// An XDP program would have to read the payload.
    #[error(
        "{interface}: an XDP program is attached; detach it: ip link set dev <interface> xdp off \
         ({refusal})"
    )]
    XdpAttached {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// Another binding or io_uring holds one of the queues.
    #[error(
        "{interface}: RX queue {queues:?} already belongs to a memory provider; close its \
         holder's netlink socket or io_uring, or take another queue ({refusal})"
    )]
    QueueAlreadyBound {
        /// Name and index of the interface.
        interface: String,
        /// The queues that are bound if the kernel shows which, else all that were requested.
        queues: Vec<u32>,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// An AF_XDP socket uses one of the queues.
    #[error(
        "{interface}: one of RX queues {queues:?} is used by an AF_XDP socket; close that socket \
         or take another queue ({refusal})"
    )]
    QueueUsedByAfXdp {
        /// Name and index of the interface.
        interface: String,
        /// The queues that were asked for.
        queues: Vec<u32>,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// One of the queues is leased to, or belongs to, a virtual interface.
    #[error(
        "{interface}: one of RX queues {queues:?} is part of a queue lease; bind through the \
         interface that holds it ({refusal})"
    )]
    QueueLeased {
        /// Name and index of the interface.
        interface: String,
        /// The queues that were asked for.
        queues: Vec<u32>,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The queue index is out of range.
    #[error(
        "{interface}: there is no RX queue {queue}; see its channels: ethtool -l <interface> \
         ({refusal})"
    )]
    NoSuchQueue {
        /// Name and index of the interface.
        interface: String,
        /// The first queue that does not exist.
        queue: u32,
        /// The kernel's answer, or what it would be where nothing is bound.
        refusal: Refusal,
    },
    /// The driver has no `netdev_queue_mgmt_ops`, or the kernel does not support device memory.
    #[error(
        "{interface}: its driver cannot restart single queues (no queue management operations), or \
         the kernel was built without CONFIG_NET_DEVMEM; use another NIC or kernel ({refusal})"
    )]
    NoQueueManagement {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The device has no DMA device behind it.
    #[error("{interface}: the device does no DMA, so no dma-buf can be mapped for it ({refusal})")]
    NoDma {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The driver cannot send unreadable memory (`netdev->netmem_tx`), or the kernel does not
    /// support device memory.
    #[error(
        "{interface}: its driver cannot send from device memory, or the kernel was built without \
         CONFIG_NET_DEVMEM; use another NIC or kernel ({refusal})"
    )]
    NoDeviceMemoryTx {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The requested page size is not a power of two, or the driver doesn't support any.
    #[error(
        "{interface}: an rx-page-size of {rx_page_size} bytes is not supported; use a power of \
         two that the driver supports, or none ({refusal})"
    )]
    PageSizeUnsupported {
        /// Name and index of the interface.
        interface: String,
        /// The requested page size, in bytes; 0 if none was requested.
        rx_page_size: u32,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// A piece of the dma-buf is not a multiple of the fragment size, or not aligned to it.
    #[error(
        "{interface}: the dma-buf is not aligned to the size of a fragment; allocate it from \
         larger pages, or ask for a smaller rx-page-size ({refusal})"
    )]
    DmaBufUnaligned {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The exporter and the device do not agree (`dma_buf_attach`, `dma_buf_map_attachment`).
    #[error(
        "{interface}: the device cannot map the dma-buf; its exporter or an IOMMU refuses \
         ({refusal})"
    )]
    DmaBufNotMapped {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The NIC cannot reach the device behind the dma-buf (`pci_p2pdma_distance_many` in
    /// drivers/pci/p2pdma.c).
    #[error(
        "{interface}: there is no peer-to-peer path from the NIC to the device that owns this \
         memory; both must be behind one PCIe switch, or on a root complex that the kernel knows \
         to pass peer-to-peer traffic; its log says more ({refusal})"
    )]
    NoPeerToPeer {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The memory of a zero-copy receive area is not contiguous in pieces of the buffers' size, or
    /// the driver doesn't support buffers of that size: the kernel returns the same errno for both.
    #[error(
        "receive buffers of {rx_buf_len} bytes are too large: the area is not physically \
         contiguous in such pieces, or the driver does not support them; allocate it from larger \
         pages (a dma-heap, huge pages), or ask for smaller buffers ({refusal})"
    )]
    BuffersTooLarge {
        /// Size of a receive buffer, in bytes.
        rx_buf_len: u32,
        /// `ERANGE`.
        refusal: Refusal,
    },
    /// The memory of a zero-copy receive area cannot be locked.
    #[error(
        "cannot lock an area of {len} bytes in memory; raise RLIMIT_MEMLOCK (ulimit -l), run with \
         CAP_IPC_LOCK, or take a smaller area ({refusal})"
    )]
    AreaNotLocked {
        /// Length of the area, in bytes.
        len: usize,
        /// `ENOMEM`.
        refusal: Refusal,
    },
    /// A binding without queues would receive nothing.
    #[error("{interface}: no queue to bind the dma-buf to; name at least one RX queue")]
    NoQueues {
        /// Name and index of the interface.
        interface: String,
    },
    /// The descriptor is no dma-buf.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The kernel refused for another reason.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl BindError {
    /// The kernel's answer, where the error carries one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::HeaderSplitOff { refusal, .. }
            | Self::HdsThreshNotZero { refusal, .. }
            | Self::XdpAttached { refusal, .. }
            | Self::QueueAlreadyBound { refusal, .. }
            | Self::QueueUsedByAfXdp { refusal, .. }
            | Self::QueueLeased { refusal, .. }
            | Self::NoSuchQueue { refusal, .. }
            | Self::NoQueueManagement { refusal, .. }
            | Self::NoDma { refusal, .. }
            | Self::NoDeviceMemoryTx { refusal, .. }
            | Self::PageSizeUnsupported { refusal, .. }
            | Self::DmaBufUnaligned { refusal, .. }
            | Self::DmaBufNotMapped { refusal, .. }
            | Self::NoPeerToPeer { refusal, .. }
            | Self::BuffersTooLarge { refusal, .. }
            | Self::AreaNotLocked { refusal, .. } => Some(refusal),
            Self::Request(error) => error.refusal(),
            Self::Memory(_) | Self::NoQueues { .. } => None,
        }
    }

    /// The errno behind the error, positive, if the kernel gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Memory(error) => error.errno(),
            Self::Request(error) => error.errno(),
            other => other.refusal().map(|refusal| refusal.errno),
        }
    }
}
