// SPDX-License-Identifier: MIT OR Apache-2.0

//! The memory that io_uring zero-copy receive receives into.

use anyhow::{Result, bail};
use devmem_tcp::{
    MemoryError,
    pagemap::PhysicalRange,
    udmabuf::Backing,
    zcrx::{Area, UserMemory},
};
use protocol::ZcrxMemory;

use super::memory::{self, Closable};

/// The memory of an area.
pub(super) enum AreaMemory {
    User(UserMemory),
    DmaBuf(Closable),
}

impl AreaMemory {
    /// `bytes` of memory; for buffers larger than a page if `large`.
    pub(super) fn create(from: ZcrxMemory, bytes: u64, large: bool) -> Result<Self> {
        Ok(match from {
            ZcrxMemory::User => {
                let backing = if large {
                    Backing::HugePages2M
                } else {
                    Backing::BasePages
                };
                Self::User(UserMemory::create_with(memory::length(bytes)?, backing)?)
            }
            ZcrxMemory::DmaBuf(from) => Self::DmaBuf(memory::allocate(from, bytes)?.into()),
        })
    }

    /// Registers all of it.
    pub(super) fn register<T>(&self, with: impl FnOnce(Area<'_>) -> Result<T>) -> Result<T> {
        match self {
            Self::User(memory) => with(Area::User(memory)),
            Self::DmaBuf(memory) => memory.with(|dmabuf| with(Area::dmabuf(dmabuf))),
        }
    }

    /// Closes the dma-buf.
    pub(super) fn close(&self) -> Result<()> {
        match self {
            Self::User(_) => bail!("the area is no dma-buf"),
            Self::DmaBuf(memory) => memory.close(),
        }
    }

    /// Copies bytes out.
    pub(super) fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        match self {
            Self::User(memory) => memory.read_at(offset, bytes),
            Self::DmaBuf(memory) => memory.view().read_at(offset, bytes),
        }
    }

    /// Its physical address ranges.
    pub(super) fn physical_ranges(&self) -> Result<Vec<PhysicalRange>, MemoryError> {
        match self {
            Self::User(memory) => memory.physical_ranges(),
            Self::DmaBuf(memory) => memory.view().physical_ranges(),
        }
    }
}
