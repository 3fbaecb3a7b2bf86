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
    device::{
        DeviceRef,
        Features, //
    },
    napi,
    page_pool::{
        Fragment,
        PagePool, //
    },
    skb::{
        self,
        SkBuff, //
    },
};

use super::ring::{
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
}

impl Packet {
    /// Adds what a descriptor brought.
    #[inline]
    pub(super) fn add(self, slot: &mut Slot, write_back: &WriteBack, with: &Maker<'_, '_>) -> Self {
        let len = u32::from(write_back.packet_len());

        match (self, &with.pools.headers) {
            (Self::Dropping, _) => Self::Dropping,
            (Self::Assembling(skb), Some(_)) => with.payload(skb, slot, 0, len),
            (Self::Assembling(skb), None) => with.payload(skb, slot, skb::HEADROOM, len),
            (Self::Between, None) => with.whole(slot, len),
            (Self::Between, Some(headers)) => match write_back.layout() {
                Layout::Split { header, payload } => {
                    with.split(slot, headers, u32::from(header), u32::from(payload))
                }
                // Nobody could read its headers; or its payload is where no reader looks for it.
                _ if with.pools.unreadable => {
                    with.stats.rx_unsplit_dropped.add(1);
                    Self::Dropping
                }
                Layout::HeaderOnly { header } => with.head(slot, headers, u32::from(header)),
                Layout::Unsplit { .. } | Layout::HeaderOverflow { .. } => {
                    with.unsplit(slot, headers, len)
                }
            },
        }
    }

    /// Ends the packet with what its last descriptor says. Returns the skb and its length.
    #[inline]
    pub(super) fn finish(
        self,
        write_back: &WriteBack,
        features: Features,
        queue: u16,
        with: &Maker<'_, '_>,
    ) -> Option<(SkBuff, u32)> {
        let Self::Assembling(mut skb) = self else {
            return None;
        };
        let unreadable = with.pools.unreadable;
        let stats = with.stats;

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
        if unreadable && skb.fragments() != 0 && checksum != Checksum::Verified {
            // The core would have to read it to verify it.
            stats.rx_unverified_dropped.add(1);
            return None;
        }
        if checksum == Checksum::Verified && (unreadable || features.contains(Features::RXCSUM)) {
            skb.set_checksum_verified();
        }
        let rss = write_back.rss_type();
        if rss.is_hashed() && features.contains(Features::RXHASH) {
            skb.set_hash(write_back.rss_hash(), rss.has_ports());
        }

        let len = skb.len();
        stats.rx_packets.add(1);
        skb.set_rx_queue(queue);
        skb.set_protocol(with.dev);
        Some((skb, len))
    }
}

impl Maker<'_, '_> {
    /// Starts an skb for a packet whose headers the device has split from its payload.
    #[inline]
    fn split(&self, slot: &mut Slot, headers: &PagePool, header: u32, payload: u32) -> Packet {
        self.stats.rx_split.add(1);

        let payload = if header + payload <= limits::MIN_FRAME {
            unpadded(slot, headers, header, payload)
        } else {
            payload
        };
        match self.head(slot, headers, header) {
            Packet::Assembling(skb) if payload != 0 => self.payload(skb, slot, 0, payload),
            packet => packet,
        }
    }

    /// Starts an skb around the slot's header buffer.
    #[inline]
    fn head(&self, slot: &mut Slot, headers: &PagePool, len: u32) -> Packet {
        if len < limits::ETHERNET_HEADER {
            self.stats.rx_errors.add(1);
            return Packet::Dropping;
        }
        let Some(header) = slot.header.take() else {
            return Packet::Dropping;
        };

        headers.sync_for_cpu(header.netmem(), header.offset() + skb::HEADROOM, len);
        match SkBuff::build(header, len, self.napi) {
            Ok(skb) => Packet::Assembling(skb),
            Err(header) => {
                slot.header = Some(header);
                self.stats.rx_alloc_dropped.add(1);
                Packet::Dropping
            }
        }
    }

    /// Starts an skb around a whole page.
    #[inline]
    fn whole(&self, slot: &mut Slot, len: u32) -> Packet {
        if len < limits::ETHERNET_HEADER {
            self.stats.rx_errors.add(1);
            return Packet::Dropping;
        }
        let Some(page) = slot.payload.take() else {
            return Packet::Dropping;
        };

        self.pools.payloads.sync_for_cpu(&page, skb::HEADROOM, len);
        let page = match Fragment::from_page(page) {
            Ok(page) => page,
            Err(netmem) => {
                slot.payload = Some(netmem);
                return Packet::Dropping;
            }
        };
        match SkBuff::build(page, len, self.napi) {
            Ok(skb) => Packet::Assembling(skb),
            // The page goes back to its pool.
            Err(_) => {
                self.stats.rx_alloc_dropped.add(1);
                Packet::Dropping
            }
        }
    }

    /// Starts an skb for a packet that the device left in a readable payload buffer: its headers
    /// are copied to the header buffer, the rest stays where it is.
    fn unsplit(&self, slot: &mut Slot, headers: &PagePool, len: u32) -> Packet {
        let (Some(mut header), Some(page)) = (slot.header.take(), slot.payload.take()) else {
            return Packet::Dropping;
        };

        self.pools.payloads.sync_for_cpu(&page, 0, len);
        let pull = match Fragment::from_page(page) {
            Ok(page) => {
                let start = page.bytes(0, len.min(HEADER_SIZE));
                let pull = skb::header_len(self.dev, start).min(len);

                header.write(skb::HEADROOM, page.bytes(0, pull));
                slot.payload = page.into_page().ok();
                pull
            }
            Err(netmem) => {
                slot.header = Some(header);
                slot.payload = Some(netmem);
                return Packet::Dropping;
            }
        };

        slot.header = Some(header);
        match self.head(slot, headers, pull) {
            Packet::Assembling(skb) if len > pull => self.payload(skb, slot, pull, len - pull),
            packet => packet,
        }
    }

    /// Adds `len` bytes at `offset` of the slot's payload buffer.
    #[inline]
    fn payload(&self, mut skb: SkBuff, slot: &mut Slot, offset: u32, len: u32) -> Packet {
        let Some(payload) = slot.payload.take() else {
            return Packet::Dropping;
        };

        self.pools.payloads.sync_for_cpu(&payload, offset, len);
        match skb.add_fragment(payload, offset, len, self.pools.page_size.bytes()) {
            Ok(()) => Packet::Assembling(skb),
            Err(payload) => {
                slot.payload = Some(payload);
                self.stats.rx_alloc_dropped.add(1);
                Packet::Dropping
            }
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
    match frame::unpadded_len(buffer.bytes(skb::HEADROOM, header)) {
        Some(len) => payload.min(len.saturating_sub(header)),
        None => payload,
    }
}
