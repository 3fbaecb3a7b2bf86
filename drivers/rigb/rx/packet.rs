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
    features::Features,
    fragment::Fragment,
    napi::Receive,
    skb::{
        self,
        Hash,
        RxMetadata,
        RxSkb, //
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
    Assembling(RxSkb),
    /// One of which no skb is built: it is dropped, or a program is to see it first (`Xdp`).
    NoSkb,
}

impl Packet {
    /// Takes what there is, and leaves none.
    #[inline]
    pub(super) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::Between)
    }
}

/// Builds packets from what descriptors bring.
pub(super) struct RxBuilder<'a, 'bound> {
    pub(super) pools: &'a Pools<'bound>,
    pub(super) napi: &'a Receive<'a, Adapter<'bound>>,
    pub(super) stats: &'a QueueStats,
    /// The features in use.
    pub(super) features: Features,
    pub(super) queue: u16,
}

impl<'bound> RxBuilder<'_, 'bound> {
    /// Starts a packet with what its first descriptor brought, at `timestamp` if it has one; `None` if
    /// it is dropped.
    #[inline]
    pub(super) fn start(
        &self,
        slot: &mut Slot,
        write_back: &WriteBack,
        timestamp: Option<u64>,
    ) -> Option<RxSkb> {
        let len = u32::from(write_back.packet_len());

        match &self.pools.xdp {
            Some(xdp) if xdp.has_program() => {
                return self.program(xdp, slot, write_back, timestamp);
            }
            _ => {}
        }
        let Some(payloads) = &self.pools.payloads else {
            return self.whole(slot, len);
        };
        match write_back.layout() {
            Layout::Split { header, payload } => {
                self.split(slot, payloads, u32::from(header), u32::from(payload))
            }
            // Nobody could read its headers; or its payload is where no reader looks for it.
            _ if payloads.unreadable => {
                self.stats.rx_unsplit_dropped.add(1);
                None
            }
            Layout::HeaderOnly { header } => self.long(slot, payloads, u32::from(header)),
            Layout::Unsplit { .. } | Layout::HeaderOverflow { .. } => {
                self.unsplit(slot, payloads, len)
            }
        }
    }

    /// Adds what a further descriptor brought to `packet`; `None` if it is dropped.
    #[inline]
    pub(super) fn add(
        &self,
        packet: Packet,
        slot: &mut Slot,
        write_back: &WriteBack,
        timestamp: Option<u64>,
    ) -> Option<RxSkb> {
        let Packet::Assembling(skb) = packet else {
            return self.add_for_program(slot, write_back, timestamp);
        };
        let Some(payloads) = &self.pools.payloads else {
            // Longer than the MTU.
            self.stats.rx_errors.add(1);
            return None;
        };

        self.payload(skb, slot, payloads, 0, u32::from(write_back.packet_len()))
    }

    /// Keeps a packet that continues in the next descriptor. The device fills a buffer before it uses the
    /// next one: if this one's is not full, the packet is dropped.
    #[inline]
    pub(super) fn go_on(&self, skb: Option<RxSkb>, write_back: &WriteBack) -> Packet {
        let len = u32::from(write_back.packet_len());

        match &self.pools.payloads {
            Some(payloads) if len != payloads.size.bytes() => {
                self.stats.rx_errors.add(1);
                if let Some(xdp) = &self.pools.xdp {
                    xdp.forget();
                }
                Packet::NoSkb
            }
            _ => skb.map_or(Packet::NoSkb, Packet::Assembling),
        }
    }

    /// Ends a packet, which may be `assembled` of several descriptors, with what the last one says of it,
    /// and when it was received, and hands it up. Returns its length, or 0 if it is dropped.
    #[inline]
    pub(super) fn finish(
        &self,
        mut skb: RxSkb,
        assembled: bool,
        write_back: &WriteBack,
        timestamp: Option<u64>,
    ) -> u32 {
        let unreadable = self.pools.unreadable();
        let (features, stats) = (self.features, self.stats);

        if write_back.frame_error() {
            stats.rx_errors.add(1);
            return 0;
        }

        // If it is not wanted the core verifies instead, but it cannot where it cannot read.
        let verify = unreadable || features.contains(Features::RXCSUM);
        let checksum = if verify && !(assembled && has_more(&skb)) {
            write_back.checksum()
        } else {
            Checksum::None
        };
        let metadata = metadata(&mut skb, write_back, features, checksum, self.queue, stats);

        if unreadable && checksum != Checksum::Verified && skb.fragments() != 0 {
            // The core would have to read it to verify it.
            stats.rx_unverified_dropped.add(1);
            return 0;
        }
        if let Some(time) = timestamp {
            skb.set_timestamp(time);
        }
        stats.rx_packets.add(1);

        let len = skb.len();
        self.napi.receive(skb, &metadata);
        len
    }
}

