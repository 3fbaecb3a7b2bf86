// SPDX-License-Identifier: GPL-2.0

//! RX rings whose buffers are a socket's ([`net::xdp::Pool`]).
//!
//! The pool is the NAPI's, beside the ring: it stays when the ring is replaced. A ring is empty until
//! the NAPI polls for the first time, as only its polls may take the pool's buffers.

use core::{
    cell::Cell,
    mem::ManuallyDrop, //
};

use i82576::{
    limits,
    regs::srrctl,
    ring,
    rx as descriptor, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*,
    sync::{
        barrier::{
            self,
            Full,
            Read, //
        },
        Arc, //
    }, //
};
use net::{
    descriptors::Descriptors,
    napi::Receive,
    xdp::{
        Pool,
        Program,
        TransmitFrames, //
    }, //
};

use super::{
    is_pending,
    timestamp,
    xdp::{
        apply_verdict,
        XdpMetadata, //
    },
    EnabledQueue,
    Layout,
    BATCH,
    MOST_DESCRIPTORS,
    STARVED, //
};
use crate::{
    clock,
    netdev::Adapter,
    stats::QueueStats, //
};

/// A ring that the device does not know.
pub(crate) struct XskRing {
    descriptors: Descriptors,
    layout: Layout,
    window: ring::Window,
    index: u16,
    program: Option<Program>,
}

impl XskRing {
    /// Allocates the ring of RX queue `index`, which runs `program`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(
        parent: &Device<Bound>,
        layout: Layout,
        index: u16,
        program: Option<&Program>,
    ) -> Result<Self> {
        let len = layout.len;

        Ok(Self {
            descriptors: Descriptors::new(parent, u32::from(len.len()))?,
            layout,
            window: ring::Window::new(len),
            index,
            program: program.cloned(),
        })
    }

    /// The queue's SRRCTL. A buffer may be smaller than this says: the longest frame is not
    /// (`Hw::set_max_frame`).
    fn srrctl(&self) -> u32 {
        srrctl::encode(
            self.layout.head / limits::PAYLOAD_BUFFER_UNIT,
            0,
            srrctl::DescType::OneBuffer,
            true,
        )
    }

    /// Posts buffers for all descriptors that the driver has. Returns how many.
    fn fill(&mut self, pool: &Pool) -> u16 {
        let mut filled = 0;

        for _ in 0..self.window.unposted() {
            let slot = u32::from(self.window.tail());
            let Some(address) = pool.alloc(slot) else {
                break;
            };

            self.descriptors
                .write(slot, descriptor::rx_read(address, 0));
            self.window.post(1);
            filled += 1;
        }
        filled
    }
}

/// A ring that the device fills. As for [`Running`](super::Running), it is only freed when it is
/// stopped.
pub(crate) struct XskRunning<'bound> {
    queue: EnabledQueue<'bound>,
    ring: ManuallyDrop<XskRing>,
    stats: Arc<QueueStats>,
    clock: Option<Arc<clock::Registration<'bound>>>,
    /// The last descriptor did not end its packet, which is dropped.
    dropping: bool,
    /// Frames wait for the TX ring's doorbell.
    unflushed: Cell<bool>,
}

impl<'bound> XskRunning<'bound> {
    /// Hands `ring` to the device.
    ///
    /// # Errors
    ///
    /// The device did not start the queue: returns the ring.
    pub(super) fn start(
        mut ring: XskRing,
        adapter: &Adapter<'bound>,
        stats: Arc<QueueStats>,
    ) -> core::result::Result<Self, (Error, XskRing)> {
        ring.window.rewind();
        let hw = adapter.hw.clone();
        let index = ring.index;
        let (address, bytes) = (ring.descriptors.dma_address(), ring.window.ring().bytes());

        if let Err(error) = hw.enable_rx(index, address, bytes, ring.srrctl()) {
            return Err((error, ring));
        }
        Ok(Self {
            queue: EnabledQueue {
                hw,
                index,
                skipped: None,
            },
            ring: ManuallyDrop::new(ring),
            stats,
            clock: adapter.clock.clone(),
            dropping: false,
            unflushed: Cell::new(false),
        })
    }

