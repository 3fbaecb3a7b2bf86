// SPDX-License-Identifier: GPL-2.0

//! Receive: from the wire to the core.
//!
//! A descriptor has up to two buffers. With header split on, headers go to a fragment of a
//! readable page that becomes the skb's head, and TCP payload to a buffer of its own, which is
//! added to the skb as it is: a page, or a `net_iov` of device memory when the queue is bound.
//! With header split off there is one buffer, and the skb is built around it. Nothing is copied
//! but the headers of what the device cannot split.
//!
//! A ring is [`Ring`] (allocated, unknown to the device) or [`Running`]; only [`Running::stop`]
//! leads back, and it waits for the device.

use i82576::{
    limits,
    regs::{
        self,
        srrctl, //
    },
    ring,
    rx::{
        self as descriptor,
        Checksum,
        Layout,
        WriteBack, //
    },
};
use kernel::{
    device::{
        Bound,
        Device, //
    },
    page::PAGE_SIZE,
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
    device::{
        DeviceRef,
        Features,
        Locked, //
    },
    napi,
    page_pool::{
        self,
        Fragment,
        Netmem,
        PagePool, //
    },
    skb::{
        self,
        SkBuff, //
    },
};

use crate::{
    hw::Hw,
    netdev::Adapter,
    stats::QueueStats, //
};

/// Room for headers in a header buffer, in bytes: Ethernet with VLAN tags, IPv6 with extension
/// headers, TCP with options.
const HEADER_SIZE: u32 = 256;

/// A header buffer: room for the skb around the headers.
const HEADER_BUFFER: u32 = skb::HEADROOM + HEADER_SIZE + skb::TAILROOM;

/// What of a page the device may fill when an skb is built around it, in units of 1 KiB.
const WHOLE_KIB: u32 = 3;

/// Descriptors are given back to the device in batches of this many.
const REFILL_BATCH: u16 = 16;

/// With fewer descriptors posted than this no packet may fit, so no interrupt may come.
const STARVED: u16 = 16;

/// A frame of at most this many bytes may have been padded by its sender.
const MIN_FRAME: u32 = 60;

const _: () = {
    assert!(HEADER_SIZE % limits::HEADER_BUFFER_UNIT == 0);
    assert!(
        skb::HEADROOM + WHOLE_KIB * limits::PAYLOAD_BUFFER_UNIT + skb::TAILROOM <= PAGE_SIZE as u32
    );
};

/// How a ring is laid out.
#[derive(Copy, Clone)]
pub(crate) struct Layouts {
    /// Descriptors.
    pub(crate) len: ring::Ring,
    /// Headers are split from payload.
    pub(crate) split: bool,
}

/// The buffers behind one descriptor; either may be missing or, after a packet that did not need
/// it, still there.
struct Slot {
    header: Option<Fragment>,
    payload: Option<Netmem>,
}

/// The packet whose descriptors are coming in.
enum Packet {
    /// None: the next descriptor starts one.
    Between,
    /// This, so far.
    Assembling(SkBuff),
    /// One that is dropped: skip to its end.
    Dropping,
}

/// A ring with its buffers and pools that the device does not know.
///
/// # Invariants
///
/// - `slots` has one slot for each descriptor.
/// - The descriptors from `next_to_clean` up to `next_to_use` have all buffers that they need.
pub(crate) struct Ring {
    packet: Packet,
    slots: KVVec<Slot>,
    headers: Option<PagePool>,
    payloads: PagePool,
    descriptors: Descriptors,
    len: ring::Ring,
    next_to_use: u16,
    next_to_clean: u16,
    /// The CPU cannot read payloads.
    unreadable: bool,
    index: u16,
}

