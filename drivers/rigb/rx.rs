// SPDX-License-Identifier: GPL-2.0

//! Receive: from the wire to the core.
//!
//! A descriptor has up to two buffers. The first is a fragment of a readable page, around which
//! the skb is built. With header split off it takes the whole frame. With header split on it takes
//! the headers, and TCP payload goes to a buffer of its own, which is added to the skb as it is: a
//! page, or a `net_iov` of device memory when the queue is bound. Nothing is copied but the headers
//! of what the device cannot split.
//!
//! A ring is [`Ring`] (allocated, unknown to the device) or [`Running`]; only [`Running::stop`]
//! leads back, and it waits for the device. How descriptors become a packet is in [`packet`], and
//! what XDP programs make of one in [`xdp`]. A queue that works on the memory of an AF_XDP socket has
//! a ring of another kind, in [`xsk`]; [`queue`] is either.

mod packet;
mod queue;
mod ring;
mod xdp;
mod xsk;

use core::mem::ManuallyDrop;

use i82576::{
    limits, regs,
    ring::{
        Run,
        Window, //
    },
    rx::{
        self as descriptor,
        WriteBack, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        barrier::{
            self,
            Read, //
        },
        Arc, //
    }, //
};
use net::{
    descriptors::Descriptors,
    napi::{
        Disabled,
        Receive, //
    },
    xdp::Program, //
};

use self::{
    packet::{
        Packet,
        RxBuilder, //
    },
    ring::Ring, //
};
pub(crate) use self::{
    queue::{
        Memory,
        Queue, //
    },
    ring::Layout,
    xdp::XdpMetadata, //
};
use crate::{
    clock,
    hw::Hw,
    netdev::Adapter,
    stats::QueueStats, //
};

/// Descriptors are cleaned in batches of up to this many, and posted when there are as many: each time
/// costs a doorbell.
const BATCH: u16 = 16;

/// A poll ends after this many descriptors, more than a budget of packets has, if the device ends no packet.
const MOST_DESCRIPTORS: u16 = 1024;

/// With fewer descriptors posted than this no packet may fit, so no interrupt may come.
const STARVED: u16 = 16;

const _: () = assert!(limits::RING_MIN > BATCH + STARVED);

/// An RX queue that is enabled in the device.
struct EnabledQueue<'bound> {
    hw: Arc<Hw<'bound>>,
    index: u16,
    /// The descriptor that the device had left out when this was last looked at.
    skipped: Option<u16>,
}

impl EnabledQueue<'_> {
    /// Disables the queue. On an error it is enabled, as before.
    fn stop(&self) -> Result {
        self.hw
            .disable_rx(self.index)
            .inspect_err(|_| self.hw.resume_rx(self.index))
    }

    /// Disables the queue, by a reset of the device if it must.
    ///
    /// # Errors
    ///
    /// The device may go on.
    fn halt(&self) -> Result {
        self.hw
            .disable_rx(self.index)
            .or_else(|_| self.hw.stop_dma())
    }

    /// Counts packets without a descriptor. Reads a register: only for a ring that ran empty.
    #[cold]
    fn count_missed(&self, stats: &QueueStats) {
        stats
            .rx_missed
            .add(self.hw.take_rx_drops(self.index.into()));
    }

    /// Gives the device the descriptors up to `tail`.
    fn give(&self, tail: u16) {
        self.hw.write(regs::rdt(self.index), u32::from(tail));
    }

    /// Whether the device is past descriptor `next` (RDH). Reads a register, and so waits for what the
    /// device has written before. A device that is gone is past none.
    fn is_past(&self, next: u16) -> bool {
        let head = self.hw.read(regs::rdh(self.index));

        head != u32::from(next) && head < u32::from(limits::RING_MAX)
    }

    /// Whether the queue waits for a descriptor that the device has left out, and did when this was last
    /// called. Tells the device the tail again, which may have been lost.
    fn is_stuck(&mut self, descriptors: &Descriptors, window: Window) -> bool {
        // A ring that has run empty raises no interrupt until the device learns of its buffers.
        self.give(window.tail());
        let next = window.oldest();
        let skips = self.is_past(next) && !is_pending(descriptors, window);
        let skipped = skips.then_some(next);

        core::mem::replace(&mut self.skipped, skipped) == skipped && skips
    }
}

