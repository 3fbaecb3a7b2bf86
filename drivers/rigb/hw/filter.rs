// SPDX-License-Identifier: GPL-2.0

//! The device's registers: RX filters and VLAN offload.

use i82576::{
    filter::Table,
    regs, //
};
use net::{
    device::MacAddress,
    features::Features, //
};

use super::Hw;
use crate::filter::Filter;

impl Hw<'_> {
    /// The MAC address that the device filters for.
    pub(crate) fn mac_address(&self) -> MacAddress {
        regs::rah::decode(self.read(regs::ral(0)), self.read(regs::rah(0))).unwrap_or_default()
    }

    /// Sets the MAC address that the device filters for.
    pub(crate) fn set_mac_address(&self, addr: &MacAddress) {
        self.set_address(0, Some(*addr));
    }

    /// Receives frames for `addr` and no others, until the filter is set again.
    pub(crate) fn receive_only(&self, addr: &MacAddress) {
        self.set_filter(&Filter::NONE, Features::NONE);
        self.modify_rctl(regs::rctl::BAM, 0);
        self.set_mac_address(addr);
    }

    fn set_address(&self, n: u16, addr: Option<MacAddress>) {
        let (low, high) = addr.map_or((0, 0), regs::rah::encode);

        // The entry is not valid while it changes.
        self.write(regs::rah(n), 0);
        self.write(regs::ral(n), low);
        self.write(regs::rah(n), high);
    }

    /// Sets which frames are received, with the `features` that affect it.
    pub(crate) fn set_filter(&self, filter: &Filter, features: Features) {
        for (n, addr) in (1u16..).zip(filter.addresses()) {
            self.set_address(n, addr);
        }
        for (n, value) in (0u16..).zip(filter.multicast().registers()) {
            self.write(regs::mta(n), value);
        }

        let mut set = 0;
        if filter.all_unicast() {
            set |= regs::rctl::UPE;
        }
        if filter.all_multicast() {
            set |= regs::rctl::MPE;
        }
        if features.contains(Features::VLAN_FILTER) && !filter.all_vlans() {
            set |= regs::rctl::VFE;
        }
        self.modify_rctl(regs::rctl::UPE | regs::rctl::MPE | regs::rctl::VFE, set);
    }

    /// Sets whether the device handles VLAN tags: one bit enables both insertion and stripping.
    pub(crate) fn set_vlan_tags(&self, features: Features) {
        let set = if features.contains(Features::VLAN_STRIP) {
            regs::ctrl::VME
        } else {
            0
        };

        self.modify_ctrl(regs::ctrl::VME, set);
    }

    /// Sets the VLANs whose frames are received while VLANs are filtered.
    pub(crate) fn set_vlans(&self, vlans: &Table) {
        for (n, value) in (0u16..).zip(vlans.registers()) {
            self.write(regs::vfta(n), value);
        }
    }
}
