// SPDX-License-Identifier: GPL-2.0

//! How descriptors become a packet.

use i82576::{
    frame, limits,
    rx::{
        Checksum,
        Layout,
        WriteBack, //
    },
};
use net::{
    device::DeviceRef,
    features::Features,
    fragment::Fragment,
    napi,
    page_pool::PagePool,
    skb::{
        self,
        Hash,
        Received,
        SkBuff, //
    },
};

use super::ring::{
    Payloads,
    Pools,
    Slot,
    HEADER_SIZE, //
};
use crate::{
    netdev::Adapter,
    stats::QueueStats, //
};

/// The packet whose descriptors are coming in.
pub(super) enum Packet {
    /// None: the next descriptor starts one.
    Between,
    /// This, so far.
    Assembling(SkBuff),
    /// One that is dropped: skip to its end.
    Dropping,
}

/// What a packet is made with.
pub(super) struct Maker<'a, 'bound> {
    pub(super) pools: &'a Pools,
    pub(super) napi: &'a napi::Context<'a>,
    pub(super) dev: &'a DeviceRef<Adapter<'bound>>,
    pub(super) stats: &'a QueueStats,
    /// When the packet that ends here was received.
    pub(super) stamp: Option<u64>,
    /// The features in use.
    pub(super) features: Features,
    pub(super) queue: u16,
}

impl Packet {
    /// Adds what a descriptor brought.
    #[inline]
    pub(super) fn add(self, slot: &mut Slot, write_back: &WriteBack, with: &Maker<'_, '_>) -> Self {
        let len = u32::from(write_back.packet_len());

        match (self, &with.pools.payloads) {
            (Self::Dropping, _) => Self::Dropping,
            (Self::Assembling(skb), Some(payloads)) => with.payload(skb, slot, payloads, 0, len),
            (Self::Assembling(_), None) => {
                // Longer than the MTU.
                with.stats.rx_errors.add(1);
                Self::Dropping
            }
            (Self::Between, None) => match &with.pools.xdp {
                None => with.whole(slot, len),
                Some(xdp) => with.program(xdp, slot, write_back),
            },
            (Self::Between, Some(payloads)) => match write_back.layout() {
                Layout::Split { header, payload } => {
                    with.split(slot, payloads, u32::from(header), u32::from(payload))
                }
                // Nobody could read its headers; or its payload is where no reader looks for it.
                _ if payloads.unreadable => {
                    with.stats.rx_unsplit_dropped.add(1);
                    Self::Dropping
                }
                Layout::HeaderOnly { header } => with.head(slot, u32::from(header)),
                Layout::Unsplit { .. } | Layout::HeaderOverflow { .. } => {
                    with.unsplit(slot, payloads, len)
                }
            },
        }
    }

    /// Ends the packet with what its last descriptor says of it.
    #[inline]
    pub(super) fn finish(
        self,
        write_back: &WriteBack,
        with: &Maker<'_, '_>,
    ) -> Option<(SkBuff, Received)> {
        let Self::Assembling(mut skb) = self else {
            return None;
        };
        let unreadable = with.pools.unreadable();
        let (features, stats) = (with.features, with.stats);

        if write_back.frame_error() {
            stats.rx_errors.add(1);
            return None;
        }

        // If it is not wanted the core verifies instead, but it cannot where it cannot read.
        let verify = unreadable || features.contains(Features::RXCSUM);
        let received = describe(&mut skb, write_back, features, verify, with.queue, stats);

        if unreadable && skb.fragments() != 0 && !received.checksum_verified {
            // The core would have to read it to verify it.
            stats.rx_unverified_dropped.add(1);
            return None;
        }
        if let Some(time) = with.stamp {
            skb.set_stamp(time);
        }
        stats.rx_packets.add(1);
        Some((skb, received))
    }
}

/// What the last descriptor of a packet that goes up says of it. Checksums count if `verify` says so.
#[inline]
pub(super) fn describe(
    skb: &mut SkBuff,
    write_back: &WriteBack,
    features: Features,
    verify: bool,
    queue: u16,
    stats: &QueueStats,
) -> Received {
    let checksum = if verify {
        write_back.checksum()
    } else {
        Checksum::None
    };
    match checksum {
        Checksum::Verified => stats.rx_csum_verified.add(1),
        Checksum::Bad => stats.rx_csum_bad.add(1),
        Checksum::None => stats.rx_csum_none.add(1),
    }
    let rss = write_back.rss_type();
    let hash = match write_back.rss_hash() {
        _ if !rss.is_hashed() || !features.contains(Features::RXHASH) => Hash::None,
        hash if rss.has_ports() => Hash::L4(hash),
        hash => Hash::L3(hash),
    };

    if write_back.vlan_packet() {
        skb.set_vlan_tag(write_back.vlan_tag());
    }
    Received {
        queue,
        checksum_verified: checksum == Checksum::Verified,
        hash,
    }
}