impl Ring {
    /// Allocates the ring of RX queue `index` and fills it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the queue's memory provider says.
    pub(crate) fn new<'bound>(
        dev: Locked<'_, Adapter<'bound>>,
        parent: &Device<Bound>,
        layouts: Layouts,
        index: u16,
    ) -> Result<Self> {
        let len = layouts.len;
        let mut slots = KVVec::with_capacity(usize::from(len.len()), GFP_KERNEL)?;

        for _ in 0..len.len() {
            let slot = Slot {
                header: None,
                payload: None,
            };
            slots.push(slot, GFP_KERNEL)?;
        }

        let payloads = PagePool::new(
            dev,
            parent,
            &page_pool::Config {
                size: u32::from(len.len()),
                order: 0,
                queue: u32::from(index),
                allow_unreadable: layouts.split,
            },
        )?;
        let headers = if layouts.split {
            Some(PagePool::new(
                dev,
                parent,
                &page_pool::Config {
                    size: u32::from(len.len()) / (PAGE_SIZE as u32 / HEADER_BUFFER) + 1,
                    order: 0,
                    queue: u32::from(index),
                    allow_unreadable: false,
                },
            )?)
        } else {
            None
        };

        let mut ring = Self {
            packet: Packet::Between,
            slots,
            headers,
            unreadable: payloads.is_unreadable(),
            payloads,
            descriptors: Descriptors::new(parent, u32::from(len.len()))?,
            len,
            next_to_use: 0,
            next_to_clean: 0,
            index,
        };
        // A provider may still have its memory in the ring that this one replaces; the rest comes
        // when NAPI runs.
        let filled = ring.fill();
        if filled == 0 && !ring.unreadable {
            return Err(ENOMEM);
        }
        Ok(ring)
    }

    fn is_split(&self) -> bool {
        self.headers.is_some()
    }

    fn srrctl(&self) -> u32 {
        // With DROP_EN a queue without buffers does not hold up the others.
        if self.is_split() {
            srrctl::encode(
                PAGE_SIZE as u32 / limits::PAYLOAD_BUFFER_UNIT,
                HEADER_SIZE / limits::HEADER_BUFFER_UNIT,
                srrctl::DescType::HeaderSplit,
                true,
            )
        } else {
            srrctl::encode(WHOLE_KIB, 0, srrctl::DescType::OneBuffer, true)
        }
    }

    /// Gives buffers to all descriptors that the driver has; returns how many were given.
    fn fill(&mut self) -> u16 {
        let mut filled = 0;

        for _ in 0..self.len.unused(self.next_to_use, self.next_to_clean) {
            let Some(slot) = self.slots.get_mut(usize::from(self.next_to_use)) else {
                break;
            };
            if slot.payload.is_none() {
                slot.payload = self.payloads.alloc();
            }
            if let (None, Some(pool)) = (&slot.header, &mut self.headers) {
                slot.header = pool.alloc_fragment(HEADER_BUFFER);
            }

            let raw = match (&slot.payload, &slot.header, self.headers.is_some()) {
                (Some(payload), Some(header), true) => descriptor::rx_read(
                    payload.dma_address(),
                    header.dma_address() + u64::from(skb::HEADROOM),
                ),
                (Some(payload), None, false) => {
                    descriptor::rx_read(payload.dma_address() + u64::from(skb::HEADROOM), 0)
                }
                // No memory; what is there stays in the slot.
                _ => break,
            };

            self.descriptors.write(u32::from(self.next_to_use), raw);
            self.next_to_use = self.len.next(self.next_to_use);
            filled += 1;
        }
        filled
    }
}

/// An RX queue that the device works on. Dropping it makes the device stop.
struct EnabledQueue<'bound> {
    hw: Arc<Hw<'bound>>,
    index: u16,
}

impl Drop for EnabledQueue<'_> {
    fn drop(&mut self) {
        // Too late for an error: `Running::stop` is where it can be handled.
        let _ = self.hw.disable_rx(self.index);
    }
}

/// A ring that the device fills.
///
/// The queue comes first, so that it is disabled before the ring's memory goes.
pub(crate) struct Running<'bound> {
    queue: EnabledQueue<'bound>,
    ring: Ring,
    stats: Arc<QueueStats>,
}

