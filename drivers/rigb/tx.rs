// SPDX-License-Identifier: GPL-2.0

//! Transmit: from the core to the wire, and what comes after.
//!
//! [`Transmitter`] runs under the TX queue's lock and fills the ring; [`Completion`] runs in NAPI
//! and empties it. Both share the descriptors and a queue of what each descriptor maps. A
//! fragment in device memory is passed by its DMA address like any other; nothing reads it.

mod completion;
mod offload;
mod xdp;
mod xsk;

use core::mem::MaybeUninit;

use doorbell::Doorbell;
use i82576::{
    contexts::Contexts,
    limits,
    offload::{
        Offload,
        Pieces, //
    },
    regs,
    ring,
    tx as descriptor, //
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use net::{
    descriptors::Descriptors,
    device::Locked,
    dma::{
        TxMapping,
        TxMappings, //
    },
    skb::{
        self,
        TxSkb, //
    },
    spsc,
    tx::{
        Transmit,
        TxQueue, //
    }, //
};

pub(crate) use self::{
    completion::Completion,
    offload::supported, //
};
use crate::{
    clock,
    hw::Hw,
    netdev::Adapter,
    stats::QueueStats, //
};

/// Descriptors that any frame fits in: context, head and fragments, and two for pieces that are
/// cut because they are longer than a descriptor takes.
const NEEDED: u32 = 1 + 1 + skb::MAX_FRAGMENTS + 2;

/// The queue is woken when this many are free: room for more than one frame.
const WAKE: u32 = 2 * NEEDED;

/// Fewest descriptors of a ring: it must be longer than that, whatever `CONFIG_MAX_SKB_FRAGS` is.
// CAST: A frame has some fragments.
pub(crate) const RING_MIN: u16 = if WAKE < limits::RING_MIN as u32 {
    limits::RING_MIN
} else {
    (WAKE as u16 / limits::RING_MULTIPLE + 1) * limits::RING_MULTIPLE
};

/// How often a ring is looked at that is to be empty, and how long to wait between: a ring of the
/// longest frames is sent in 0.3 s at 1 Gb/s.
const DRAIN_TRIES: u32 = 500;
const DRAIN_PAUSE: Delta = Delta::from_millis(1);

/// What is owed for one descriptor when it is done.
struct Slot<'bound> {
    mapping: Option<TxMapping<'bound>>,
    /// On a frame's first descriptor, the one that ends it.
    last: u32,
    /// The frame, on its last descriptor.
    frame: Option<Frame>,
}

/// A frame that the device sends.
enum Frame {
    /// The core's, which byte queue limits count.
    Skb {
        skb: TxSkb,
        /// Bytes on the wire, without Ethernet overhead.
        bytes: u32,
        /// Packets on the wire.
        packets: u32,
    },
    /// An XDP program's, which they don't.
    Xdp(net::xdp::Frame),
    /// An AF_XDP socket's, which they don't, either.
    Xsk {
        /// Bytes on the wire, without Ethernet overhead.
        bytes: u32,
        /// Entries of the socket that it completes.
        entries: u32,
    },
}

/// A TX queue that the device works on. Dropping it makes the device stop.
struct EnabledQueue<'bound> {
    hw: Arc<Hw<'bound>>,
    descriptors: Descriptors,
    /// Keeps what the descriptors map.
    slots: spsc::Observer<Slot<'bound>>,
    doorbell: Arc<Doorbell>,
    len: u32,
    index: u16,
}

impl EnabledQueue<'_> {
    /// Looks after frames that wait for another device to ring; `done` is the descriptor that was done
    /// last, if any was.
    #[inline]
    fn poll_doorbell(&self, done: Option<u32>) {
        self.doorbell.poll(done, self.len, |tail| {
            self.hw.write(regs::tdt(self.index), tail);
        });
    }

    /// Keeps other devices from ringing: from now on only the driver does.
    fn close_doorbell(&self) {
        if let Some(tail) = self.doorbell.close() {
            self.hw.await_tail(self.index, tail);
        }
    }
}

impl Drop for EnabledQueue<'_> {
    fn drop(&mut self) {
        self.close_doorbell();
        if self.hw.disable_tx(self.index).is_err() && self.hw.stop_dma().is_err() {
            // What the device may still access is never freed.
            self.descriptors.leak();
            core::mem::forget(self.slots.clone());
        }
    }
}

