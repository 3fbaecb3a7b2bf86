// SPDX-License-Identifier: MIT OR Apache-2.0

//! The refill ring: how buffers go back to the NIC without a system call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use io_uring::types::{IORING_ZCRX_AREA_MASK, io_uring_zcrx_rqe};
use rustix::param::page_size;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, MmapRegion};

use super::abi::Registration;
use crate::error::{Error, Result};

/// Bytes of an entry.
const ENTRY: usize = size_of::<io_uring_zcrx_rqe>();

/// Most entries of a ring (`IO_RQ_MAX_ENTRIES` in io_uring/zcrx.c).
pub(super) const MAX_ENTRIES: u32 = 32768;

/// A piece of the area that holds payload. It belongs to the reader until it is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Where it starts in the area, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
}

impl Fragment {
    /// A fragment as a completion tells it: `struct io_uring_zcrx_cqe::off` and the result.
    pub(super) fn from_completion(offset: u64, len: u32) -> Self {
        Self {
            offset: offset & !IORING_ZCRX_AREA_MASK,
            len,
        }
    }
}

/// Gives fragments back to the NIC, from any one thread.
#[derive(Debug)]
pub struct Refill {
    region: Region,
    /// Where the consumer's and the producer's position and the entries are in the region.
    head: usize,
    tail: usize,
    entries: usize,
    mask: u32,
    area_token: u64,
    /// The producer's position.
    position: u32,
}

impl Refill {
    pub(super) fn new(region: Region, registration: &Registration) -> Self {
        let offsets = registration.offsets;
        Self {
            head: offsets.head as usize,
            tail: offsets.tail as usize,
            entries: offsets.entries as usize,
            mask: region.entries - 1,
            area_token: registration.area_token,
            position: 0,
            region,
        }
    }

    /// Gives fragments back, each once. Returns how many the ring had room for, which is all of
    /// them unless the NIC's driver has not looked into the ring for long;
    /// [`super::Receiver::flush`] makes room.
    ///
    /// # Errors
    ///
    /// [`Error::BadAnswer`] if the kernel's offsets lead out of the ring.
    pub fn return_fragments(&mut self, fragments: &[Fragment]) -> Result<usize> {
        let memory = self.region.memory.as_volatile_slice();
        let broken = |_| Error::BadAnswer {
            operation: "return buffers through the refill ring",
            what: "its offsets leave the ring".to_owned(),
        };
        let head: u32 = memory.load(self.head, Ordering::Acquire).map_err(broken)?;
        let room = (self.mask + 1).saturating_sub(self.position.wrapping_sub(head));
        let count = fragments.len().min(room as usize);
        for fragment in &fragments[..count] {
            let entry = self.entries + (self.position & self.mask) as usize * ENTRY;
            // `off`, `len` and the padding, which must be zero, of `struct io_uring_zcrx_rqe`.
            let offset = fragment.offset | self.area_token;
            // The kernel reads them after the tail, so that they need not be atomic, which costs more.
            memory.get_ref(entry).map_err(broken)?.store(offset);
            memory
                .get_ref(entry + 8)
                .map_err(broken)?
                .store(fragment.len);
            memory.get_ref(entry + 12).map_err(broken)?.store(0u32);
            self.position = self.position.wrapping_add(1);
        }
        memory
            .store(self.position, self.tail, Ordering::Release)
            .map_err(broken)?;
        Ok(count)
    }
}

/// Memory that the kernel and this process share: the refill ring, and counters behind it. The
/// kernel keeps it as long as it needs it, and so does each value that reads or writes it.
#[derive(Debug, Clone)]
pub(super) struct Region {
    pub(super) memory: Arc<MmapRegion>,
    pub(super) entries: u32,
}

/// Bytes kept for `struct zcrx_stats` at the end of the region.
const STATS: usize = 64;