impl<'bound> Running<'bound> {
    /// Hands `ring` to the device.
    ///
    /// # Errors
    ///
    /// The device did not start the queue: gives the ring back.
    pub(crate) fn start<P: napi::Poll>(
        mut ring: Ring,
        hw: Arc<Hw<'bound>>,
        stats: Arc<QueueStats>,
        napi: &napi::Disabled<P>,
    ) -> core::result::Result<Self, (Error, Ring)> {
        // A stopped ring starts over: what the device had filled is given to it again.
        ring.packet = Packet::Between;
        ring.next_to_use = 0;
        ring.next_to_clean = 0;
        ring.fill();

        let index = ring.index;
        let enabled = hw.enable_rx(
            index,
            ring.descriptors.dma_address(),
            ring.len.bytes(),
            ring.srrctl(),
        );
        if let Err(error) = enabled {
            return Err((error, ring));
        }

        ring.payloads.enable_direct_recycling(napi);
        if let Some(headers) = &mut ring.headers {
            headers.enable_direct_recycling(napi);
        }

        let running = Self {
            queue: EnabledQueue { hw, index },
            ring,
            stats,
        };
        running.ring_doorbell();
        Ok(running)
    }

    /// Takes the ring from the device, which does no DMA to it any more.
    ///
    /// # Errors
    ///
    /// The device did not stop: the ring runs on.
    #[expect(
        clippy::result_large_err,
        reason = "a ring is given back as it is: stopping must not allocate"
    )]
    pub(crate) fn stop<P: napi::Poll>(
        self,
        napi: &napi::Disabled<P>,
    ) -> core::result::Result<Ring, (Error, Self)> {
        if let Err(error) = self.queue.hw.disable_rx(self.queue.index) {
            return Err((error, self));
        }

        let Self {
            queue, mut ring, ..
        } = self;
        // Disabled already: this only gives the registers back.
        drop(queue);
        ring.payloads.disable_direct_recycling(napi);
        if let Some(headers) = &mut ring.headers {
            headers.disable_direct_recycling(napi);
        }
        Ok(ring)
    }

    fn ring_doorbell(&self) {
        let tail = u32::from(self.ring.next_to_use);

        self.queue.hw.write(regs::rdt(self.queue.index), tail);
    }

    /// Receives up to `budget` packets. Returns how many, and whether the ring is so empty that
    /// the device may not be able to ask for more.
    pub(crate) fn receive(
        &mut self,
        napi: &napi::Context<'_>,
        dev: &DeviceRef<Adapter<'bound>>,
        budget: u32,
    ) -> (u32, bool) {
        let features = dev.features();
        let mut packets = 0;
        let mut bytes = 0;
        let mut cleaned = 0;

        while packets < budget {
            let index = self.ring.next_to_clean;

            if index == self.ring.next_to_use {
                break;
            }
            let hi = self.ring.descriptors.read(u32::from(index), 1);
            if !descriptor::is_done(hi) {
                break;
            }
            // The rest of the descriptor, and the buffers, are read after DD.
            barrier::dma_mb(Read);
            let lo = self.ring.descriptors.read(u32::from(index), 0);
            let write_back = WriteBack::from_raw(lo, hi);

            self.ring.next_to_clean = self.ring.len.next(index);
            cleaned += 1;
            self.take(index, &write_back, napi, dev);

            if write_back.end_of_packet() {
                packets += 1;
                if let Some(skb) = self.finish(&write_back, features, dev) {
                    bytes += u64::from(skb.1);
                    napi.receive(skb.0);
                }
            }
            if cleaned >= REFILL_BATCH {
                self.refill();
                cleaned = 0;
            }
        }

        self.stats.rx_bytes.add(bytes);
        let starved = !self.refill();
        if starved {
            self.stats.rx_starved.add(1);
        }
        (packets, starved)
    }

    /// Gives buffers to the device. Returns whether it has enough to go on.
    fn refill(&mut self) -> bool {
        let ring = &mut self.ring;
        let wanted = ring.len.unused(ring.next_to_use, ring.next_to_clean);
        let filled = ring.fill();

        if filled != 0 {
            self.ring_doorbell();
        }
        if filled < wanted {
            self.stats.rx_alloc_fail.add(1);
            let ring = &self.ring;
            return ring.len.used(ring.next_to_use, ring.next_to_clean) >= STARVED;
        }
        true
    }

    /// Adds what descriptor `index` brought to the packet.
    fn take(
        &mut self,
        index: u16,
        write_back: &WriteBack,
        napi: &napi::Context<'_>,
        dev: &DeviceRef<Adapter<'bound>>,
    ) {
        let Self { ring, stats, .. } = self;
        let unreadable = ring.unreadable;
        let Some(slot) = ring.slots.get_mut(usize::from(index)) else {
            return;
        };

        ring.packet = match core::mem::replace(&mut ring.packet, Packet::Between) {
            Packet::Dropping => Packet::Dropping,
            Packet::Assembling(skb) => {
                let offset = if ring.headers.is_some() {
                    0
                } else {
                    skb::HEADROOM
                };
                let len = u32::from(write_back.packet_len());

                add_payload(skb, slot, &ring.payloads, offset, len, stats)
            }
            Packet::Between => match (&ring.headers, write_back.layout()) {
                // Split off: the skb is built around the page.
                (None, _) => {
                    let len = u32::from(write_back.packet_len());

                    whole(slot, &ring.payloads, len, napi, stats)
                }
                (Some(headers), Layout::Split { header, payload }) => {
                    stats.rx_split.add(1);
                    let header = u32::from(header);
                    let mut payload = u32::from(payload);

                    if header + payload <= MIN_FRAME {
                        payload = unpadded(slot, headers, header, payload);
                    }
                    match head(slot, headers, header, napi, stats) {
                        Packet::Assembling(skb) if payload != 0 => {
                            add_payload(skb, slot, &ring.payloads, 0, payload, stats)
                        }
                        packet => packet,
                    }
                }
                (Some(headers), Layout::HeaderOnly { header }) => {
                    head(slot, headers, u32::from(header), napi, stats)
                }
                (Some(_), Layout::Unsplit { .. } | Layout::HeaderOverflow { .. }) if unreadable => {
                    // Nobody could read its headers.
                    stats.rx_unsplit_dropped.add(1);
                    Packet::Dropping
                }
                (Some(headers), Layout::Unsplit { len } | Layout::HeaderOverflow { len }) => {
                    unsplit(
                        slot,
                        headers,
                        &ring.payloads,
                        u32::from(len),
                        napi,
                        dev,
                        stats,
                    )
                }
            },
        };
    }

    /// Ends the packet with what its last descriptor says. Returns the skb and its length.
    fn finish(
        &mut self,
        write_back: &WriteBack,
        features: Features,
        dev: &DeviceRef<Adapter<'bound>>,
    ) -> Option<(SkBuff, u32)> {
        let stats = &self.stats;
        let Packet::Assembling(mut skb) =
            core::mem::replace(&mut self.ring.packet, Packet::Between)
        else {
            return None;
        };

        if write_back.frame_error() {
            stats.rx_errors.add(1);
            return None;
        }

        let checksum = write_back.checksum();
        match checksum {
            Checksum::Verified => stats.rx_csum_verified.add(1),
            Checksum::Bad => stats.rx_csum_bad.add(1),
            Checksum::None => stats.rx_csum_none.add(1),
        }
        if self.ring.unreadable && skb.fragments() != 0 && checksum != Checksum::Verified {
            // The core would have to read it to verify it.
            stats.rx_unverified_dropped.add(1);
            return None;
        }
        if checksum == Checksum::Verified
            && (self.ring.unreadable || features.contains(Features::RXCSUM))
        {
            skb.set_checksum_verified();
        }
        let rss = write_back.rss_type();
        if rss.is_hashed() && features.contains(Features::RXHASH) {
            skb.set_hash(write_back.rss_hash(), rss.has_ports());
        }

        let len = skb.len();
        stats.rx_packets.add(1);
        skb.set_rx_queue(self.ring.index);
        skb.set_protocol(dev);
        Some((skb, len))
    }
}