    /// Stops the queue: the device does no more DMA to the pool.
    ///
    /// # Errors
    ///
    /// The device did not stop: the ring runs on.
    #[expect(
        clippy::result_large_err,
        reason = "a ring is returned as it is: stopping must not allocate"
    )]
    pub(super) fn stop(self) -> core::result::Result<XskRing, (Error, Self)> {
        if let Err(error) = self.queue.stop() {
            return Err((error, self));
        }
        Ok(ManuallyDrop::into_inner(self.ring))
    }

    /// Takes the ring from the device, by a reset if it must, and frees it.
    ///
    /// # Errors
    ///
    /// The device may go on: the ring stays as it is for ever.
    pub(super) fn halt(self) -> Result {
        self.queue.halt()?;
        drop(ManuallyDrop::into_inner(self.ring));
        Ok(())
    }

    pub(super) fn set_program(&mut self, program: Option<Program>) {
        self.ring.program = program;
    }

    /// Returns whether there is something to receive.
    pub(super) fn is_pending(&self) -> bool {
        is_pending(&self.ring.descriptors, self.ring.window)
    }

    /// As [`EnabledQueue::is_stuck`].
    pub(super) fn is_stuck(&mut self) -> bool {
        self.queue
            .is_stuck(&self.ring.descriptors, self.ring.window)
    }

    /// Packets and bytes that the queue has received in its life.
    pub(super) fn received(&self) -> (u64, u64) {
        (self.stats.rx_packets.get(), self.stats.rx_bytes.get())
    }

    /// Receives up to the budget of packets. Returns how many, and whether the ring is so empty that it
    /// must be polled again.
    // noinline: the usual way keeps the registers.
    #[inline(never)]
    pub(super) fn receive(
        &mut self,
        pool: &Pool,
        napi: &Receive<'_, Adapter<'bound>>,
    ) -> (u32, bool) {
        let mut packets = 0;
        let mut cleaned = 0;
        let mut left = MOST_DESCRIPTORS;

        while packets < napi.budget() && self.ring.window.posted() != 0 {
            let index = self.ring.window.oldest();
            let Some(raw) = self.ring.descriptors.get(u32::from(index)) else {
                break;
            };
            let hi = raw.read::<1>();

            if !descriptor::is_done(hi) {
                break;
            }
            // The rest of the descriptor, and the buffer, are read after DD.
            barrier::dma_mb(Read);
            let lo = raw.read::<0>();
            let write_back = descriptor::WriteBack::from_raw(lo, hi);

            self.ring.window.clean(1);
            cleaned += 1;
            packets += u32::from(write_back.end_of_packet());
            self.frame(index, &write_back, pool, napi);
            if cleaned >= BATCH {
                self.refill(pool);
                left = left.saturating_sub(cleaned);
                cleaned = 0;
            }
            if left == 0 {
                packets = napi.budget();
            }
        }

        if self.ring.window.posted() == 0 {
            self.queue.count_missed(&self.stats);
        }
        if self.unflushed.replace(false) {
            let _ = napi.transmit_frames(self.ring.index.into(), |tx, _| tx.flush_frames());
        }
        (packets, self.refill(pool))
    }

    /// Does what a descriptor's frame is for.
    fn frame(
        &mut self,
        index: u16,
        write_back: &descriptor::WriteBack,
        pool: &Pool,
        napi: &Receive<'_, Adapter<'bound>>,
    ) {
        let (slot, stats) = (u32::from(index), &*self.stats);
        let whole = write_back.end_of_packet() && !self.dropping;

        self.dropping = !write_back.end_of_packet();
        // Longer than the MTU, or damaged.
        if !whole || write_back.frame_error() {
            stats.rx_errors.add(u64::from(write_back.end_of_packet()));
            pool.discard(slot);
            return;
        }
        let metadata = XdpMetadata {
            write_back: *write_back,
            features: napi.device().features(),
            timestamp: timestamp(write_back, self.clock.as_deref()),
        };
        let len = u32::from(write_back.packet_len());
        let program = self.ring.program.as_ref();
        let verdict = pool.receive(slot, len, program, &metadata, napi);

        let queue = self.ring.index;
        if let Some(mut skb) = apply_verdict(verdict, len, &self.unflushed, napi, queue, stats) {
            let received = metadata.for_skb(&mut skb, queue, stats);

            stats.rx_xsk_copied.add(1);
            stats.rx_bytes.add(u64::from(skb.len()));
            napi.receive(skb, &received);
        }
    }

    /// Gives buffers to the device. Returns whether it has too few to go on, and the user does not
    /// say when there are more.
    fn refill(&mut self, pool: &Pool) -> bool {
        let wanted = self.ring.window.unposted();
        let mut filled = self.ring.fill(pool);

        if pool.needs_wakeup() {
            let short = filled < wanted;

            pool.set_rx_wakeup(short);
            if short {
                // User space may have added some before it saw the flag.
                barrier::smp_mb(Full);
                filled += self.ring.fill(pool);
            }
        }
        if filled != 0 {
            self.queue.give(self.ring.window.tail());
        }
        !pool.needs_wakeup() && self.ring.window.posted() < STARVED
    }
}
