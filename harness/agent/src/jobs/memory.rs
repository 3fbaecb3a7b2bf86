// SPDX-License-Identifier: MIT OR Apache-2.0

//! The dma-bufs of jobs: where their memory comes from, and where it is.

use std::sync::Mutex;

use anyhow::{Context, Result};
use devmem_tcp::{
    MemoryError,
    dmabuf::DmaBuf,
    heap::Heap,
    memory::{Exporter, Memory, View},
    pagemap,
    udmabuf::Udmabuf,
};
use ivshmem_mem::Accelerator;
use protocol::{Event, JobId, memory::PhysicalRange};

use crate::{lock::lock, outbox::send_event};

/// Alignment of memory in bytes: the largest receive buffer that may be requested
/// of a NIC.
const ALIGNMENT: usize = 64 << 10;

/// Creates a dma-buf.
pub(crate) fn allocate(from: protocol::Memory, bytes: u64) -> Result<Memory> {
    let bytes = length(bytes)?;
    Ok(match from {
        protocol::Memory::Udmabuf => Udmabuf::new().create(bytes)?,
        protocol::Memory::SystemHeap => Heap::open("system")?.allocate(bytes, ALIGNMENT)?,
        protocol::Memory::Accelerator { device } => {
            Accelerator::open(device)?.allocate(bytes, ALIGNMENT)?
        }
    })
}

/// A dma-buf that can be closed while its memory is in use.
pub(super) struct Closable {
    dmabuf: Mutex<Option<DmaBuf>>,
    view: View,
}

impl From<Memory> for Closable {
    fn from(memory: Memory) -> Self {
        let (dmabuf, view) = memory.into_parts();
        let dmabuf = Mutex::new(Some(dmabuf));
        Self { dmabuf, view }
    }
}

impl Closable {
    /// Closes the dma-buf.
    pub(super) fn close(&self) -> Result<()> {
        let closed = lock(&self.dmabuf).take();
        closed.map(drop).context("the dma-buf was closed before")
    }

    /// Does something with the dma-buf.
    pub(super) fn with<T>(&self, with: impl FnOnce(&DmaBuf) -> Result<T>) -> Result<T> {
        with(
            lock(&self.dmabuf)
                .as_ref()
                .context("the dma-buf was closed")?,
        )
    }

    /// The memory, which stays mapped as long as this lives.
    pub(super) fn view(&self) -> &View {
        &self.view
    }
}

/// A length as a `usize`.
pub(super) fn length(bytes: u64) -> Result<usize> {
    bytes
        .try_into()
        .context("the memory is larger than the address space")
}

/// Reports to the host where a dma-buf is, if its exporter reveals that.
pub(super) fn report_place(job: JobId, dmabuf: &Memory) -> Result<()> {
    report_ranges(job, dmabuf.physical_ranges())
}

/// Reports to the host where memory is, if that is known.
pub(super) fn report_ranges(
    job: JobId,
    pieces: Result<Vec<pagemap::PhysicalRange>, MemoryError>,
) -> Result<()> {
    let pieces = match pieces {
        Err(MemoryError::PageNotPresent { .. }) => return Ok(()),
        pieces => pieces?,
    };
    let ranges = pieces
        .into_iter()
        .map(|range| PhysicalRange {
            offset: range.offset,
            address: range.address,
            len: range.len,
        })
        .collect();
    send_event(job, Event::DmaBuf { ranges });
    Ok(())
}
