// SPDX-License-Identifier: MIT OR Apache-2.0

//! What can go wrong.

use std::{io, path::PathBuf};

use engine::descriptor::Completion;

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine's node does not exist, or can't be opened.
    #[error(
        "can't open {}: {source}; it takes the driver (insmod copy_engine.ko), a device that it drives \
         (lspci -d 1af4:10fe), the right to open the node, and a work queue that is free (EBUSY)",
        path.display()
    )]
    NoEngine {
        /// The engine's node.
        path: PathBuf,
        /// Why it can't be opened.
        source: io::Error,
    },
    /// The engine can't reach memory.
    #[error(
        "the engine can't reach a dma-buf: {source}; it must be in one piece (EOPNOTSUPP), on a \
         peer-to-peer path from the engine (EXDEV), and one of 16 at most (ENOSPC)"
    )]
    Import {
        /// The kernel's answer.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A descriptor takes no more fragments.
    #[error("{count} fragments are more than the {} of a descriptor", crate::LIST)]
    TooManyFragments {
        /// How many there are.
        count: usize,
    },
    /// The layout of fragments has no room for an offset.
    #[error("a fragment at {offset:#x} of a dma-buf is beyond the first 4 GiB")]
    Far {
        /// The offset in bytes.
        offset: u64,
    },
    /// The ring is full: wait for a completion.
    #[error("all {} descriptors are in use; wait for one of them", crate::SLOTS)]
    Full,
    /// The memory for the ring is too small.
    #[error(
        "{len} bytes are too few for the ring: it takes {}",
        crate::CONTROL_BYTES
    )]
    Small {
        /// Its length in bytes.
        len: usize,
    },
    /// The engine has completed a descriptor with an error, or not at all.
    #[error("the engine completed a descriptor with {completion:?}")]
    Failed {
        /// What it says; `None` if the descriptor is not completed.
        completion: Option<Completion>,
    },
    /// Memory can't be read or written.
    #[error(transparent)]
    Memory(#[from] devmem_tcp::MemoryError),
}

impl Error {
    /// The errno behind the error, positive, if a system call gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::NoEngine { source, .. } | Self::Import { source } | Self::Io { source, .. } => {
                source.raw_os_error()
            }
            Self::Memory(error) => error.errno(),
            _ => None,
        }
    }
}
