// SPDX-License-Identifier: GPL-2.0

//! XDP programs on received frames.
//!
//! Without header split a frame is in one buffer, whatever the MTU. With it a frame has fragments:
//! its headers are in the head buffer, and the rest is in one payload buffer or more. A queue whose
//! head buffers have [`xdp::HEADROOM`] before the frame can run a program.

use core::cell::Cell;

use i82576::rx::{
    Checksum,
    Layout,
    RssType,
    WriteBack, //
};
use kernel::prelude::*;
use net::{
    device::Locked,
    features::Features,
    fragment::{
        Fragment,
        FragmentPool, //
    },
    napi::Receive,
    skb::{
        RxMetadata,
        RxSkb, //
    },
    xdp::{
        self,
        Buff,
        HashType,
        Metadata,
        Program,
        TransmitFrames,
        Verdict, //
    },
};

use super::{
    packet::{
        metadata,
        RxBuilder, //
    },
    ring::{
        Slot,
        HEADER_SIZE, //
    },
};
use crate::{
    netdev::Adapter,
    stats::QueueStats, //
};

/// A queue's side of XDP.
pub(super) struct Xdp {
    queue: xdp::RxQueue,
    /// The frame whose descriptors are coming in, so far.
    frame: Cell<Option<Buff>>,
    /// Frames wait for the TX ring's doorbell.
    unflushed: Cell<bool>,
}

impl Xdp {
    /// For RX queue `queue`, which has its buffers from `heads`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new<'bound>(
        dev: Locked<'_, Adapter<'bound>>,
        queue: u32,
        heads: &FragmentPool<Adapter<'bound>>,
        program: Option<&Program>,
    ) -> Result<Self> {
        Ok(Self {
            queue: xdp::RxQueue::new(dev, queue, heads, program.cloned())?,
            frame: Cell::new(None),
            unflushed: Cell::new(false),
        })
    }

    pub(super) fn set_program(&mut self, program: Option<Program>) {
        self.queue.set_program(program);
    }

    #[inline]
    pub(super) fn has_program(&self) -> bool {
        self.queue.has_program()
    }

    /// Drops what has come in of a frame: the rest does not come.
    pub(super) fn forget(&self) {
        self.frame.set(None);
    }

    /// Has the device send what programs sent back, at the end of a poll.
    pub(super) fn flush(&self, napi: &Receive<'_, Adapter<'_>>, queue: u16) {
        if self.unflushed.replace(false) {
            let _ = napi.transmit_frames(queue.into(), |tx, _| tx.flush_frames());
        }
    }
}

/// What the device says of a frame, for programs that ask, and for the core.
pub(crate) struct XdpMetadata {
    pub(super) write_back: WriteBack,
    /// The features in use.
    pub(super) features: Features,
    /// When it was received.
    pub(super) timestamp: Option<u64>,
}

impl XdpMetadata {
    /// The same for an skb that goes up.
    pub(super) fn for_skb(&self, skb: &mut RxSkb, queue: u16, stats: &QueueStats) -> RxMetadata {
        let checksum = if self.features.contains(Features::RXCSUM) {
            self.write_back.checksum()
        } else {
            Checksum::None
        };

        if let Some(time) = self.timestamp {
            skb.set_timestamp(time);
        }
        stats.rx_packets.add(1);
        metadata(skb, &self.write_back, self.features, checksum, queue, stats)
    }
}

impl Metadata for XdpMetadata {
    fn hash(&self) -> Option<(u32, HashType)> {
        if !self.features.contains(Features::RXHASH) {
            return None;
        }
        let kind = match self.write_back.rss_type() {
            RssType::None | RssType::Reserved => return None,
            RssType::Ipv4 => HashType::IPV4,
            RssType::Ipv4Tcp => HashType::IPV4_TCP,
            RssType::Ipv4Udp => HashType::IPV4_UDP,
            RssType::Ipv6 => HashType::IPV6,
            RssType::Ipv6Tcp => HashType::IPV6_TCP,
            RssType::Ipv6Udp => HashType::IPV6_UDP,
            RssType::Ipv6Ex => HashType::IPV6_EXTENSIONS,
            RssType::Ipv6TcpEx => HashType::IPV6_TCP_EXTENSIONS,
            RssType::Ipv6UdpEx => HashType::IPV6_UDP_EXTENSIONS,
        };

        Some((self.write_back.rss_hash(), kind))
    }

    fn vlan_tag(&self) -> Option<u16> {
        self.write_back
            .vlan_packet()
            .then(|| self.write_back.vlan_tag())
    }

    fn timestamp(&self) -> Option<u64> {
        self.timestamp
    }
}

