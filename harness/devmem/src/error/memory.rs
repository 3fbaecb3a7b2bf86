// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of allocating memory, mapping it, and finding its physical addresses.

use std::io;
use std::path::PathBuf;

/// Why memory cannot be allocated, mapped or looked up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
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
    /// The accelerator has no contiguous free memory of this size.
    #[error(
        "{}: {len} contiguous bytes are not free, of {free} free bytes; close unused dma-bufs \
         ({source})", path.display()
    )]
    AcceleratorFull {
        /// The accelerator's node.
        path: PathBuf,
        /// Length asked for, in bytes.
        len: usize,
        /// Free memory, in bytes.
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
    /// The file descriptor is of another kind.
    #[error("file descriptor {fd} is not a dma-buf; pass one that an exporter returned")]
    NotADmaBuf {
        /// The file descriptor.
        fd: i32,
    },
    /// The exporter does not support mmap.
    #[error(
        "the exporter of the dma-buf does not let the CPU map it; use it without a mapping, as a \
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
}

impl MemoryError {
    /// The errno behind the error, positive, if a system call gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::NoUdmabuf { source, .. }
            | Self::UdmabufRefused { source, .. }
            | Self::NoHugePages { source, .. }
            | Self::NoHeap { source, .. }
            | Self::NoAccelerator { source, .. }
            | Self::AcceleratorFull { source, .. }
            | Self::AcceleratorRefused { source, .. }
            | Self::NotMappable { source, .. } => source.raw_os_error(),
            Self::NotADmaBuf { .. } | Self::PagemapHidden | Self::PageNotPresent { .. } => None,
        }
    }
}