/// Whether a packet of several descriptors is longer than its IP header says: one of them may be marked as
/// done without having been filled. The checksum was not verified over these bytes, then.
// noinline: packets of one descriptor keep the registers.
#[inline(never)]
fn has_more(skb: &RxSkb) -> bool {
    skb.head::<{ frame::LOOKED_AT }>()
        .and_then(|headers| frame::unpadded_len(&headers))
        .is_none_or(|len| skb.len() > len)
}

/// What the last descriptor of a packet that goes up says of it, beside its `checksum`.
// See `Receive::receive`.
#[inline(always)]
pub(super) fn metadata(
    skb: &mut RxSkb,
    write_back: &WriteBack,
    features: Features,
    checksum: Checksum,
    queue: u16,
    stats: &QueueStats,
) -> RxMetadata {
    let checksum = match checksum {
        Checksum::Verified => {
            stats.rx_csum_verified.add(1);
            skb::Checksum::Unnecessary
        }
        Checksum::Bad => {
            stats.rx_csum_bad.add(1);
            skb::Checksum::None
        }
        Checksum::None => {
            stats.rx_csum_none.add(1);
            skb::Checksum::None
        }
    };
    let rss = write_back.rss_type();
    let hash = match write_back.rss_hash() {
        _ if !features.contains(Features::RXHASH) => Hash::None,
        hash if rss.has_ports() => Hash::L4(hash),
        hash if rss.is_hashed() => Hash::L3(hash),
        _ => Hash::None,
    };

    if write_back.vlan_packet() {
        skb.set_vlan_tag(write_back.vlan_tag());
    }
    RxMetadata::new(queue)
        .with_checksum(checksum)
        .with_hash(hash)
}

