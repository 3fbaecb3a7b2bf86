// SPDX-License-Identifier: MIT OR Apache-2.0

//! What is done to NICs from outside of the guest.

use super::Testbed;
use crate::{Result, Station};

impl Testbed {
    /// Has the root port above a NIC report an error, by QEMU's name for it.
    pub fn inject_bus_error(&self, station: Station, error: &str) -> Result {
        let (wire, end) = (station.wire, station.end);
        Ok(self.guest.inject_bus_error(wire, end, error)?)
    }

    /// Unplugs a NIC, from outside. The guest releases it some time later.
    pub fn unplug(&self, station: Station) -> Result {
        self.guest.unplug(station.wire, station.end)?;
        Ok(())
    }

    /// Waits until a NIC is unplugged.
    pub fn wait_unplugged(&self, station: Station) -> Result {
        let plugged = || self.guest.is_plugged(station.wire, station.end);
        self.wait_until(1, || Ok(u64::from(!plugged()?)))?;
        Ok(())
    }

    /// Plugs a NIC in that was unplugged.
    pub fn plug(&self, station: Station) -> Result {
        Ok(self.guest.plug(station.wire, station.end)?)
    }

    /// Sets a NIC's link down or up, from outside.
    pub fn set_link(&self, station: Station, up: bool) -> Result {
        Ok(self.guest.set_link(station.wire, station.end, up)?)
    }
}