/// Whether the device has filled a ring's oldest descriptor.
fn is_pending(descriptors: &Descriptors, window: Window) -> bool {
    let next = descriptors.get(window.oldest().into());

    window.posted() != 0 && next.is_some_and(|raw| descriptor::is_done(raw.read::<1>()))
}

/// Takes the timestamp of the packet that a descriptor ends, if it has one.
#[inline]
fn timestamp(write_back: &WriteBack, clock: Option<&clock::Registration<'_>>) -> Option<u64> {
    match clock {
        Some(clock) if write_back.has_timestamp() => clock.rx_timestamp(),
        _ => None,
    }
}

/// What was received at once.
#[derive(Default)]
struct Batch {
    descriptors: u16,
    packets: u32,
    bytes: u64,
    /// There may be more.
    more: bool,
}

/// A ring that the device fills.
///
/// Only [`Self::stop`] and [`Self::halt`] lead back; else the ring's memory is never freed, as the
/// device may write to it.
pub(crate) struct Running<'bound> {
    queue: EnabledQueue<'bound>,
    ring: ManuallyDrop<Ring<'bound>>,
    stats: Arc<QueueStats>,
    clock: Option<Arc<clock::Registration<'bound>>>,
}

impl<'bound> Running<'bound> {
    /// Hands `ring` to the device.
    ///
    /// # Errors
    ///
    /// The device did not start the queue: returns the ring.
    #[expect(
        clippy::result_large_err,
        reason = "the ring is returned as it is: starting must not allocate"
    )]
    fn start(
        mut ring: Ring<'bound>,
        adapter: &Adapter<'bound>,
        stats: Arc<QueueStats>,
        napi: &Disabled<'_, Adapter<'bound>>,
    ) -> core::result::Result<Self, (Error, Ring<'bound>)> {
        ring.rewind(napi);
        let hw = adapter.hw.clone();
        let index = ring.index;
        let enabled = ring.pools.attach(napi).and_then(|()| {
            hw.enable_rx(
                index,
                ring.descriptors.dma_address(),
                ring.window.ring().bytes(),
                ring.srrctl(),
            )
        });
        if let Err(error) = enabled {
            ring.pools.detach(napi);
            return Err((error, ring));
        }

        let running = Self {
            queue: EnabledQueue {
                hw,
                index,
                skipped: None,
            },
            ring: ManuallyDrop::new(ring),
            stats,
            clock: adapter.clock.clone(),
        };
        running.ring_doorbell();
        Ok(running)
    }

    /// Stops the queue: the device does no more DMA to the ring.
    ///
    /// # Errors
    ///
    /// The device did not stop: the ring runs on.
    #[expect(
        clippy::result_large_err,
        reason = "the ring is returned as it is: stopping must not allocate"
    )]
    fn stop(
        self,
        napi: &Disabled<'_, Adapter<'bound>>,
    ) -> core::result::Result<Ring<'bound>, (Error, Self)> {
        if let Err(error) = self.queue.stop() {
            return Err((error, self));
        }

        Ok(self.reclaim(napi))
    }

    /// Stops the queue, with a reset if it must, and frees the ring.
    ///
    /// # Errors
    ///
    /// The device may go on: the ring stays as it is for ever.
    fn halt(self, napi: &Disabled<'_, Adapter<'bound>>) -> Result {
        self.queue.halt()?;
        drop(self.reclaim(napi));
        Ok(())
    }

    /// The ring of a queue that has stopped.
    fn reclaim(self, napi: &Disabled<'_, Adapter<'bound>>) -> Ring<'bound> {
        let mut ring = ManuallyDrop::into_inner(self.ring);

        ring.pools.detach(napi);
        ring
    }

    /// Runs another XDP program from now on, or none. A ring without room for one runs none.
    fn set_program(&mut self, program: Option<Program>) {
        if let Some(xdp) = &mut self.ring.pools.xdp {
            xdp.set_program(program);
        }
    }

    fn ring_doorbell(&self) {
        self.queue.give(self.ring.window.tail());
    }

    /// Receives up to the budget of packets. Returns how many, and whether the ring is so empty
    /// that the device may not be able to ask for more.
    // noinline: each loop of a poll has the registers to itself.
    #[inline(never)]
    fn receive(&mut self, napi: &Receive<'_, Adapter<'bound>>) -> (u32, bool) {
        let budget = napi.budget();
        let mut packets = 0;
        let mut bytes = 0;
        let mut exhausted = false;
        let mut left = MOST_DESCRIPTORS;

        while packets < budget {
            let batch = self.clean(napi, budget - packets);

            packets += batch.packets;
            bytes += batch.bytes;
            exhausted |= self.ring.window.posted() == 0;
            if !batch.more {
                break;
            }
            left = left.saturating_sub(batch.descriptors);
            if left == 0 {
                packets = budget;
            }
            self.refill(napi);
        }

        self.stats.rx_bytes.add(bytes);
        if let Some(xdp) = &self.ring.pools.xdp {
            xdp.flush(napi, self.ring.index);
        }
        let starved = !self.refill(napi);
        if starved {
            self.stats.rx_starved.add(1);
        }
        if exhausted {
            self.queue.count_missed(&self.stats);
        }
        (packets, starved)
    }

    /// Takes what the device has filled, up to a batch, `budget` packets and the end of the ring, and
    /// hands it up.
    #[inline]
    fn clean(&mut self, napi: &Receive<'_, Adapter<'bound>>, budget: u32) -> Batch {
        let Running {
            ring, stats, clock, ..
        } = self;
        let ring = &mut **ring;
        let builder = RxBuilder {
            pools: &ring.pools,
            napi,
            stats,
            features: napi.device().features(),
            queue: ring.index,
        };
        // CAST: A batch is small. With no more descriptors than that there are no more packets.
        let most = budget.min(BATCH.into()) as u16;
        let run = ring.window.to_clean(most);
        let done = ring.descriptors.run(run.start.into(), run.count.into());
        // CAST: No more than the run has.
        let done = done
            .take_while(|raw| descriptor::is_done(raw.read::<1>()))
            .count() as u16;
        let mut batch = Batch {
            more: done != 0 && done == run.count,
            ..Batch::default()
        };
        let run = Run { count: done, ..run };
        let Some(slots) = ring.slots.get_mut(run.range()) else {
            return Batch::default();
        };

        // The rest of the descriptors, and the buffers, are read after DD.
        barrier::dma_mb(Read);
        for (slot, raw) in slots
            .iter_mut()
            .zip(ring.descriptors.run(run.start.into(), run.count.into()))
        {
            let write_back = WriteBack::from_raw(raw.read::<0>(), raw.read::<1>());
            let timestamp = timestamp(&write_back, clock.as_deref());

            let (skb, assembled) = match ring.packet {
                Packet::Between => (builder.start(slot, &write_back, timestamp), false),
                _ => {
                    let packet = ring.packet.take();
                    (builder.add(packet, slot, &write_back, timestamp), true)
                }
            };
            if !write_back.end_of_packet() {
                ring.packet = builder.go_on(skb, &write_back);
                continue;
            }

            batch.packets += 1;
            if let Some(skb) = skb {
                batch.bytes += u64::from(builder.finish(skb, assembled, &write_back, timestamp));
            }
        }

        ring.window.clean(done);
        batch.descriptors = done;
        batch
    }

    /// Returns whether there is something to receive.
    fn is_pending(&self) -> bool {
        is_pending(&self.ring.descriptors, self.ring.window)
    }

    /// As [`EnabledQueue::is_stuck`].
    fn is_stuck(&mut self) -> bool {
        self.queue
            .is_stuck(&self.ring.descriptors, self.ring.window)
    }

    /// Packets and bytes that the queue has received in its life.
    fn received(&self) -> (u64, u64) {
        (self.stats.rx_packets.get(), self.stats.rx_bytes.get())
    }

    /// Posts buffers, if there are enough to post. Returns whether the device has enough to go on.
    #[inline]
    fn refill(&mut self, napi: &Receive<'_, Adapter<'bound>>) -> bool {
        let wanted = self.ring.window.unposted();

        wanted < BATCH || self.post(napi, wanted)
    }

    /// Posts the `wanted` buffers. Returns as [`Self::refill`].
    #[inline(never)]
    fn post(&mut self, napi: &Receive<'_, Adapter<'bound>>, wanted: u16) -> bool {
        let filled = self.ring.fill(napi);

        if filled != 0 {
            self.ring_doorbell();
        }
        if filled < wanted {
            self.stats.rx_alloc_fail.add(1);
            return self.ring.window.posted() >= STARVED;
        }
        true
    }
}