impl<'bound> RxBuilder<'_, 'bound> {
    /// Lets the queue's program decide on a packet that starts, or keeps what its first descriptor
    /// brought until the rest is there. Returns what goes up.
    // noinline: the usual way keeps the registers.
    #[inline(never)]
    pub(super) fn program(
        &self,
        xdp: &Xdp,
        slot: &mut Slot,
        write_back: &WriteBack,
        timestamp: Option<u64>,
    ) -> Option<RxSkb> {
        let too_long = match write_back.layout() {
            // Longer than the MTU.
            _ if self.pools.payloads.is_none() => !write_back.end_of_packet(),
            // The device has no more room there: the rest is from before.
            Layout::Split { header, .. } | Layout::HeaderOnly { header } => {
                u32::from(header) > HEADER_SIZE
            }
            Layout::Unsplit { .. } | Layout::HeaderOverflow { .. } => false,
        };
        if too_long {
            self.stats.rx_errors.add(1);
            return None;
        }
        let Some(frame) = self.frame(slot, write_back) else {
            self.stats.rx_alloc_dropped.add(1);
            return None;
        };
        self.decide(xdp, frame, write_back, timestamp)
    }

    /// Adds what a further descriptor brought to a packet that a program is to see; does nothing
    /// without one. Returns what goes up.
    // As above.
    #[inline(never)]
    pub(super) fn add_for_program(
        &self,
        slot: &mut Slot,
        write_back: &WriteBack,
        timestamp: Option<u64>,
    ) -> Option<RxSkb> {
        let xdp = self.pools.xdp.as_ref()?;
        let mut frame = xdp.frame.take()?;
        let len = u32::from(write_back.packet_len());

        if !self.payload_of_frame(&mut frame, slot, 0, len) {
            self.stats.rx_alloc_dropped.add(1);
            return None;
        }
        self.decide(xdp, frame, write_back, timestamp)
    }

    /// What a packet's first descriptor brought; `None` if a buffer is not as it must be.
    fn frame(&self, slot: &mut Slot, write_back: &WriteBack) -> Option<Buff> {
        let len = u32::from(write_back.packet_len());

        if self.pools.payloads.is_none() {
            return Buff::new(&mut slot.head, len, self.napi);
        }
        let (mut frame, start, len) = match write_back.layout() {
            Layout::Split { header, payload } => {
                let frame = Buff::new(&mut slot.head, header.into(), self.napi)?;
                (frame, 0, payload.into())
            }
            Layout::HeaderOnly { header } => {
                return Buff::new(&mut slot.head, header.into(), self.napi);
            }
            // Programs look for headers in front.
            Layout::Unsplit { .. } | Layout::HeaderOverflow { .. } => {
                let start = len.min(HEADER_SIZE);
                let page = slot.payload.take()?;

                page.sync_for_cpu(0, start);
                match Fragment::from_page(page) {
                    Ok(page) => {
                        let frame = Buff::copy(&mut slot.head, &page, start, self.napi);

                        slot.payload = page.into_page().ok();
                        if let Some(page) = &slot.payload {
                            // It may be posted again.
                            page.sync_for_device(0, start);
                        }
                        (frame?, start, len - start)
                    }
                    Err(netmem) => {
                        slot.payload = Some(netmem);
                        return None;
                    }
                }
            }
        };

        if len != 0 && !self.payload_of_frame(&mut frame, slot, start, len) {
            return None;
        }
        Some(frame)
    }

    /// Adds `len` bytes at `offset` of the slot's payload buffer. Returns whether it could.
    fn payload_of_frame(&self, frame: &mut Buff, slot: &mut Slot, offset: u32, len: u32) -> bool {
        self.pools.payloads.as_ref().is_some_and(|payloads| {
            let size = payloads.size.bytes();

            frame.add_fragment(&mut slot.payload, offset, len, size, self.napi)
        })
    }

    /// Lets the program decide on `frame`, if this was its last descriptor; else keeps it.
    fn decide(
        &self,
        xdp: &Xdp,
        frame: Buff,
        write_back: &WriteBack,
        timestamp: Option<u64>,
    ) -> Option<RxSkb> {
        let stats = self.stats;

        if !write_back.end_of_packet() {
            xdp.frame.set(Some(frame));
            return None;
        }
        // Damaged: nothing for a program.
        if write_back.frame_error() {
            stats.rx_errors.add(1);
            return None;
        }
        let metadata = XdpMetadata {
            write_back: *write_back,
            features: self.features,
            timestamp,
        };
        let len = frame.frame_len();
        let verdict = xdp.queue.run(frame, &metadata, self.napi);

        // What goes up is counted when it is finished, as any other.
        apply_verdict(verdict, len, &xdp.unflushed, self.napi, self.queue, stats)
    }
}

/// Does what a program wants with a frame of `len` bytes, and counts it. Returns what goes up.
/// `unflushed` says that the TX ring's doorbell has to ring.
pub(super) fn apply_verdict(
    verdict: Verdict,
    len: u32,
    unflushed: &Cell<bool>,
    napi: &Receive<'_, Adapter<'_>>,
    queue: u16,
    stats: &QueueStats,
) -> Option<RxSkb> {
    match verdict {
        Verdict::Pass(skb) => return Some(skb),
        Verdict::NoMemory => stats.rx_alloc_dropped.add(1),
        Verdict::Drop => stats.rx_xdp_drop.add(1),
        Verdict::Redirect => stats.rx_xdp_redirect.add(1),
        Verdict::Failed => stats.rx_xdp_failed.add(1),
        Verdict::Transmit(frame) => {
            let sent = napi.transmit_frames(queue.into(), |tx, queue| {
                queue.used();
                tx.transmit_frame(frame, queue).is_ok()
            });

            if sent == Some(true) {
                unflushed.set(true);
                stats.rx_xdp_tx.add(1);
            } else {
                stats.rx_xdp_failed.add(1);
            }
        }
    }
    // Whatever the program did with it, it was received.
    stats.rx_packets.add(1);
    stats.rx_bytes.add(len.into());
    None
}
