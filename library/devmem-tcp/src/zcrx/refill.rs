// SPDX-License-Identifier: MIT OR Apache-2.0

//! The refill ring: how buffers go back to the NIC without a system call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use io_uring::types::io_uring_zcrx_rqe;
use rustix::param::page_size;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, MmapRegion};

use super::abi::Offsets;
use super::fragment::{Fragment, Identity};
use super::starved::Waker;
use crate::error::{BindError, RequestError, ZcrxError};

/// Bytes of an entry.
const ENTRY: usize = size_of::<io_uring_zcrx_rqe>();

/// Most entries of a ring (`IO_RQ_MAX_ENTRIES` in io_uring/zcrx.c).
pub(super) const MAX_ENTRIES: u32 = 32768;

/// Recycles fragments, from any one thread, without a system call (but to wake a receiver that has no device and
/// waits for them).
#[derive(Debug)]
pub struct Refill {
    region: Region,
    queue: Identity,
    /// Where the consumer's and the producer's position and the entries are in the region.
    head: usize,
    tail: usize,
    entries: usize,
    mask: u32,
    /// The producer's position.
    position: u32,
    /// Recycled, but the ring had no room.
    waiting: VecDeque<(u64, u32)>,
    /// Without a device: who waits for what is recycled.
    waker: Option<Arc<Waker>>,
}

impl Refill {
    pub(super) fn new(region: Region, offsets: Offsets, queue: Identity) -> Self {
        Self {
            queue,
            head: offsets.head as usize,
            tail: offsets.tail as usize,
            entries: offsets.entries as usize,
            mask: region.entries - 1,
            position: 0,
            waiting: VecDeque::new(),
            waker: None,
            region,
        }
    }

    /// Has what is recycled wake the receiver.
    pub(super) fn set_waker(&mut self, waker: Arc<Waker>) {
        self.waker = Some(waker);
    }

    /// Recycles fragments: the NIC can use the memory again. Fragments that the ring has no room for wait
    /// for the next call, which may pass none: there is room again when the NIC's driver has taken some
    /// from the ring, or after [`super::Queue::flush`].
    ///
    /// # Errors
    ///
    /// [`ZcrxError::FragmentsElsewhere`] if some came from another queue, [`ZcrxError::BrokenRefillRing`] if the
    /// kernel's offsets lead out of the ring.
    pub fn recycle(
        &mut self,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<(), ZcrxError> {
        let memory = self.region.memory.as_volatile_slice();
        let broken = |_| ZcrxError::BrokenRefillRing;
        let head: u32 = memory.load(self.head, Ordering::Acquire).map_err(broken)?;
        let mut room = (self.mask + 1).saturating_sub(self.position.wrapping_sub(head));
        let mut put = |(offset, len): (u64, u32)| -> Result<(), ZcrxError> {
            let entry = self.entries + (self.position & self.mask) as usize * ENTRY;
            // `off`, `len` and the padding, which must be zero, of `struct io_uring_zcrx_rqe`.
            // The kernel reads them after the tail, so that they need not be atomic, which costs more.
            memory.get_ref(entry).map_err(broken)?.store(offset);
            memory.get_ref(entry + 8).map_err(broken)?.store(len);
            memory.get_ref(entry + 12).map_err(broken)?.store(0u32);
            self.position = self.position.wrapping_add(1);
            Ok(())
        };
        while room > 0 {
            let Some(entry) = self.waiting.pop_front() else {
                break;
            };
            put(entry)?;
            room -= 1;
        }
        let mut foreign = 0;
        for fragment in fragments {
            if !fragment.is_of(self.queue) {
                foreign += 1;
            } else if room > 0 {
                put(fragment.into_entry())?;
                room -= 1;
            } else {
                self.waiting.push_back(fragment.into_entry());
            }
        }
        memory
            .store(self.position, self.tail, Ordering::Release)
            .map_err(broken)?;
        if let Some(waker) = &self.waker {
            waker.wake();
        }
        match foreign {
            0 => Ok(()),
            count => Err(ZcrxError::FragmentsElsewhere { count }),
        }
    }

    /// How many recycled fragments the ring had no room for.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
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
    pub(super) fn create(entries: u32) -> Result<Self, BindError> {
        let entries = entries.clamp(1, MAX_ENTRIES).next_power_of_two();
        // A page is more than the ring's header takes (struct zcrx_rq_hdr in io_uring/zcrx.h).
        let len = page_size() + entries as usize * ENTRY + STATS;
        let memory = MmapRegion::new(len.next_multiple_of(page_size()))
            .map_err(|error| RequestError::io("map a refill ring", std::io::Error::other(error)))?;
        Ok(Self {
            memory: Arc::new(memory),
            entries,
        })
    }

    /// Where the counters are.
    pub(super) fn stats_offset(&self) -> usize {
        self.memory.size() - STATS
    }

    /// `struct zcrx_stats`.
    pub(super) fn copied(&self) -> Copied {
        let memory = self.memory.as_volatile_slice();
        // The offsets are inside, and aligned.
        let at = |offset| memory.load(self.stats_offset() + offset, Ordering::Relaxed);
        Copied {
            count: at(0).unwrap_or_default(),
            bytes: at(8).unwrap_or_default(),
        }
    }

    /// Whether there are entries that the kernel has not taken.
    pub(super) fn is_filled(&self, offsets: Offsets) -> bool {
        let memory = self.memory.as_volatile_slice();
        let at = |offset| memory.load::<u32>(offset as usize, Ordering::Acquire).ok();
        at(offsets.head) != at(offsets.tail)
    }
}

/// What the kernel copied into an area (`struct zcrx_stats`): of skbs' fragments only, as it does not count bytes in
/// their linear part (`io_zcrx_recv_skb` in io_uring/zcrx.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Fragments that were copied.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u64 = 3 << 48;

