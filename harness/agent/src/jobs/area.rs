// SPDX-License-Identifier: MIT OR Apache-2.0

//! The memory that io_uring zero-copy receive receives into.

use anyhow::{Result, bail};
use devmem_tcp::{
    BindError, MemoryError,
    interface::Interface,
    pagemap::PhysicalRange,
    udmabuf::Backing,
    zcrx::{Area, InterfaceQueue, UserMemory},
};
use protocol::{JobId, Ns, ZcrxMemory};

use super::memory::{self, Closable};
use crate::netns;

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

    /// Registers all of it with an interface of a namespace, and reports to the host where it is.
    pub(super) fn register(
        &self,
        id: JobId,
        (ns, interface): (Ns, &str),
        with: impl FnOnce(Interface, Area<'_>) -> Result<InterfaceQueue, BindError> + Send,
    ) -> Result<InterfaceQueue> {
        let queue = netns::within(ns, || {
            let interface = Interface::by_name(interface)?;
            match self {
                Self::User(memory) => Ok(with(interface, Area::User(memory))?),
                Self::DmaBuf(memory) => {
                    memory.with(|dmabuf| Ok(with(interface, Area::dmabuf(dmabuf))?))
                }
            }
        })?;
        memory::report_ranges(id, self.physical_ranges())?;
        Ok(queue)
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
    fn physical_ranges(&self) -> Result<Vec<PhysicalRange>, MemoryError> {
        match self {
            Self::User(memory) => memory.physical_ranges(),
            Self::DmaBuf(memory) => memory.view().physical_ranges(),
        }
    }
}
