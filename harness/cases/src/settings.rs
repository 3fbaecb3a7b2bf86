// SPDX-License-Identifier: MIT OR Apache-2.0

//! Settings of interfaces, as `ip` and `ethtool` make them.

use protocol::{
    ethtool::{SetFeatures, TestSelf},
    link::{SetMtu, SetReceiveMode, SetUp},
    rings::{RingChange, SetChannels, SetRings, TcpDataSplit},
    rss::{Indirection, RssChange},
};

use crate::{CaseError, Result, Station, Testbed};

impl Testbed {
    /// Brings an interface up or down.
    pub fn set_interface(&self, station: Station, up: bool) -> Result {
        Ok(self.guest.call(SetUp::on(station, up))?)
    }

    /// Takes an interface down, and brings it up again.
    pub fn down_and_up(&self, station: Station) -> Result {
        self.set_interface(station, false)?;
        self.set_interface(station, true)
    }

    /// Changes an MTU.
    pub fn set_mtu(&self, station: Station, mtu: u32) -> Result {
        Ok(self.guest.call(SetMtu::on(station, mtu))?)
    }

    /// Turns header split on or off.
    pub fn set_header_split(&self, station: Station, split: TcpDataSplit) -> Result {
        self.change_rings(station, None, None, Some(split))
    }

    /// Changes the number of receive descriptors.
    pub fn set_receive_ring(&self, station: Station, descriptors: u32) -> Result {
        self.change_rings(station, Some(descriptors), None, None)
    }

    /// Changes the number of transmit descriptors.
    pub fn set_transmit_ring(&self, station: Station, descriptors: u32) -> Result {
        self.change_rings(station, None, Some(descriptors), None)
    }

    /// Changes the numbers of receive and transmit descriptors at once.
    pub fn set_rings(&self, station: Station, rx: u32, tx: u32) -> Result {
        self.change_rings(station, Some(rx), Some(tx), None)
    }

    fn change_rings(
        &self,
        station: Station,
        rx: Option<u32>,
        tx: Option<u32>,
        tcp_data_split: Option<TcpDataSplit>,
    ) -> Result {
        let change = RingChange {
            rx,
            tx,
            tcp_data_split,
            ..RingChange::default()
        };
        Ok(self.guest.call(SetRings::on(station, change))?)
    }

    /// Changes the number of queue pairs.
    pub fn set_channels(&self, station: Station, combined: u32) -> Result {
        Ok(self.guest.call(SetChannels::on(station, combined))?)
    }

    /// Turns features on or off, by their kernel names.
    pub fn set_features(&self, station: Station, features: &[(&str, bool)]) -> Result {
        Ok(self.guest.call(SetFeatures::on(
            station,
            features
                .iter()
                .map(|&(name, on)| (name.to_owned(), on))
                .collect(),
        ))?)
    }

    /// Makes a NIC receive frames for multicast groups it has not joined, such as its peer's
    /// messages to routers.
    pub fn receive_all_multicast(&self, station: Station) -> Result {
        Ok(self
            .guest
            .call(SetReceiveMode::on(station, None, Some(true)))?)
    }

    /// Steers all TCP to these queues: every flow reaches one of them.
    pub fn steer(&self, station: Station, queues: &[u32]) -> Result {
        let entries = self.rss(station)?.indirection.len();
        let table = queues.iter().copied().cycle().take(entries).collect();
        let change = RssChange {
            indirection: Some(Indirection::Queues(table)),
            ..RssChange::default()
        };
        Ok(self.set_rss(station, change)?)
    }

    /// Runs the self-tests that interrupt traffic; all of them must pass.
    pub fn test_offline(&self, station: Station) -> Result {
        let found = self.guest.call(TestSelf::on(station, true))?;
        match found.results.values().all(|&result| result == 0) {
            true => Ok(()),
            false => Err(CaseError::new(format!("not all tests pass: {found:?}"))),
        }
    }
}