/// Starts an skb around the slot's header buffer.
#[inline]
fn head(
    slot: &mut Slot,
    headers: &PagePool,
    len: u32,
    napi: &napi::Context<'_>,
    stats: &QueueStats,
) -> Packet {
    let Some(header) = slot.header.take() else {
        return Packet::Dropping;
    };

    headers.sync_for_cpu(header.netmem(), header.offset() + skb::HEADROOM, len);
    match SkBuff::build(header, len, napi) {
        Ok(skb) => Packet::Assembling(skb),
        Err(header) => {
            slot.header = Some(header);
            stats.rx_alloc_dropped.add(1);
            Packet::Dropping
        }
    }
}

/// Starts an skb around a whole page.
#[inline]
fn whole(
    slot: &mut Slot,
    payloads: &PagePool,
    len: u32,
    napi: &napi::Context<'_>,
    stats: &QueueStats,
) -> Packet {
    let Some(page) = slot.payload.take() else {
        return Packet::Dropping;
    };

    payloads.sync_for_cpu(&page, skb::HEADROOM, len);
    let page = match Fragment::from_page(page) {
        Ok(page) => page,
        Err(netmem) => {
            slot.payload = Some(netmem);
            return Packet::Dropping;
        }
    };
    match SkBuff::build(page, len, napi) {
        Ok(skb) => Packet::Assembling(skb),
        // The page goes back to its pool.
        Err(_) => {
            stats.rx_alloc_dropped.add(1);
            Packet::Dropping
        }
    }
}