impl Maker<'_, '_> {
    /// Starts an skb for a packet whose headers the device has split from its payload.
    #[inline]
    fn split(&self, slot: &mut Slot, payloads: &Payloads, header: u32, payload: u32) -> Packet {
        self.stats.rx_split.add(1);

        let len = self.unpadded(slot, header, header + payload);
        let payload = len.saturating_sub(header);
        match self.head(slot, header) {
            Packet::Assembling(skb) if payload != 0 => {
                self.payload(skb, slot, payloads, 0, payload)
            }
            packet => packet,
        }
    }

    /// Starts an skb for a packet that is in the slot's head buffer as a whole.
    #[inline]
    fn whole(&self, slot: &mut Slot, len: u32) -> Packet {
        self.head(slot, self.unpadded(slot, len, len))
    }

    /// Starts an skb around the slot's head buffer.
    #[inline]
    pub(super) fn head(&self, slot: &mut Slot, len: u32) -> Packet {
        let pools = self.pools;

        self.linear(slot, len, |head| {
            SkBuff::build(pools.heads.pages(), head, pools.headroom, len, self.napi)
        })
    }

    /// Starts an skb whose linear part has `len` bytes, which `build` makes of the slot's head
    /// buffer.
    #[inline]
    fn linear(
        &self,
        slot: &mut Slot,
        len: u32,
        build: impl FnOnce(Fragment) -> Result<SkBuff, Fragment>,
    ) -> Packet {
        if len < limits::ETHERNET_HEADER {
            self.stats.rx_errors.add(1);
            return Packet::Dropping;
        }
        let Some(head) = slot.head.take() else {
            return Packet::Dropping;
        };

        match build(head) {
            Ok(skb) => Packet::Assembling(skb),
            Err(head) => {
                slot.head = Some(head);
                self.stats.rx_alloc_dropped.add(1);
                Packet::Dropping
            }
        }
    }

    /// Starts an skb for a packet that the device left in a readable payload buffer: its headers
    /// are copied to the head buffer, the rest stays where it is.
    fn unsplit(&self, slot: &mut Slot, payloads: &Payloads, len: u32) -> Packet {
        let Some(page) = slot.payload.take() else {
            return Packet::Dropping;
        };

        payloads.pool.sync_for_cpu(&page, 0, len);
        let page = match Fragment::from_page(page) {
            Ok(page) => page,
            Err(netmem) => {
                slot.payload = Some(netmem);
                return Packet::Dropping;
            }
        };
        let start = page.bytes(0, len.min(HEADER_SIZE));
        let pull = skb::header_len(self.dev, start).min(len);
        let headers = page.bytes(0, pull);
        let packet = self.linear(slot, pull, |head| {
            SkBuff::copy(self.pools.heads.pages(), head, headers, self.napi)
        });

        slot.payload = page.into_page().ok();
        match packet {
            Packet::Assembling(skb) if len > pull => {
                self.payload(skb, slot, payloads, pull, len - pull)
            }
            packet => packet,
        }
    }

    /// How long a frame of `len` bytes is, of which the first `start` are in the head buffer,
    /// without the padding of one that would have been too short.
    ///
    /// In a payload buffer of a bound queue it would look like data; and GRO merges no packet that
    /// is longer than its IP header says.
    #[inline]
    fn unpadded(&self, slot: &Slot, start: u32, len: u32) -> u32 {
        if len > limits::MIN_FRAME {
            return len;
        }
        let pools = self.pools;

        match &slot.head {
            Some(buffer) => unpadded(pools.heads.pages(), buffer, pools.headroom, start, len),
            None => len,
        }
    }

    /// Adds `len` bytes at `offset` of the slot's payload buffer.
    #[inline]
    fn payload(
        &self,
        mut skb: SkBuff,
        slot: &mut Slot,
        payloads: &Payloads,
        offset: u32,
        len: u32,
    ) -> Packet {
        let Some(payload) = slot.payload.take() else {
            return Packet::Dropping;
        };

        match skb.add_fragment(&payloads.pool, payload, offset, len, payloads.size.bytes()) {
            Ok(()) => Packet::Assembling(skb),
            Err(payload) => {
                slot.payload = Some(payload);
                self.stats.rx_alloc_dropped.add(1);
                Packet::Dropping
            }
        }
    }
}

/// How long a frame of `len` bytes is without its padding. The first `start` bytes are in `buffer`,
/// after `headroom`.
#[cold]
fn unpadded(heads: &PagePool, buffer: &Fragment, headroom: u32, start: u32, len: u32) -> u32 {
    heads.sync_for_cpu(buffer.netmem(), buffer.offset() + headroom, start);
    frame::unpadded_len(buffer.bytes(headroom, start)).map_or(len, |unpadded| len.min(unpadded))
}