/// An allocated TX ring that the device does not know.
pub(crate) struct Ring<'bound> {
    /// Room for what both sides share, so that starting allocates nothing.
    queue: UniqueArc<MaybeUninit<EnabledQueue<'bound>>>,
    descriptors: Descriptors,
    producer: spsc::Producer<Slot<'bound>>,
    consumer: spsc::Consumer<Slot<'bound>>,
    len: ring::Ring,
}

impl<'bound> Ring<'bound> {
    /// Allocates a ring.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(parent: &'bound Device<Bound>, len: ring::Ring) -> Result<Self> {
        let (producer, consumer) = spsc::new(u32::from(len.len()))?;

        Ok(Self {
            queue: UniqueArc::new_uninit(GFP_KERNEL)?,
            descriptors: Descriptors::new(parent, u32::from(len.len()))?,
            producer,
            consumer,
            len,
        })
    }

    /// Hands the ring to the device, and its filling side to the core, which sends when it is
    /// woken. Returns the side that empties it.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT` if the device does not start the queue, `EBUSY` if there is a ring.
    pub(crate) fn start(
        self,
        dev: Locked<'_, Adapter<'bound>>,
        stats: &Arc<QueueStats>,
        index: u16,
    ) -> Result<Completion<'bound>> {
        let adapter = dev.device().driver();
        let hw = &adapter.hw;
        let doorbell = hw.doorbells.get(usize::from(index)).ok_or(EINVAL)?;

        hw.enable_tx(index, self.descriptors.dma_address(), self.len.bytes())?;
        doorbell.open();
        let queue: Arc<_> = self
            .queue
            .write(EnabledQueue {
                hw: hw.clone(),
                descriptors: self.descriptors,
                slots: self.producer.observer(),
                doorbell: doorbell.clone(),
                len: self.len.len().into(),
                index,
            })
            .into();

        let transmitter = Transmitter {
            queue: queue.clone(),
            slots: self.producer,
            contexts: Contexts::new(),
            parent: adapter.parent,
            clock: adapter.clock.clone(),
            stats: stats.clone(),
            rung: 0,
        };
        let core = dev
            .start_tx(index.into(), transmitter)
            .map_err(|(error, _)| error)?;

        Ok(Completion {
            queue,
            slots: self.consumer,
            core,
            stats: stats.clone(),
        })
    }
}

/// The side that fills the ring. The queue comes first: it is disabled before the slots go.
pub(crate) struct Transmitter<'bound> {
    queue: Arc<EnabledQueue<'bound>>,
    slots: spsc::Producer<Slot<'bound>>,
    contexts: Contexts,
    parent: &'bound Device<Bound>,
    clock: Option<Arc<clock::Registration<'bound>>>,
    stats: Arc<QueueStats>,
    /// The tail that was written last, or withheld.
    rung: u32,
}

impl<'bound> Transmitter<'bound> {
    /// Puts `skb` on the ring. On an error nothing is.
    fn enqueue(&mut self, mut skb: TxSkb) -> Result<u32> {
        let offloads = skb.offloads();
        let mut offload = offload::prepare(&mut skb, offloads)?;
        // From here on nothing changes the skb.
        if offloads.timestamp() && self.await_timestamp(&mut skb) {
            offload = offload.with_timestamp();
        }
        skb.timestamp();
        let len = skb.len();
        let bytes = offload.wire_len(len);
        let packets = offload.packets();

        let parts = TxMappings::new(self.parent, &skb, limits::MAX_TX_FRAGMENT);
        let last = match self.map(parts, len, &offload) {
            Ok(last) => last,
            Err(error) => {
                self.take_back();
                if let (true, Some(clock)) = (offload.wants_timestamp(), &self.clock) {
                    clock.forget(self.queue.index);
                }
                return Err(error);
            }
        };
        if let Some(slot) = self.slots.oldest() {
            slot.last = last;
        }
        // All that refers to the frame is pushed, so it can go along.
        if let Some(slot) = self.slots.newest() {
            slot.frame = Some(Frame::Skb {
                skb,
                bytes,
                packets,
            });
        }
        self.count(&offload, len, bytes);
        Ok(bytes)
    }

    /// Takes back what was pushed of a frame.
    #[cold]
    fn take_back(&mut self) {
        while self.slots.unpush().is_some() {}
        self.contexts = Contexts::new();
    }

    /// Has `skb` wait for the device's timestamp, if there is one for it.
    #[cold]
    fn await_timestamp(&self, skb: &mut TxSkb) -> bool {
        match &self.clock {
            Some(clock) if clock.await_timestamp(skb, self.queue.index) => {
                clock.schedule();
                true
            }
            _ => false,
        }
    }