impl Region {
    /// A region for a ring of at least `entries` entries.
    pub(super) fn create(entries: u32) -> Result<Self> {
        let entries = entries.clamp(1, MAX_ENTRIES).next_power_of_two();
        // A page is more than the ring's header takes (struct zcrx_rq_hdr in io_uring/zcrx.h).
        let len = page_size() + entries as usize * ENTRY + STATS;
        let memory = MmapRegion::new(len.next_multiple_of(page_size()))
            .map_err(|error| Error::io("map a refill ring", std::io::Error::other(error)))?;
        Ok(Self {
            memory: Arc::new(memory),
            entries,
        })
    }

    /// Where the counters are.
    pub(super) fn stats_offset(&self) -> usize {
        self.memory.size() - STATS
    }

    /// `struct zcrx_stats::copy_bytes`.
    pub(super) fn copied_bytes(&self) -> u64 {
        let memory = self.memory.as_volatile_slice();
        // The offset is inside, and aligned.
        let count = memory.load(self.stats_offset() + 8, Ordering::Relaxed);
        count.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zcrx::abi::Offsets;

    const TOKEN: u64 = 3 << 48;

    fn refill(entries: u32) -> Refill {
        let mut offsets = Offsets::default();
        (offsets.head, offsets.tail, offsets.entries) = (0, 64, 128);
        let registration = Registration {
            id: 0,
            offsets,
            rx_buf_len: 4096,
            area_token: TOKEN,
        };
        Refill::new(Region::create(entries).expect("memory"), &registration)
    }

    fn fragments(count: u64) -> Vec<Fragment> {
        let fragment = |n| Fragment {
            offset: n * 4096,
            len: 100,
        };
        (0..count).map(fragment).collect()
    }

    /// Takes what the kernel would take: offsets and lengths.
    fn consume(refill: &Refill) -> Vec<(u64, u32)> {
        let memory = refill.region.memory.as_volatile_slice();
        let head: u32 = memory.load(0, Ordering::Acquire).expect("head");
        let tail: u32 = memory.load(64, Ordering::Acquire).expect("tail");
        let mut taken = Vec::new();
        let mut at = head;
        while at != tail {
            let entry = 128 + (at & refill.mask) as usize * ENTRY;
            let offset = memory.load(entry, Ordering::Relaxed).expect("off");
            let len = memory.load(entry + 8, Ordering::Relaxed).expect("len");
            taken.push((offset, len));
            at = at.wrapping_add(1);
        }
        memory.store(tail, 0, Ordering::Release).expect("head");
        taken
    }

    #[test]
    fn fragments_arrive_in_order_with_the_areas_token_across_the_rings_end() {
        let mut refill = refill(8);
        for round in 0..5 {
            let given = fragments(5);
            assert_eq!(refill.return_fragments(&given).expect("inside"), 5);
            let expected: Vec<_> = given.iter().map(|f| (f.offset | TOKEN, f.len)).collect();
            assert_eq!(consume(&refill), expected, "round {round}");
        }
    }

    #[test]
    fn a_full_ring_takes_no_more_until_the_kernel_took_some() {
        let mut refill = refill(4);
        assert_eq!(refill.return_fragments(&fragments(6)).expect("inside"), 4);
        assert_eq!(refill.return_fragments(&fragments(1)).expect("inside"), 0);
        assert_eq!(consume(&refill).len(), 4);
        assert_eq!(refill.return_fragments(&fragments(1)).expect("inside"), 1);
    }

    #[test]
    fn positions_wrap_around_at_32_bits() {
        let mut refill = refill(4);
        refill.position = u32::MAX - 1;
        let memory = refill.region.memory.clone();
        let slice = memory.as_volatile_slice();
        slice
            .store(u32::MAX - 1, 0, Ordering::Release)
            .expect("head");
        assert_eq!(refill.return_fragments(&fragments(3)).expect("inside"), 3);
        assert_eq!(consume(&refill).len(), 3);
        assert_eq!(refill.position, 1);
    }

    #[test]
    fn the_areas_number_is_not_part_of_a_fragments_offset() {
        let fragment = Fragment::from_completion(TOKEN | 0x1234, 7);
        assert_eq!((fragment.offset, fragment.len), (0x1234, 7));
    }
}
