// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two NICs on one wire: the one under test, and its peer in a namespace of its own.

use std::sync::atomic::{AtomicU16, Ordering};

use protocol::{
    Ns,
    ethtool::SetFeatures,
    kernel::{LoadModule, UnloadModule, WriteFile},
    link::{
        AddAddress, AddVlan, ListInterfaces, MoveInterface, SetMtu, SetUp, WaitCarrier,
        WaitInterface,
    },
    net::Prefix,
};
use vm::{End, Guest, Images, Topology, Verdict};

use crate::{
    Ability, CaseError, Family, KernelFault, Nic, Options, Result, Station,
    station::{FAR_WIRE, WIRE},
    unfinished::Unfinished,
};

/// How long the guest may take over something that should take milliseconds.
pub const PATIENCE_MS: u64 = 60_000;

/// The accelerator's driver.
const ACCELERATOR_DRIVER: &str = "ivshmem_mem";
/// Its engine's.
pub(crate) const ENGINE_DRIVER: &str = "copy_engine";

/// The interfaces of the program that connects two wires, at their other ends.
pub const PORTS: [&str; 2] = ["port0", "port1"];

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
    /// Two processors, MTU 1500, header split off.
    #[must_use]
    pub fn options() -> Options {
        Options::default()
    }

    /// A guest for device memory: MTU 9000, header split on, all TCP steered to queue 1.
    pub fn devmem(name: &str) -> Result<Self> {
        Self::devmem_options().boot_steered(name)
    }

    /// As [`Testbed::devmem`], for an io_uring that receives.
    pub fn zcrx(name: &str) -> Result<Self> {
        Self::zcrx_options().boot_steered(name)
    }

    /// What [`Testbed::zcrx`] boots.
    #[must_use]
    pub fn zcrx_options() -> Options {
        Self::devmem_options().needs([Ability::Zcrx])
    }

    /// What [`Testbed::devmem`] boots.
    #[must_use]
    pub fn devmem_options() -> Options {
        let needs = [Ability::DevmemRx, Ability::Rss];
        Self::options().mtu(9000).header_split().needs(needs)
    }

    /// As [`Testbed::devmem`], with an accelerator.
    pub fn accelerator(topology: Topology, name: &str) -> Result<Self> {
        let options = Self::devmem_options().accelerator(topology);
        options.boot_steered(name)
    }

    /// As [`Testbed::accelerator`] behind a switch, with an engine and its driver.
    pub fn engine(name: &str) -> Result<Self> {
        let bed = Self::engine_options().boot_steered(name)?;
        bed.load_engine()?;
        Ok(bed)
    }

    /// What [`Testbed::engine`] boots.
    #[must_use]
    pub fn engine_options() -> Options {
        let options = Self::devmem_options().accelerator(Topology::Switch);
        options.engine()
    }

    /// Loads the engine's driver.
    pub fn load_engine(&self) -> Result {
        Ok(self.guest.call(LoadModule {
            name: ENGINE_DRIVER.to_owned(),
            parameters: String::new(),
        })?)
    }

    /// Whether the NIC under test can do this, for what a case looks at by the way. What it is about
    /// is in [`Options::needs`].
    pub fn can(&self, ability: Ability) -> Result<bool> {
        let lacking = Images::from_env()?.lacks(ability.kernel_option())?;
        Ok(self.nic.can(ability) && lacking.is_none())
    }

    /// The driver's module.
    #[must_use]
    pub fn driver(&self) -> &str {
        self.nic.driver()
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

    /// Loads the driver, and what it needs before it.
    pub fn load_modules(&self) -> Result {
        for name in &self.nic.load {
            self.guest.call(LoadModule {
                name: name.clone(),
                parameters: String::new(),
            })?;
        }
        Ok(())
    }

    /// Loads the driver, and waits for the interfaces that it registers.
    pub fn load_driver(&self) -> Result {
        self.load_modules()?;
        for station in self.here(self.stations()) {
            self.take_in(station)?;
        }
        Ok(())
    }

    /// Unloads the driver, and what was loaded for it.
    pub fn unload_driver(&self) -> Result {
        for name in self.nic.load.iter().rev() {
            self.guest.call(UnloadModule { name: name.clone() })?;
        }
        Ok(())
    }

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
            let queues = format!("/sys/class/net/{found}/queues");
            self.guest.call(WriteFile {
                ns: Ns::Local,
                path: format!("{queues}/tx-{queue}/xps_cpus"),
                contents: "1".to_owned(),
            })?;
        }
        self.guest.call(MoveInterface {
            from: Ns::Local,
            interface: found,
            to: station.ns,
            rename: Some(station.name()),
        })?;
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

    /// Brings up the NICs of a program between two wires.
    pub(crate) fn set_up_ports(&self) -> Result {
        let macs = [WIRE.mac(End::Peer), FAR_WIRE.mac(End::Local)];
        for (name, mac) in PORTS.into_iter().zip(macs) {
            let found = self.guest.call(WaitInterface {
                ns: Ns::Local,
                mac,
                timeout_ms: PATIENCE_MS,
            })?;
            let interface = || found.name.clone();
            let write = |path: &str, contents: &str| {
                self.guest.call(WriteFile {
                    ns: Ns::Local,
                    path: path.replace("NAME", &found.name),
                    contents: contents.to_owned(),
                })
            };
            // Do not answer for the namespace's addresses here.
            write("/proc/sys/net/ipv4/conf/NAME/arp_ignore", "8")?;
            write("/proc/sys/net/ipv6/conf/NAME/disable_ipv6", "1")?;
            self.guest.call(SetFeatures {
                ns: Ns::Local,
                interface: interface(),
                features: [("rx-gro".to_owned(), false)].into(),
            })?;
            self.guest.call(SetMtu {
                ns: Ns::Local,
                interface: interface(),
                mtu: self.mtu,
            })?;
            self.guest.call(MoveInterface {
                from: Ns::Local,
                interface: interface(),
                to: Ns::Local,
                rename: Some(name.to_owned()),
            })?;
            self.guest.call(SetUp {
                ns: Ns::Local,
                interface: name.to_owned(),
                up: true,
            })?;
            self.guest.call(WaitCarrier {
                ns: Ns::Local,
                interface: name.to_owned(),
                carrier: true,
                timeout_ms: PATIENCE_MS,
            })?;
        }
        Ok(())
    }

    /// Loads the accelerator's driver.
    pub fn load_accelerator(&self) -> Result {
        Ok(self.guest.call(LoadModule {
            name: ACCELERATOR_DRIVER.to_owned(),
            parameters: String::new(),
        })?)
    }

    /// Unloads the accelerator's driver.
    pub fn unload_accelerator(&self) -> std::result::Result<(), vm::Error> {
        self.guest.call(UnloadModule {
            name: ACCELERATOR_DRIVER.to_owned(),
        })
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
            self.guest.call(AddAddress {
                ns: station.ns,
                interface: station.name(),
                prefix: Prefix {
                    address: station.address(family),
                    length,
                },
            })?;
        }
        Ok(())
    }

    /// Puts both stations on a VLAN, too ([`Station::on_vlan`]).
    pub fn add_vlan(&self, id: u16) -> Result {
        for station in self.stations() {
            let on_vlan = station.on_vlan();
            self.guest.call(AddVlan {
                ns: station.ns,
                interface: station.name(),
                name: on_vlan.name(),
                id,
            })?;
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
        Ok(self.guest.call(WaitCarrier {
            ns: station.ns,
            interface: station.name(),
            carrier,
            timeout_ms: PATIENCE_MS,
        })?)
    }

    /// The PCI device of a NIC, while it has an interface.
    pub fn pci_device(&self, station: Station) -> Result<String> {
        let interfaces = self.guest.call(ListInterfaces { ns: station.ns })?;
        let found = interfaces
            .into_iter()
            .find(|found| found.name == station.interface);
        found
            .and_then(|found| found.device)
            .ok_or_else(|| CaseError::new(format!("{} has no PCI device", station.interface)))
    }

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

    /// Has the console also show kernel messages below warning level.
    pub fn show_whole_log(&self) -> Result {
        Ok(self.guest.call(WriteFile {
            ns: Ns::Local,
            path: "/proc/sys/kernel/printk".to_owned(),
            contents: "7".to_owned(),
        })?)
    }

    /// Ends the guest; fails if the kernel complained.
    pub fn finish(self) -> Result<Verdict> {
        if let Some(unfinished) = self.unfinished {
            unfinished.finish();
        }
        let verdict = self.guest.finish()?;
        KernelFault::tell(&verdict);
        Ok(verdict)
    }

    /// Ends the guest without a look at its log.
    pub(crate) fn abandon(self) {
        if let Some(unfinished) = self.unfinished {
            unfinished.finish();
        }
    }

    /// As [`Testbed::finish`]; returns the values of these registers of a NIC once the guest is
    /// off.
    pub fn finish_and_read<const N: usize>(
        self,
        station: Station,
        offsets: [u32; N],
    ) -> Result<[u32; N]> {
        let device = self.pci_device(station)?;
        let registers = u64::from(self.port_of(&device)?.registers);
        if let Some(unfinished) = self.unfinished {
            unfinished.finish();
        }
        let (verdict, values) = self.guest.finish_and_look(|guest| {
            let mut values = [0; N];
            for (value, offset) in values.iter_mut().zip(offsets) {
                *value = guest.read_register(registers + u64::from(offset))?;
            }
            Ok(values)
        })?;
        KernelFault::tell(&verdict);
        Ok(values)
    }
}
