// SPDX-License-Identifier: MIT OR Apache-2.0

//! What can go wrong, named by the precondition that failed.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// The kernel's own words about a request it refused.
///
/// `extack` and `bad_attribute` come from the netlink extended acknowledgement (`struct
/// netlink_ext_ack`); an ioctl or a socket call has neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The errno, positive (`EINVAL` is 22).
    pub errno: i32,
    /// The text of `NLMSGERR_ATTR_MSG`.
    pub extack: Option<String>,
    /// `NLMSGERR_ATTR_OFFS`: where the attribute that the kernel objected to starts, in bytes from
    /// the start of the netlink message (its header included).
    pub bad_attribute: Option<usize>,
}

impl Refusal {
    /// A refusal that consists of an errno only.
    #[must_use]
    pub fn from_errno(errno: i32) -> Self {
        Self {
            errno,
            extack: None,
            bad_attribute: None,
        }
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::from_errno(errno.raw_os_error())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", io::Error::from_raw_os_error(self.errno))?;
        if let Some(text) = &self.extack {
            write!(f, ", kernel: \"{text}\"")?;
        }
        Ok(())
    }
}

/// Why an operation failed: the precondition that does not hold, and what the kernel said.
///
/// `interface` is the interface's name and index as a text for people. [`Error::errno`] and
/// [`Error::extack`] give the kernel's answer whatever the variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // ---- binding a dma-buf (net/core/netdev_rx_queue.c, net/core/devmem.c) ----
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
        /// The queues that are bound, as far as the kernel lets one see, else all that were asked
        /// for.
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
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The driver has no `netdev_queue_mgmt_ops`, or the kernel has no device memory at all.
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
    #[error(
        "{interface}: the device does no DMA, so that no dma-buf can be mapped for it ({refusal})"
    )]
    NoDma {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The driver cannot send memory that the CPU cannot read (`netdev->netmem_tx`), or the kernel
    /// has no device memory at all.
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
    /// The page size asked for is not a power of two, or the driver takes none.
    #[error(
        "{interface}: an rx-page-size of {rx_page_size} bytes is not possible; use a power of \
         two that the driver offers, or none ({refusal})"
    )]
    PageSizeUnsupported {
        /// Name and index of the interface.
        interface: String,
        /// The page size that was asked for, in bytes; 0 if none was.
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
        "{interface}: there is no peer-to-peer path from the NIC to the device whose memory this \
         is; both must be behind one PCIe switch, or on a root complex that the kernel knows to \
         pass peer-to-peer traffic; its log says more ({refusal})"
    )]
    NoPeerToPeer {
        /// Name and index of the interface.
        interface: String,
        /// The kernel's answer.
        refusal: Refusal,
    },
    /// The file descriptor is of another kind.
    #[error("file descriptor {fd} is not a dma-buf; pass one that an exporter returned")]
    NotADmaBuf {
        /// The file descriptor.
        fd: i32,
    },
    /// A binding without queues would receive nothing.
    #[error("{interface}: no queue was named to bind the dma-buf to; name at least one RX queue")]
    NoQueues {
        /// Name and index of the interface.
        interface: String,
    },

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
    #[error("the running kernel has no {missing}; it takes {requirement} ({refusal})")]
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
    /// A feature did not take the value that was asked for.
    #[error("{interface}: feature {feature} stays {}; the device fixes it or another feature \
     requires it: ethtool -k <interface>", if *.wanted { "off" } else { "on" })]
    FeatureUnchanged {
        /// Name and index of the interface.
        interface: String,
        /// Name of the feature, as in `ethtool -k`.
        feature: String,
        /// What it was asked to be.
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
    /// An answer lacks something that it must contain.
    #[error("{operation}: the kernel's answer is incomplete: {what}")]
    BadAnswer {
        /// What was tried.
        operation: &'static str,
        /// What is wrong.
        what: String,
    },

    // ---- memory ----
    /// There is no `/dev/udmabuf`, or it cannot be opened.
    #[error(
        "cannot open /dev/udmabuf: {source}; it takes a kernel with CONFIG_UDMABUF (modprobe \
         udmabuf) and the right to open the device"
    )]
    NoUdmabuf {
        /// Why the device cannot be opened.
        source: io::Error,
    },
    /// The udmabuf driver refused the size.
    #[error(
        "cannot make a udmabuf of {len} bytes: {source}; the length must be a multiple of \
         {page_size} and at most /sys/module/udmabuf/parameters/size_limit_mb"
    )]
    UdmabufRefused {
        /// Length asked for, in bytes.
        len: usize,
        /// The page size of the memory, in bytes.
        page_size: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There are not enough huge pages.
    #[error(
        "cannot get {len} bytes of 2 MiB huge pages: {source}; it takes a kernel with \
         CONFIG_HUGETLBFS and as many pages in /proc/sys/vm/nr_hugepages"
    )]
    NoHugePages {
        /// Length asked for, in bytes.
        len: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There is no such dma-heap, or it cannot be opened.
    #[error("cannot open dma-heap {heap}: {source}; see the heaps that exist: ls /dev/dma_heap")]
    NoHeap {
        /// Path of the heap.
        heap: String,
        /// Why it cannot be opened.
        source: io::Error,
    },
    /// The accelerator's node does not exist, or cannot be opened.
    #[error(
        "cannot open {}: {source}; it takes the driver (insmod ivshmem_mem.ko), a device that it \
         drives (lspci -d 1af4:1110), and the right to open the node", path.display()
    )]
    NoAccelerator {
        /// The accelerator's node.
        path: PathBuf,
        /// Why it cannot be opened.
        source: io::Error,
    },
    /// The accelerator has no free piece of this size.
    #[error(
        "{}: no {len} bytes in one piece are free, {free} bytes are in all; close dma-bufs that \
         nobody needs ({source})", path.display()
    )]
    AcceleratorFull {
        /// The accelerator's node.
        path: PathBuf,
        /// Length asked for, in bytes.
        len: usize,
        /// What is free, in bytes.
        free: u64,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The accelerator's driver refused length or alignment.
    #[error(
        "{}: cannot allocate {len} bytes aligned to {align}; the length must be a multiple of the \
         page size, the alignment a power of two ({source})", path.display()
    )]
    AcceleratorRefused {
        /// The accelerator's node.
        path: PathBuf,
        /// Length asked for, in bytes.
        len: usize,
        /// Alignment asked for, in bytes.
        align: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The exporter has no view for the CPU to offer.
    #[error(
        "the exporter of the dma-buf does not let the CPU map it; use it without a view, as a \
         DmaBuf ({source})"
    )]
    NotMappable {
        /// The kernel's answer.
        source: io::Error,
    },
    /// Page frame numbers read as zero without the capability.
    #[error(
        "/proc/self/pagemap hides page frame numbers; run with CAP_SYS_ADMIN in the initial user \
         namespace"
    )]
    PagemapHidden,
    /// A page is not in memory, so it has no physical address.
    #[error(
        "the page at offset {offset:#x} is not in memory; physical addresses exist for pinned \
         memory only"
    )]
    PageNotPresent {
        /// Offset of the page in the buffer, in bytes.
        offset: usize,
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
    /// No data, or no room, now: the socket is non-blocking or has a timeout.
    #[error("the socket has nothing to give or no room now; poll it and try again")]
    WouldBlock,
    /// Control messages and byte counts do not agree.
    #[error("the kernel's control messages do not add up: {what}")]
    BadControlMessages {
        /// What does not add up.
        what: String,
    },
    /// The kernel took fewer tokens than it was given.
    #[error(
        "the kernel took back {taken} of {given} tokens; some were returned twice or belong to \
         another socket"
    )]
    TokensNotTaken {
        /// Tokens that the kernel took back.
        taken: usize,
        /// Tokens that it was given.
        given: usize,
    },
    /// The flow leaves through another interface than the binding's.
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
    #[error("the kernel completed sends {first}..={last}, of which not all are in flight")]
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
            | Self::NoSuchInterface { refusal, .. }
            | Self::NotPrivileged { refusal, .. }
            | Self::KernelTooOld { refusal, .. }
            | Self::Unsupported { refusal, .. }
            | Self::Refused { refusal, .. }
            | Self::MixedSegment { refusal }
            | Self::SegmentUnreadable { refusal }
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
            Self::NoUdmabuf { source }
            | Self::UdmabufRefused { source, .. }
            | Self::NoHugePages { source, .. }
            | Self::NoHeap { source, .. }
            | Self::NoAccelerator { source, .. }
            | Self::AcceleratorFull { source, .. }
            | Self::AcceleratorRefused { source, .. }
            | Self::NotMappable { source }
            | Self::Io { source, .. } => source.raw_os_error(),
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