/// Starts an skb for a packet that the device left in a readable payload buffer: its headers are
/// copied to the header buffer, the rest stays where it is.
fn unsplit(
    slot: &mut Slot,
    headers: &PagePool,
    payloads: &PagePool,
    len: u32,
    napi: &napi::Context<'_>,
    dev: &DeviceRef<Adapter<'_>>,
    stats: &QueueStats,
) -> Packet {
    let (Some(mut header), Some(page)) = (slot.header.take(), slot.payload.take()) else {
        return Packet::Dropping;
    };

    payloads.sync_for_cpu(&page, 0, len);
    let page = match Fragment::from_page(page) {
        Ok(page) => page,
        Err(netmem) => {
            slot.header = Some(header);
            slot.payload = Some(netmem);
            return Packet::Dropping;
        }
    };
    let pull = skb::header_len(dev, page.bytes(0, len.min(HEADER_SIZE))).min(len);

    header.write(skb::HEADROOM, page.bytes(0, pull));
    slot.header = Some(header);
    slot.payload = Some(page.into_netmem());

    match head(slot, headers, pull, napi, stats) {
        Packet::Assembling(skb) if len > pull => {
            add_payload(skb, slot, payloads, pull, len - pull, stats)
        }
        packet => packet,
    }
}

/// Adds `len` bytes at `offset` of the slot's payload buffer.
#[inline]
fn add_payload(
    mut skb: SkBuff,
    slot: &mut Slot,
    payloads: &PagePool,
    offset: u32,
    len: u32,
    stats: &QueueStats,
) -> Packet {
    let Some(payload) = slot.payload.take() else {
        return Packet::Dropping;
    };

    payloads.sync_for_cpu(&payload, offset, len);
    match skb.add_fragment(payload, offset, len, PAGE_SIZE as u32) {
        Ok(()) => Packet::Assembling(skb),
        Err(payload) => {
            slot.payload = Some(payload);
            stats.rx_alloc_dropped.add(1);
            Packet::Dropping
        }
    }
}

/// How much of `payload` is not padding, for a frame that may have been padded.
///
/// The padding of a short frame lands in the payload buffer, where on a bound queue it would look
/// like data.
fn unpadded(slot: &Slot, headers: &PagePool, header: u32, payload: u32) -> u32 {
    let Some(buffer) = &slot.header else {
        return payload;
    };

    headers.sync_for_cpu(buffer.netmem(), buffer.offset() + skb::HEADROOM, header);
    match packet_len(buffer.bytes(skb::HEADROOM, header)) {
        Some(len) => payload.min(len.saturating_sub(header)),
        None => payload,
    }
}

/// The length of a frame without padding, by its IP header.
fn packet_len(frame: &[u8]) -> Option<u32> {
    const ETHERNET: u32 = limits::ETHERNET_HEADER;
    const IPV6_HEADER: u32 = 40;

    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));

    match word(12)? {
        skb::ETH_P_IP => Some(ETHERNET + u32::from(word(16)?)),
        skb::ETH_P_IPV6 => Some(ETHERNET + IPV6_HEADER + u32::from(word(18)?)),
        _ => None,
    }
}