    fn refill(entries: u32) -> Refill {
        let mut offsets = Offsets::default();
        (offsets.head, offsets.tail, offsets.entries) = (0, 64, 128);
        let region = Region::create(entries).expect("memory");
        Refill::new(region, offsets, Identity::new())
    }

    fn fragments(refill: &Refill, count: u64) -> Vec<Fragment> {
        let fragment = |n| Fragment::from_completion(TOKEN | (n * 4096), 100, refill.queue);
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
    fn fragments_arrive_in_order_with_their_areas_number_across_the_rings_end() {
        let mut refill = refill(8);
        for round in 0..5 {
            let own = fragments(&refill, 5);
            refill.recycle(own).expect("inside");
            let expected: Vec<_> = (0..5).map(|n| (TOKEN | (n * 4096), 100)).collect();
            assert_eq!(consume(&refill), expected, "round {round}");
        }
    }

    #[test]
    fn what_a_full_ring_has_no_room_for_waits_and_goes_first() {
        let mut refill = refill(4);
        let own = fragments(&refill, 6);
        refill.recycle(own).expect("inside");
        assert_eq!(refill.waiting(), 2);
        let own = fragments(&refill, 1);
        refill.recycle(own).expect("inside");
        assert_eq!(refill.waiting(), 3);
        assert_eq!(consume(&refill).len(), 4);
        refill.recycle([]).expect("inside");
        assert_eq!(refill.waiting(), 0);
        let places: Vec<_> = consume(&refill)
            .iter()
            .map(|(at, _)| at & 0xffff_ffff)
            .collect();
        assert_eq!(places, [4 * 4096, 5 * 4096, 0]);
    }

    #[test]
    fn a_fragment_of_another_queue_is_refused_and_those_beside_it_are_recycled() {
        let (mut refill, other) = (refill(4), refill(4));
        let mut mixed = fragments(&refill, 6);
        mixed.insert(1, fragments(&other, 1).remove(0));
        let error = refill.recycle(mixed).expect_err("one is not ours");
        assert!(
            matches!(error, ZcrxError::FragmentsElsewhere { count: 1 }),
            "{error:?}"
        );
        assert_eq!((consume(&refill).len(), refill.waiting()), (4, 2));
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
        let own = fragments(&refill, 3);
        refill.recycle(own).expect("inside");
        assert_eq!(consume(&refill).len(), 3);
        assert_eq!(refill.position, 1);
    }
}
