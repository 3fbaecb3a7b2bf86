// SPDX-License-Identifier: GPL-2.0

//! XDP programs on received frames.
//!
//! Without header split a frame is in one buffer, whatever the MTU. A queue whose buffers have
//! [`xdp::HEADROOM`] before the frame can run a program.

use core::cell::Cell;

use i82576::rx::{
    Checksum,
    RssType,
    WriteBack, //
};
use kernel::prelude::*;
use net::{
    device::Locked,
    features::Features,
    fragment::FragmentPool,
    napi::Receive,
    skb::{
        RxMetadata,
        RxSkb, //
    },
    xdp::{
        self,
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
    ring::Slot,
};
use crate::{
    netdev::Adapter,
    stats::QueueStats, //
};

/// A queue's side of XDP.
pub(super) struct Xdp {
    queue: xdp::RxQueue,
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
            unflushed: Cell::new(false),
        })
    }

    pub(super) fn set_program(&mut self, program: Option<Program>) {
        self.queue.set_program(program);
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

impl RxBuilder<'_, '_> {
    /// Lets the queue's program decide on a packet; without one it goes up.
    // Apart, so that the usual way has the registers.
    #[inline(never)]
    pub(super) fn program(
        &self,
        xdp: &Xdp,
        slot: &mut Slot,
        write_back: &WriteBack,
        timestamp: Option<u64>,
    ) -> Option<RxSkb> {
        let len = u32::from(write_back.packet_len());
        let Some(program) = xdp.queue.runner() else {
            return self.head(slot, len);
        };
        let stats = self.stats;

        // Longer than the MTU, or damaged: nothing for a program.
        if !write_back.end_of_packet() || write_back.frame_error() {
            stats.rx_errors.add(1);
            return None;
        }
        let head = slot.head.take()?;

        let metadata = XdpMetadata {
            write_back: *write_back,
            features: self.features,
            timestamp,
        };

        let verdict = program.run(head, len, &metadata, self.napi);
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