impl<'bound> RxBuilder<'_, 'bound> {
    /// Starts an skb for a packet whose headers the device has split from its payload.
    #[inline]
    fn split(
        &self,
        slot: &mut Slot,
        payloads: &Payloads<'bound>,
        header: u32,
        payload: u32,
    ) -> Option<RxSkb> {
        self.stats.rx_split.add(1);

        let len = self.unpadded(slot, header, header + payload);
        let payload = len.saturating_sub(header);
        let skb = slot
            .head
            .as_ref()
            .and_then(|head| RxSkb::copy_headers(head, self.pools.headroom, header, self.napi));

        // What the NAPI's skb has no room for is left where it is.
        match skb.or_else(|| self.long(slot, payloads, header)) {
            Some(skb) if payload != 0 => self.payload(skb, slot, payloads, 0, payload),
            Some(mut skb) if payloads.unreadable => {
                skb.set_unreadable();
                Some(skb)
            }
            skb => skb,
        }
    }

    /// Starts an skb for headers that are longer than usual, or for a packet that has nothing else.
    #[cold]
    #[inline(never)]
    fn long(&self, slot: &mut Slot, payloads: &Payloads<'bound>, header: u32) -> Option<RxSkb> {
        // The device has no more room there: the rest is from before.
        if header > HEADER_SIZE {
            self.stats.rx_errors.add(1);
            return None;
        }
        if !payloads.unreadable {
            return self.head(slot, header);
        }
        let headroom = self.pools.headroom;
        let head = slot.head.as_ref();
        let skb =
            head.and_then(|head| RxSkb::copy_headers_apart(head, headroom, header, self.napi));

        if skb.is_none() {
            self.keep_head(slot, header);
        }
        skb
    }

    /// Starts an skb for a packet that is in the slot's head buffer as a whole.
    #[inline]
    fn whole(&self, slot: &mut Slot, len: u32) -> Option<RxSkb> {
        self.head(slot, self.unpadded(slot, len, len))
    }

    /// Starts an skb around the slot's head buffer.
    #[inline]
    pub(super) fn head(&self, slot: &mut Slot, len: u32) -> Option<RxSkb> {
        let pools = self.pools;

        let skb = RxSkb::build(&mut slot.head, pools.headroom, len, self.napi);

        if skb.is_none() {
            self.keep_head(slot, len);
        }
        skb
    }

    /// Takes note of a packet that is dropped, as no skb with `len` linear bytes could be built.
    #[cold]
    #[inline(never)]
    fn keep_head(&self, slot: &Slot, len: u32) {
        if len < limits::ETHERNET_HEADER {
            self.stats.rx_errors.add(1);
        } else {
            self.stats.rx_alloc_dropped.add(1);
        }
        // It is posted again.
        if let Some(head) = &slot.head {
            head.sync_for_device();
        }
    }

    /// Starts an skb for a packet that the device left in a readable payload buffer: its headers
    /// are copied to the head buffer, the rest stays where it is.
    // noinline: the usual way keeps the registers.
    #[inline(never)]
    fn unsplit(&self, slot: &mut Slot, payloads: &Payloads<'bound>, len: u32) -> Option<RxSkb> {
        let page = slot.payload.take()?;

        page.sync_for_cpu(0, len);
        let page = match Fragment::from_page(page) {
            Ok(page) => page,
            Err(netmem) => {
                slot.payload = Some(netmem);
                return None;
            }
        };
        let pull = page.header_len(self.napi.device(), len.min(HEADER_SIZE));
        let skb = RxSkb::copy(&mut slot.head, &page, pull, self.napi);

        if skb.is_none() {
            self.keep_head(slot, pull);
        }
        slot.payload = page.into_page().ok();
        let skb = match skb {
            Some(skb) if len > pull => self.payload(skb, slot, payloads, pull, len - pull),
            skb => skb,
        };
        if let Some(page) = &slot.payload {
            // It is posted again.
            page.sync_for_device(0, len);
        }
        skb
    }

    /// The length of a frame of `len` bytes without the padding of a short one. The first `start`
    /// bytes are in the head buffer.
    ///
    /// In a payload buffer of a bound queue it would look like data; and GRO merges no packet that
    /// is longer than its IP header says.
    #[inline]
    fn unpadded(&self, slot: &Slot, start: u32, len: u32) -> u32 {
        if len > limits::MIN_FRAME {
            len
        } else {
            unpadded(self.pools, slot, start, len)
        }
    }

    /// Adds `len` bytes at `offset` of the slot's payload buffer.
    // Inlined: for each packet with payload, a call would spill as much as it saves.
    #[inline(always)]
    fn payload(
        &self,
        mut skb: RxSkb,
        slot: &mut Slot,
        payloads: &Payloads<'bound>,
        offset: u32,
        len: u32,
    ) -> Option<RxSkb> {
        if skb.add_fragment(
            &mut slot.payload,
            offset,
            len,
            payloads.size.bytes(),
            self.napi,
        ) {
            return Some(skb);
        }
        self.stats.rx_alloc_dropped.add(1);
        None
    }
}

/// How long a frame of `len` bytes is without its padding. The first `start` bytes are in the head
/// buffer of `slot`.
#[cold]
fn unpadded(pools: &Pools<'_>, slot: &Slot, start: u32, len: u32) -> u32 {
    let Some(buffer) = &slot.head else {
        return len;
    };
    let at = buffer.offset() + pools.headroom;

    // The frame is short, and the rest of this is not looked at.
    let mut frame = [0; limits::MIN_FRAME as usize];
    let start = start.min(limits::MIN_FRAME);

    buffer.netmem().sync_for_cpu(at, start);
    let read = buffer.read(pools.headroom, &mut frame[..start as usize]);
    frame::unpadded_len(&frame[..read]).map_or(len, |unpadded| len.min(unpadded))
}
