// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory to receive into.

use std::os::fd::{AsFd, BorrowedFd};

use super::abi::Target;
use crate::dmabuf;
use crate::error::MemoryError;
use crate::user_memory::UserMemory;

/// What a queue receives into. The kernel keeps the memory for itself, whatever becomes of the
/// value.
#[derive(Debug, Clone, Copy)]
pub enum Area<'a> {
    /// Ordinary memory, all of it.
    User(&'a UserMemory),
    /// A dma-buf of any exporter, all of it: the kernel takes no part of one.
    DmaBuf(BorrowedFd<'a>),
}

impl<'a> Area<'a> {
    /// A dma-buf.
    pub fn dmabuf(dmabuf: &'a impl AsFd) -> Self {
        Self::DmaBuf(dmabuf.as_fd())
    }

    pub(super) fn target(self) -> Result<Target<'a>, MemoryError> {
        match self {
            Self::User(memory) => Ok(Target::User(memory.region())),
            Self::DmaBuf(fd) => {
                dmabuf::check(fd)?;
                let len = dmabuf::len_of(fd)?;
                Ok(Target::DmaBuf { fd, len })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_that_is_no_dma_buf_is_refused() {
        let file = std::fs::File::open("/proc/self/status").expect("a file");
        let target = Area::dmabuf(&file).target();
        assert!(
            matches!(target, Err(MemoryError::NotADmaBuf { .. })),
            "got {target:?}"
        );
    }
}
