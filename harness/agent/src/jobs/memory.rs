// SPDX-License-Identifier: MIT OR Apache-2.0

//! The dma-bufs of jobs: where their memory comes from, and where it is.

use anyhow::{Context, Result};
use devmem::{Error, accelerator::Accelerator, heap, memory::Memory, udmabuf};
use protocol::{Event, JobId, job::PhysicalRange};

use crate::control::send_event;

/// Alignment of an accelerator's memory in bytes: that of the largest receive buffer that a NIC may
/// be asked for.
const ALIGNMENT: usize = 64 << 10;

/// Makes a dma-buf.
pub(super) fn allocate(from: protocol::Memory, bytes: u64) -> Result<Memory> {
    let bytes = bytes
        .try_into()
        .context("the dma-buf is larger than the address space")?;
    Ok(match from {
        protocol::Memory::Udmabuf => udmabuf::create(bytes)?,
        protocol::Memory::SystemHeap => Memory::map(heap::allocate("system", bytes)?)?,
        protocol::Memory::Accelerator { device } => {
            Accelerator::open(device)?.allocate_aligned(bytes, ALIGNMENT)?
        }
    })
}

/// Tells the host where a dma-buf lies, if its exporter lets one know.
pub(super) fn report_place(job: JobId, dmabuf: &Memory) -> Result<()> {
    let pieces = match dmabuf.physical_ranges() {
        Err(Error::PageNotPresent { .. }) => return Ok(()),
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