    /// Counts a frame of `len` bytes, which takes `bytes` on the wire.
    #[inline]
    fn count(&self, offload: &Offload, len: u32, bytes: u32) {
        let stats = &self.stats;
        let packets = u64::from(offload.packets());

        if offload.segments() {
            stats.tx_tso.add(1);
            stats.tx_tso_bytes.add(u64::from(len));
            stats.tx_tso_wire_packets.add(packets);
            stats.tx_tso_wire_bytes.add(u64::from(bytes));
        }
        if offload.checksums() {
            stats.tx_csum.add(packets);
        } else {
            stats.tx_csum_none.add(packets);
        }
    }

    /// Maps the `parts` of a frame of `len` bytes, writes its descriptors and pushes their slots;
    /// returns the last one. On an error some of them.
    // Inlined: for each frame, a call would spill as much as it saves.
    #[inline(always)]
    fn map(&mut self, parts: TxMappings<'_, 'bound>, len: u32, offload: &Offload) -> Result<u32> {
        let paylen = offload.paylen(len).ok_or(EINVAL)?;
        let mut net_iovs = 0;
        let mut last = None;

        if let Some(raw) = offload
            .context()
            .and_then(|needed| self.contexts.set(needed))
        {
            self.push(None, raw)?;
        }
        for mapping in parts {
            let mapping = mapping?;
            let pieces = Pieces::new(mapping.address(), mapping.len());

            net_iovs += u64::from(mapping.is_net_iov());
            // Goes with the first piece: the slots of a frame are freed together.
            let mut mapping = Some(mapping);
            for piece in pieces {
                let raw = offload.data(piece, paylen, false).encode();

                last = Some((self.push(mapping.take(), raw)?, raw));
            }
        }

        // Only now it is known to be the last.
        let (last, raw) = last.ok_or(EINVAL)?;

        self.queue.descriptors.write(last, descriptor::ended(raw));
        if net_iovs != 0 {
            self.stats.tx_net_iovs.add(net_iovs);
        }
        Ok(last)
    }

    /// Fills the next descriptor and its slot; returns which it is.
    // Inlined: for each piece, a call would copy what is moved into the slot.
    #[inline(always)]
    fn push(&mut self, mapping: Option<TxMapping<'bound>>, raw: descriptor::Raw) -> Result<u32> {
        let index = self.slots.next_index();
        let vacant = self.slots.vacant().ok_or(ENOSPC)?;

        vacant.push(Slot {
            mapping,
            last: index,
            frame: None,
        });
        self.queue.descriptors.write(index, raw);
        Ok(index)
    }

    /// Waits until the device has sent what is on the ring, and NAPI has seen it; not for long, as
    /// the device may not send.
    pub(crate) fn drain(&mut self) {
        self.queue.close_doorbell();
        // It may have been withheld.
        self.rung = u32::MAX;
        self.ring_doorbell();
        for _ in 0..DRAIN_TRIES {
            if self.slots.is_empty() {
                return;
            }
            fsleep(DRAIN_PAUSE);
        }
    }

    fn ring_doorbell(&mut self) {
        let tail = self.slots.next_index();

        if tail != self.rung {
            let before = core::mem::replace(&mut self.rung, tail);

            if self.queue.doorbell.withholds(before, tail) {
                return;
            }
            self.queue.hw.write(regs::tdt(self.queue.index), tail);
            self.stats.tx_doorbells.add(1);
        }
    }
}

impl Transmit for Transmitter<'_> {
    fn transmit(&mut self, skb: TxSkb, queue: TxQueue<'_>, more: bool) {
        let sent = match skb.pad_to(limits::MIN_TX_FRAME) {
            Some(skb) => self.enqueue(skb),
            None => Err(ENOMEM),
        };

        match sent {
            Ok(bytes) => {
                let doorbell = queue.sent(bytes, more);

                self.slots.publish();
                let stopped = queue.maybe_stop(|| self.slots.available(), NEEDED, WAKE);
                if stopped {
                    self.stats.tx_stop.add(1);
                }
                if doorbell || stopped {
                    self.ring_doorbell();
                }
            }
            Err(_) => {
                self.stats.tx_dropped.add(1);
                // Frames before this one may wait for a doorbell.
                if !more {
                    self.ring_doorbell();
                }
            }
        }
    }
}
