// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where payload goes, or comes from.

use std::os::fd::BorrowedFd;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use devmem_tcp::dmabuf::DmaBuf;
use devmem_tcp::heap::Heap;
use devmem_tcp::memory::{Exporter, Memory};
use devmem_tcp::udmabuf::{Backing, Udmabuf};
use devmem_tcp::zcrx::{Area, UserMemory};
use devmem_tcp::{MemoryError, memory::ReadAt};

use crate::size;

/// What exports the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum From {
    Ram,
    Udmabuf,
    HugeUdmabuf,
    Heap(String),
    Fd(i32),
    #[cfg(feature = "ivshmem")]
    Accelerator(u32),
}

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "ram" => Ok(Self::Ram),
            None if text == "udmabuf" => Ok(Self::Udmabuf),
            Some(("udmabuf", "2M")) => Ok(Self::HugeUdmabuf),
            Some(("heap", name)) if !name.is_empty() => Ok(Self::Heap(name.to_owned())),
            Some(("fd", fd)) if fd.parse::<u16>().is_ok() => {
                Ok(Self::Fd(fd.parse().unwrap_or_default()))
            }
            #[cfg(feature = "ivshmem")]
            Some(("accelerator", number)) if number.parse::<u32>().is_ok() => {
                Ok(Self::Accelerator(number.parse().unwrap_or_default()))
            }
            _ => Err(format!(
                "\"{text}\" is none of ram, udmabuf, udmabuf:2M (huge pages), heap:NAME, fd:NUMBER (a dma-buf that \
                 this process inherited){}",
                if cfg!(feature = "ivshmem") {
                    ", accelerator:NUMBER"
                } else {
                    ""
                }
            )),
        }
    }
}

/// Which memory, and how much.
#[derive(Debug, Args)]
pub(crate) struct Choice {
    /// Memory: ram (no dma-buf, for ordinary and zcrx modes), udmabuf, udmabuf:2M (of huge pages), heap:NAME, fd:NUMBER
    /// (an inherited dma-buf), accelerator:NUMBER
    #[arg(long, default_value = "udmabuf", value_name = "FROM")]
    memory: From,
    /// How much of it, in all
    #[arg(long, default_value = "64M", value_parser = size::parse, value_name = "BYTES")]
    size: u64,
}

impl Choice {
    /// Allocates it, in pieces aligned to `align` bytes; `parts` of the same size. `cpu` says whether this process
    /// reads or writes it: an exporter may not let it.
    pub(crate) fn allocate(&self, align: u32, parts: u32, cpu: bool) -> Result<Vec<Target>> {
        let page = rustix::param::page_size();
        let align = (align as usize).max(page);
        let len = usize::try_from(self.size / u64::from(parts))? / align * align;
        ensure!(
            len > 0,
            "{} bytes of memory are too few for {parts} parts that are multiples of {align}",
            self.size
        );
        ensure!(
            parts == 1 || !matches!(self.memory, From::Fd(_)),
            "a dma-buf that is given is not divided: take one flow"
        );
        (0..parts).map(|_| self.one(len, align, cpu)).collect()
    }

    fn one(&self, len: usize, align: usize, cpu: bool) -> Result<Target> {
        Ok(Target::DmaBuf(match &self.memory {
            From::Ram => return Ok(Target::Ram(UserMemory::create(len)?)),
            From::Udmabuf => Udmabuf::new().allocate(len, align)?,
            From::HugeUdmabuf => {
                let len = len.next_multiple_of(2 << 20);
                Udmabuf::backed_by(Backing::HugePages2M).allocate(len, align)?
            }
            From::Heap(name) => Heap::open(name)?.allocate(len, align)?,
            From::Fd(fd) => {
                // SAFETY: the descriptor is only borrowed to duplicate it; that fails if it isn't open.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                let own = fd.try_clone_to_owned();
                let own = own.context("the descriptor given by --memory is not open")?;
                let dmabuf = DmaBuf::from_fd(own)?;
                if !cpu {
                    return Ok(Target::Unmapped(dmabuf));
                }
                Memory::map(dmabuf)?
            }
            #[cfg(feature = "ivshmem")]
            From::Accelerator(number) => {
                let align = align.max(rustix::param::page_size());
                ivshmem_mem::Accelerator::open(*number)?.allocate(len, align)?
            }
        }))
    }
}

/// What payload is received into, or sent from.
pub(crate) enum Target {
    DmaBuf(Memory),
    /// Which this process neither reads nor writes.
    Unmapped(DmaBuf),
    Ram(UserMemory),
}

impl Target {
    /// The dma-buf, for what takes one.
    pub(crate) fn dmabuf(&self) -> Result<&DmaBuf> {
        match self {
            Self::DmaBuf(memory) => Ok(memory.dmabuf()),
            Self::Unmapped(dmabuf) => Ok(dmabuf),
            Self::Ram(_) => {
                bail!("this mode takes a dma-buf: --memory udmabuf, for one of ordinary memory")
            }
        }
    }

    /// It as an area of io_uring.
    pub(crate) fn area(&self) -> Area<'_> {
        match self {
            Self::DmaBuf(memory) => Area::dmabuf(memory),
            Self::Unmapped(dmabuf) => Area::dmabuf(dmabuf),
            Self::Ram(memory) => Area::User(memory),
        }
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::DmaBuf(memory) => memory.len(),
            Self::Unmapped(dmabuf) => dmabuf.len(),
            Self::Ram(memory) => memory.len(),
        }
    }

    pub(crate) fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        match self {
            Self::DmaBuf(memory) => memory.write_at(offset, bytes),
            Self::Unmapped(_) => Err(unmapped()),
            Self::Ram(memory) => memory.write_at(offset, bytes),
        }
    }
}

fn unmapped() -> MemoryError {
    let source = std::io::ErrorKind::Unsupported.into();
    MemoryError::NotMappable { source }
}

impl ReadAt for Target {
    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), MemoryError> {
        match self {
            Self::DmaBuf(memory) => memory.read_at(offset, bytes),
            Self::Unmapped(_) => Err(unmapped()),
            Self::Ram(memory) => memory.read_at(offset, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_named_by_what_exports_it() {
        assert_eq!("ram".parse(), Ok(From::Ram));
        assert_eq!("udmabuf".parse(), Ok(From::Udmabuf));
        assert_eq!("udmabuf:2M".parse(), Ok(From::HugeUdmabuf));
        assert_eq!("heap:system".parse(), Ok(From::Heap("system".to_owned())));
        assert_eq!("fd:7".parse(), Ok(From::Fd(7)));
        for wrong in ["", "gpu", "heap:", "fd:x", "fd:-1", "accelerator:"] {
            let error = wrong.parse::<From>().expect_err(wrong);
            assert!(error.contains("heap:NAME"), "{error}");
        }
    }
}
