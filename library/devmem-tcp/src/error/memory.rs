// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of allocating memory, mapping it, and finding its physical addresses.

use std::io;

use super::{OutOfRange, SystemCall};

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
    /// The exporter does not align memory so.
    #[error("{exporter} aligns memory to {offered} bytes, not to {wanted}")]
    Unaligned {
        /// What exports it.
        exporter: &'static str,
        /// The alignment that was asked for, in bytes.
        wanted: usize,
        /// The largest that it has, in bytes.
        offered: usize,
    },
    /// The range is not inside the memory.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// A system call failed.
    #[error(transparent)]
    SystemCall(#[from] SystemCall),
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
            | Self::NotMappable { source, .. } => source.raw_os_error(),
            Self::SystemCall(error) => error.errno(),
            _ => None,
        }
    }

    pub(crate) fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        SystemCall::new(operation, source).into()
    }
}
