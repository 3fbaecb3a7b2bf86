// SPDX-License-Identifier: MIT OR Apache-2.0

//! The dma-bufs of jobs: where their memory comes from, and where it is.

use std::sync::Mutex;

use anyhow::{Context, Result};
use devmem::{
    Error, MemoryError,
    accelerator::Accelerator,
    dmabuf::DmaBuf,
    heap,
    memory::{Memory, View},
    pagemap, udmabuf,
};
use protocol::{Event, JobId, memory::PhysicalRange};

use crate::{lock::lock, outbox::send_event};

/// Alignment of an accelerator's memory in bytes: the largest receive buffer that may be requested
/// of a NIC.
const ALIGNMENT: usize = 64 << 10;

/// Creates a dma-buf.
pub(crate) fn allocate(from: protocol::Memory, bytes: u64) -> Result<Memory> {
    let bytes = length(bytes)?;
    Ok(match from {
        protocol::Memory::Udmabuf => udmabuf::create(bytes)?,
        protocol::Memory::SystemHeap => Memory::map(heap::allocate("system", bytes)?)?,
        protocol::Memory::Accelerator { device } => {
            Accelerator::open(device)?.allocate_aligned(bytes, ALIGNMENT)?
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
    pieces: devmem::Result<Vec<pagemap::PhysicalRange>>,
) -> Result<()> {
    let pieces = match pieces {
        Err(Error::Memory(MemoryError::PageNotPresent { .. })) => return Ok(()),
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
