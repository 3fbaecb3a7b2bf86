// SPDX-License-Identifier: GPL-2.0

//! The state of the control path.

use core::ops::Range;

use i82576::{
    five_tuple,
    ring,
    rss,
    timestamping::Timestamping, //
};
use kernel::prelude::*;
use net::{
    ethtool::{
        Coalesce,
        Pause, //
    },
    xdp::Program, //
};

use super::Adapter;
use crate::{
    counters::Counters,
    ethtool::coalesce,
    filter::Filter,
    hw::{
        Advertised,
        Hw, //
    },
    rx,
    tx,
    xsk::XskQueues, //
};

/// Default number of descriptors in a ring.
const RX_RING: u16 = 1024;
const TX_RING: u16 = 512;

const _: () = assert!(TX_RING >= tx::RING_MIN);

/// The MTU of a new interface, in bytes (`ether_setup()`).
const MTU: u32 = 1500;

/// The settings that rings depend on.
#[derive(Copy, Clone)]
pub(crate) struct Settings {
    /// Descriptors of RX rings.
    pub(crate) rx_len: ring::Ring,
    /// Descriptors of TX rings.
    pub(crate) tx_len: ring::Ring,
    /// Headers are split from payload.
    pub(crate) split: bool,
    /// The longest packet, in bytes.
    pub(crate) mtu: u32,
    /// Buffers have room for what XDP programs do.
    pub(crate) xdp: bool,
}

impl Settings {
    /// How RX rings are laid out.
    pub(crate) fn layout(&self) -> rx::Layout {
        rx::Layout::new(self.rx_len, self.mtu, self.split, self.xdp)
    }

    /// Rings for `other` are the same.
    pub(super) fn same_rings(&self, other: &Self) -> bool {
        self.layout() == other.layout() && self.tx_len == other.tx_len
    }
}

/// The state of the control path, protected by the instance lock.
pub(crate) struct Control {
    /// The queue pairs of the device.
    pub(crate) pairs: u16,
    /// How many of them are in use: the first ones, at least one.
    pub(crate) in_use: u16,
    /// How the interrupts of each queue pair are coalesced, in use or not.
    pub(crate) coalesce: KVec<Coalesce>,
    pub(crate) settings: Settings,
    pub(crate) key: rss::Key,
    pub(crate) table: rss::IndirectionTable,
    /// What RSS hashes while header split is off.
    pub(crate) hash_fields: rss::HashFields,
    /// Queues that use the memory of AF_XDP sockets.
    pub(crate) xsk: XskQueues,
    /// The XDP program.
    pub(crate) program: Option<Program>,
    /// Which frames are received.
    pub(super) filter: Filter,
    /// Flow steering rules; `None` if the device has no five-tuple filters.
    pub(crate) five_tuples: Option<five_tuple::Table>,
    pub(crate) pause: Pause,
    /// Which frames get hardware timestamps.
    pub(crate) timestamping: Timestamping,
    /// The link modes to advertise.
    pub(crate) advertised: Option<Advertised>,
    pub(crate) counters: Counters,
    /// Whether the last features that were wanted had VLAN insertion on or off alone.
    pub(super) fixed_vlan_insert: bool,
    /// Whether the device segments UDP, once that is known.
    pub(super) segments_udp: Option<bool>,
    /// The mode of the LEDs before they were used to identify the port.
    pub(crate) saved_lights: u32,
}

impl Control {
    /// For a device with that many queue pairs, of which `in_use` are used at first, and which has
    /// five-tuple filters or not.
    pub(crate) fn new(pairs: u32, in_use: u32, five_tuples: bool) -> Result<Self> {
        let in_use = u16::try_from(in_use)?;
        let mut key = [0; rss::KEY_SIZE];
        net::random_bytes(&mut key);

        Ok(Self {
            pairs: u16::try_from(pairs)?,
            in_use,
            coalesce: KVec::from_elem(coalesce::DEFAULT, pairs as usize, GFP_KERNEL)?,
            settings: Settings {
                rx_len: ring::Ring::new(RX_RING).ok_or(EINVAL)?,
                tx_len: ring::Ring::new(TX_RING).ok_or(EINVAL)?,
                split: false,
                mtu: MTU,
                xdp: false,
            },
            key: rss::Key::new(key),
            table: rss::IndirectionTable::spread(in_use),
            hash_fields: rss::HashFields::ALL,
            xsk: XskQueues::NONE,
            program: None,
            filter: Filter::NONE,
            five_tuples: five_tuples.then_some(five_tuple::Table::EMPTY),
            pause: Pause {
                autoneg: false,
                rx: false,
                tx: false,
            },
            timestamping: Timestamping::default(),
            advertised: None,
            counters: Counters::default(),
            fixed_vlan_insert: false,
            segments_udp: None,
            saved_lights: 0,
        })
    }

    /// What RSS hashes. While header split is on, a queue can be bound, and must not get packets that
    /// cannot be split: only TCP is hashed, and everything else goes to queue 0.
    pub(crate) fn effective_hash_fields(&self) -> rss::HashFields {
        if self.settings.split {
            rss::HashFields::TCP
        } else {
            self.hash_fields
        }
    }

    /// Programs RSS.
    pub(crate) fn program_rss(&self, hw: &Hw<'_>) {
        hw.set_rss(&self.key, &self.table, self.effective_hash_fields());
    }
}

impl Adapter<'_> {
    /// Polls queue pairs `range` that run. What came before their interrupts were enabled raised
    /// none; and a ring that memory was short for raises none at all.
    pub(crate) fn poll_pairs(&self, range: Range<u16>) {
        let range = usize::from(range.start)..usize::from(range.end);

        for napi in self.schedulers.get(range).unwrap_or_default() {
            napi.schedule();
        }
    }
}
