// SPDX-License-Identifier: MIT OR Apache-2.0

//! What `server` and `client` share: memory that is named on the command line, and payload that can be verified.

use std::error::Error;
use std::os::fd::{FromRawFd, OwnedFd};

use devmem_tcp::heap::Heap;
use devmem_tcp::memory::Memory;
use devmem_tcp::udmabuf::Udmabuf;

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The words for [`memory`].
pub(crate) const MEMORY: &str = "<memory>: `udmabuf:<MiB>`, of ordinary memory; `heap:<MiB>`, of the system's dma-heap; \
or `fd:<number>`, a dma-buf of any exporter that the program was started with";

/// The dma-buf that an argument names.
pub(crate) fn memory(argument: &str) -> Result<Memory> {
    let (kind, number) = argument.split_once(':').ok_or(MEMORY)?;
    Ok(match kind {
        "udmabuf" => Udmabuf::new().create(number.parse::<usize>()? << 20)?,
        "heap" => Memory::map(Heap::open("system")?.create(number.parse::<usize>()? << 20)?)?,
        "fd" => {
            // SAFETY: the program was started with it for this, and nothing else in it takes it.
            let fd = unsafe { OwnedFd::from_raw_fd(number.parse()?) };
            Memory::from_fd(fd)?
        }
        _ => return Err(MEMORY.into()),
    })
}

/// The payload of a connection: words of 8 bytes, of which the first is the seed of the others.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    bytes: Vec<u8>,
}

impl Pattern {
    /// The bytes from `position` on.
    pub(crate) fn of(&mut self, seed: u64, position: u64, len: usize) -> &[u8] {
        let first = position / 8;
        let skip = (position % 8) as usize;
        let words = first..first + (skip + len).div_ceil(8) as u64;
        self.bytes.clear();
        self.bytes
            .extend(words.flat_map(|index| word(seed, index).to_le_bytes()));
        &self.bytes[skip..skip + len]
    }
}

/// splitmix64, but for the first.
fn word(seed: u64, index: u64) -> u64 {
    if index == 0 {
        return seed;
    }
    let mut word = (seed << 48).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
