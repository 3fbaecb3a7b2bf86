// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two NICs on one wire: the one under test, and its peer in a namespace of its own.

mod end;
mod interfaces;
mod modules;
mod outside;
mod ports;

use std::sync::atomic::{AtomicU16, Ordering};

use protocol::link::{Interface, ListInterfaces};
use vm::{End, Guest, Images};

use crate::{Ability, CaseError, Nic, Result, Station, unfinished::Unfinished};

pub(crate) use self::modules::ENGINE_DRIVER;
pub use self::ports::PORTS;

/// How long the guest may take over something that should take milliseconds.
pub const PATIENCE_MS: u64 = 60_000;

/// A booted guest with both NICs up.
#[derive(Debug)]
pub struct Testbed {
    // Dropped before the guest, which says where its logs are when a case has panicked.
    pub(crate) unfinished: Option<Unfinished>,
    /// The guest.
    pub guest: Guest,
    /// The NIC under test.
    pub local: Station,
    /// The other one, in its own namespace.
    pub peer: Station,
    pub(crate) nic: Nic,
    pub(crate) transmit_queue: Option<u32>,
    pub(crate) mtu: u32,
    /// The end of the wires that this guest has, if the other one is another guest's.
    pub(crate) end: Option<End>,
    pub(crate) ports: AtomicU16,
}

impl Testbed {
    /// Whether the NIC under test can do this, for what a case looks at by the way. What it is about
    /// is in [`Options::needs`](crate::Options::needs).
    pub fn can(&self, ability: Ability) -> Result<bool> {
        let lacking = Images::from_env()?.lacks(ability.kernel_option())?;
        Ok(self.nic.can(ability) && lacking.is_none())
    }

    /// The NIC under test.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    /// The driver's module.
    #[must_use]
    pub fn driver(&self) -> &str {
        self.nic.driver()
    }

    /// The MTU of both ends.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Both stations, in the order local, peer.
    #[must_use]
    pub fn stations(&self) -> [Station; 2] {
        [self.local, self.peer]
    }

    /// Whether a station is in this guest.
    #[must_use]
    pub fn has(&self, station: Station) -> bool {
        self.end.is_none_or(|end| station.end == end)
    }

    /// Those of `stations` that are in this guest.
    fn here(&self, stations: [Station; 2]) -> impl Iterator<Item = Station> {
        stations.into_iter().filter(|station| self.has(*station))
    }

    /// A port that no flow of this guest has used, below those that the kernel chooses.
    ///
    /// All 14 low bits vary, and not by counting: a hash of RSS is linear in them.
    pub fn port(&self) -> u16 {
        const COUNT: u16 = 1 << 14;
        /// Odd, so that all ports are there once, and 65536 by the golden ratio.
        const STEP: u16 = 40503;
        let nth = self.ports.fetch_add(1, Ordering::Relaxed);
        COUNT + nth.wrapping_mul(STEP) % COUNT
    }

    /// What the kernel says of a station's interface.
    pub fn interface(&self, station: Station) -> Result<Interface> {
        let interfaces = self.guest.call(ListInterfaces { ns: station.ns })?;
        let mut interfaces = interfaces.into_iter();
        let found = interfaces.find(|found| found.name == station.interface);
        found.ok_or_else(|| CaseError::new(format!("there is no {}", station.interface)))
    }

    /// The PCI device of a NIC, while it has an interface.
    pub fn pci_device(&self, station: Station) -> Result<String> {
        let device = self.interface(station)?.device;
        device.ok_or_else(|| CaseError::new(format!("{} has no PCI device", station.interface)))
    }

    /// Has the console also show kernel messages below warning level.
    pub fn show_whole_log(&self) -> Result {
        self.write_file("/proc/sys/kernel/printk", "7")
    }
}
