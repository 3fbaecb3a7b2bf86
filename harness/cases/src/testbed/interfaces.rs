// SPDX-License-Identifier: MIT OR Apache-2.0

//! The stations' interfaces: found, named, brought up with their addresses, awaited.

use protocol::{
    Ns,
    link::{AddAddress, AddVlan, MoveInterface, WaitCarrier, WaitInterface},
    net::Prefix,
};
use vm::End;

use super::{PATIENCE_MS, Testbed};
use crate::{Family, Result, Station};

impl Testbed {
    /// Waits for a station's new interface, and moves it into its namespace.
    pub fn take_in(&self, station: Station) -> Result {
        let found = match (&self.nic.device, station.end) {
            // They have random addresses, and are there as soon as the module is loaded.
            (None, End::Local) => "eth0".to_owned(),
            (None, End::Peer) => "eth1".to_owned(),
            (Some(_), _) => {
                self.guest
                    .call(WaitInterface {
                        ns: Ns::Local,
                        mac: station.mac(),
                        timeout_ms: PATIENCE_MS,
                    })?
                    .name
            }
        };
        if let Some(queue) = self.transmit_queue {
            // Before it moves: the guest's sysfs shows only one namespace.
            self.set_tx_queue(&found, queue, "xps_cpus", "1")?;
        }
        self.guest.call(MoveInterface {
            from: Ns::Local,
            interface: found,
            to: station.ns,
            rename: Some(station.name()),
        })?;
        Ok(())
    }

    /// Brings both interfaces up, with their addresses, and waits for the link.
    pub fn set_up(&self) -> Result {
        for station in self.here(self.stations()) {
            self.set_up_station(station)?;
        }
        self.wait_carrier(true)
    }

    /// Brings one interface up, with its addresses.
    pub fn set_up_station(&self, station: Station) -> Result {
        self.set_mtu(station, self.mtu)?;
        self.set_interface(station, true)?;
        for (family, length) in [(Family::V4, 24), (Family::V6, 64)] {
            self.guest.call(AddAddress::on(
                station,
                Prefix {
                    address: station.address(family),
                    length,
                },
            ))?;
        }
        Ok(())
    }

    /// Brings up the NICs of the control wire.
    pub(crate) fn set_up_control(&self) -> Result {
        let stations = [Station::CONTROL, Station::CONTROL_PEER];
        for station in self.here(stations) {
            self.take_in(station)?;
            self.set_up_station(station)?;
        }
        for station in self.here(stations) {
            self.wait_carrier_of(station, true)?;
        }
        Ok(())
    }

    /// Puts both stations on a VLAN, too ([`Station::on_vlan`]).
    pub fn add_vlan(&self, id: u16) -> Result {
        for station in self.stations() {
            let on_vlan = station.on_vlan();
            self.guest.call(AddVlan::on(station, on_vlan.name(), id))?;
            self.set_up_station(on_vlan)?;
        }
        Ok(())
    }

    /// Waits until both NICs see the link, or until neither does.
    pub fn wait_carrier(&self, carrier: bool) -> Result {
        for station in self.here(self.stations()) {
            self.wait_carrier_of(station, carrier)?;
        }
        Ok(())
    }

    /// Waits until one NIC sees the link, or does not.
    pub fn wait_carrier_of(&self, station: Station, carrier: bool) -> Result {
        Ok(self
            .guest
            .call(WaitCarrier::on(station, carrier, PATIENCE_MS))?)
    }
}
