// SPDX-License-Identifier: GPL-2.0

//! RX mode: which frames the device receives besides those to its own address.

use i82576::{
    filter::{
        self,
        Table, //
    },
    limits, //
};
use net::{
    device::MacAddress,
    rx_mode::RxMode, //
};

/// Addresses beside the device's own that it filters exactly.
const ADDRESSES: usize = limits::RECEIVE_ADDRESSES_MODEL as usize - 1;

/// The RX mode that users and protocols requested, as the device implements it. A reset clears it.
pub(crate) struct Filter {
    addresses: [Option<MacAddress>; ADDRESSES],
    multicast: Table,
    all_unicast: bool,
    all_multicast: bool,
    promiscuous: bool,
}

impl Filter {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        addresses: [None; ADDRESSES],
        multicast: Table::EMPTY,
        all_unicast: false,
        all_multicast: false,
        promiscuous: false,
    };

    /// Applies a requested mode. More unicast addresses than the device has registers for make it
    /// receive all: the core drops what is too much.
    pub(crate) fn set(&mut self, mode: &RxMode<'_>) {
        let mut unicast = mode.unicast.clone();

        for slot in &mut self.addresses {
            *slot = unicast.next();
        }
        self.all_unicast = unicast.next().is_some();
        self.multicast = Table::EMPTY;
        for address in mode.multicast.clone() {
            self.multicast.set(filter::multicast_bit(address), true);
        }
        self.all_multicast = mode.all_multicast;
        self.promiscuous = mode.promiscuous;
    }

    /// Addresses beside the device's own, in the order of its registers.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Option<MacAddress>> + '_ {
        self.addresses.iter().copied()
    }

    /// Hashes of multicast addresses.
    pub(crate) fn multicast(&self) -> &Table {
        &self.multicast
    }

    /// Whether all unicast frames are received.
    pub(crate) fn all_unicast(&self) -> bool {
        self.all_unicast || self.promiscuous
    }

    /// Whether all multicast frames are received.
    pub(crate) fn all_multicast(&self) -> bool {
        self.all_multicast || self.promiscuous
    }

    /// Whether frames of all VLANs are received.
    pub(crate) fn all_vlans(&self) -> bool {
        self.promiscuous
    }
}
