// SPDX-License-Identifier: MIT OR Apache-2.0

//! Two NICs on one wire: the one under test, and its peer in a namespace of its own.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use protocol::{
    Ns,
    net::{DataSplit, LinkStats, Mac, Prefix, QueueKind},
    request::{
        AddAddress, GetDriverStats, GetLinkStats, GetQueueStats, GetRss, ListPagePools, LoadModule,
        MoveInterface, ReadFile, SetFeatures, SetMtu, SetRings, SetRss, SetUp, UnloadModule,
        WaitCarrier, WaitInterface, WriteFile,
    },
};
use vm::{Accelerator, End, Guest, Images, Machine, Topology, Verdict, Wire};

use crate::Result;

/// How long the guest may take for something that takes it milliseconds.
const PATIENCE_MS: u64 = 60_000;

/// The drivers of the NIC that a testbed can load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Ours.
    Rigb,
    /// The kernel's, in C.
    Igb,
}

impl Driver {
    /// Its modules, in the order of loading.
    fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Rigb => &["rigb"],
            Self::Igb => &["i2c-core", "i2c-algo-bit", "igb"],
        }
    }

    /// The module's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rigb => "rigb",
            Self::Igb => "igb",
        }
    }
}

/// The same for one that is counted, in real time.
const COUNTED_PATIENCE: Duration = Duration::from_secs(600);

/// The accelerator's driver.
const ACCELERATOR_DRIVER: &str = "ivshmem_mem";

/// Memory of the accelerator, in MiB.
pub const ACCELERATOR_MIB: u64 = 64;

/// The only wire, unless there is a program between two of them.
const WIRE: Wire = Wire(0);
/// The wire behind that program.
const FAR_WIRE: Wire = Wire(1);
/// The interfaces of that program, at the other ends of both wires.
pub const PORTS: [&str; 2] = ["port0", "port1"];

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];
}

/// One end of the wire.
#[derive(Debug, Clone, Copy)]
pub struct Station {
    /// Its namespace.
    pub ns: Ns,
    /// Its interface.
    pub interface: &'static str,
    wire: Wire,
    end: End,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

impl Station {
    const LOCAL: Self = Self {
        ns: Ns::Local,
        interface: "nic0",
        wire: WIRE,
        end: End::Local,
        v4: Ipv4Addr::new(192, 0, 2, 1),
        v6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    };
    const PEER: Self = Self {
        ns: Ns::Peer,
        interface: "peer0",
        wire: WIRE,
        end: End::Peer,
        v4: Ipv4Addr::new(192, 0, 2, 2),
        v6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    };

    /// Its address.
    #[must_use]
    pub fn address(&self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.v4.into(),
            Family::V6 => self.v6.into(),
        }
    }

    /// Its address with a port.
    #[must_use]
    pub fn socket(&self, family: Family, port: u16) -> SocketAddr {
        (self.address(family), port).into()
    }

    /// Its Ethernet address.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.wire.mac(self.end)
    }

    /// The interface's name as requests want it.
    #[must_use]
    pub fn name(&self) -> String {
        self.interface.to_owned()
    }
}

/// What a testbed is made of.
#[derive(Debug, Clone)]
pub struct Options {
    driver: Driver,
    transmit_queue: Option<u32>,
    counted: bool,
    memory_mib: u64,
    cpus: u32,
    mtu: u32,
    header_split: bool,
    accelerator: Option<Topology>,
    accelerator_mib: u64,
    two_wires: bool,
}

impl Options {
    /// The driver of both NICs.
    #[must_use]
    pub fn driver(mut self, driver: Driver) -> Self {
        self.driver = driver;
        self
    }

    /// One processor, and the counter: see [`vm::counter`].
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counted = true;
        self.cpus = 1;
        self
    }

    /// The queue that processor 0 sends on, on both NICs (XPS). Without, a flow's random hash
    /// chooses.
    #[must_use]
    pub fn transmit_queue(mut self, queue: u32) -> Self {
        self.transmit_queue = Some(queue);
        self
    }

    /// Memory of the guest in MiB.
    #[must_use]
    pub fn memory_mib(mut self, mib: u64) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Processors, and so queue pairs.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// MTU of both NICs.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = mtu;
        self
    }

    /// Turns header split on for the NIC under test.
    #[must_use]
    pub fn header_split(mut self) -> Self {
        self.header_split = true;
        self
    }

    /// Memory of the accelerator in MiB, a power of two, instead of [`ACCELERATOR_MIB`].
    #[must_use]
    pub fn accelerator_mib(mut self, mib: u64) -> Self {
        self.accelerator_mib = mib;
        self
    }

    /// Adds an accelerator with [`ACCELERATOR_MIB`], connected to the NICs like this, and loads its
    /// driver.
    #[must_use]
    pub fn accelerator(mut self, topology: Topology) -> Self {
        self.accelerator = Some(topology);
        self
    }

    /// Puts the stations on two wires, and a NIC on each of them for a program that connects them:
    /// [`PORTS`], in [`Ns::Local`], which does not answer on them.
    #[must_use]
    pub fn two_wires(mut self) -> Self {
        self.two_wires = true;
        self
    }

    /// Boots a guest with the images that the environment names, and sets both NICs up.
    pub fn boot(self, name: &str) -> Result<Testbed> {
        self.boot_images(Images::from_env()?, name)
    }

    /// As [`Options::boot`], with these images.
    pub fn boot_images(self, images: Images, name: &str) -> Result<Testbed> {
        let mut machine = Machine::new(images, name)
            .cpus(self.cpus)
            .memory_mib(self.memory_mib);
        let mut peer = Station::PEER;
        if self.two_wires {
            machine = machine.wire_count(2);
            peer.wire = FAR_WIRE;
        }
        if self.counted {
            machine = machine.counted().call_timeout(COUNTED_PATIENCE);
        }
        if let Some(topology) = self.accelerator {
            machine = machine
                .topology(topology)
                .accelerator_memory_mib(self.accelerator_mib);
            if topology != Topology::Switch {
                // What the root complex does is the processor's property: it must not be the host's.
                machine = machine.accelerator(Accelerator::Tcg);
            }
        }
        let guest = machine.boot()?;
        let bed = Testbed {
            driver: self.driver,
            transmit_queue: self.transmit_queue,
            guest,
            local: Station::LOCAL,
            peer,
            mtu: self.mtu,
            ports: AtomicU16::new(5000),
        };
        bed.load_driver()?;
        bed.set_up()?;
        if self.two_wires {
            bed.set_up_ports()?;
        }
        if self.accelerator.is_some() {
            bed.load_accelerator()?;
        }
        if self.header_split {
            bed.set_header_split(bed.local, DataSplit::On)?;
        }
        Ok(bed)
    }
}

/// A booted guest with both NICs up.
#[derive(Debug)]
pub struct Testbed {
    /// The guest.
    pub guest: Guest,
    /// The NIC under test.
    pub local: Station,
    /// The other one, in its own namespace.
    pub peer: Station,
    driver: Driver,
    transmit_queue: Option<u32>,
    mtu: u32,
    ports: AtomicU16,
}

impl Testbed {
    /// Two processors, MTU 1500, header split off.
    #[must_use]
    pub fn options() -> Options {
        Options {
            driver: Driver::Rigb,
            transmit_queue: None,
            counted: false,
            memory_mib: 1024,
            cpus: 2,
            mtu: 1500,
            header_split: false,
            accelerator: None,
            accelerator_mib: ACCELERATOR_MIB,
            two_wires: false,
        }
    }

    /// A guest for device memory: MTU 9000, header split on, all TCP steered to queue 1.
    pub fn devmem(name: &str) -> Result<Self> {
        let bed = Self::options().mtu(9000).header_split().boot(name)?;
        bed.steer(bed.local, &[1])?;
        Ok(bed)
    }

    /// As [`Testbed::devmem`], with an accelerator.
    pub fn accelerator(topology: Topology, name: &str) -> Result<Self> {
        let options = Self::options().mtu(9000).header_split();
        let bed = options.accelerator(topology).boot(name)?;
        bed.steer(bed.local, &[1])?;
        Ok(bed)
    }

    /// Both stations, in the order local, peer.
    #[must_use]
    pub fn stations(&self) -> [Station; 2] {
        [self.local, self.peer]
    }

    /// A port that no flow of this guest has used.
    pub fn port(&self) -> u16 {
        self.ports.fetch_add(1, Ordering::Relaxed)
    }

    /// Loads the driver, and waits for the interfaces that it makes.
    pub fn load_driver(&self) -> Result {
        for name in self.driver.modules() {
            self.guest.call(LoadModule {
                name: (*name).to_owned(),
                parameters: String::new(),
            })?;
        }
        for station in self.stations() {
            let found = self.guest.call(WaitInterface {
                ns: Ns::Local,
                mac: station.mac(),
                timeout_ms: PATIENCE_MS,
            })?;
            if let Some(queue) = self.transmit_queue {
                // Before it moves: the guest's sysfs shows one namespace.
                let queues = format!("/sys/class/net/{}/queues", found.name);
                self.guest.call(WriteFile {
                    ns: Ns::Local,
                    path: format!("{queues}/tx-{queue}/xps_cpus"),
                    contents: "1".to_owned(),
                })?;
            }
            self.guest.call(MoveInterface {
                from: Ns::Local,
                interface: found.name,
                to: station.ns,
                rename: Some(station.name()),
            })?;
        }
        Ok(())
    }

    /// Brings up the NICs of a program between two wires.
    fn set_up_ports(&self) -> Result {
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
            // The addresses of the namespace are not to be had here.
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
        for station in self.stations() {
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
        }
        self.wait_carrier(true)
    }

    /// Waits until both NICs see the link, or until none does.
    pub fn wait_carrier(&self, carrier: bool) -> Result {
        for station in self.stations() {
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

    /// Takes a NIC's link away, or gives it back, from outside.
    pub fn set_link(&self, station: Station, up: bool) -> Result {
        Ok(self.guest.set_link(station.wire, station.end, up)?)
    }

    /// Brings an interface up or down.
    pub fn set_interface(&self, station: Station, up: bool) -> Result {
        Ok(self.guest.call(SetUp {
            ns: station.ns,
            interface: station.name(),
            up,
        })?)
    }

    /// Changes an MTU.
    pub fn set_mtu(&self, station: Station, mtu: u32) -> Result {
        Ok(self.guest.call(SetMtu {
            ns: station.ns,
            interface: station.name(),
            mtu,
        })?)
    }

    /// Turns header split on or off.
    pub fn set_header_split(&self, station: Station, split: DataSplit) -> Result {
        Ok(self.guest.call(SetRings {
            ns: station.ns,
            interface: station.name(),
            rx: None,
            tx: None,
            data_split: Some(split),
            hds_thresh: None,
        })?)
    }

    /// Changes the number of receive descriptors.
    pub fn set_receive_ring(&self, station: Station, descriptors: u32) -> Result {
        Ok(self.guest.call(SetRings {
            ns: station.ns,
            interface: station.name(),
            rx: Some(descriptors),
            tx: None,
            data_split: None,
            hds_thresh: None,
        })?)
    }

    /// Turns features on or off, by their kernel names.
    pub fn set_features(&self, station: Station, features: &[(&str, bool)]) -> Result {
        Ok(self.guest.call(SetFeatures {
            ns: station.ns,
            interface: station.name(),
            features: features
                .iter()
                .map(|&(name, on)| (name.to_owned(), on))
                .collect(),
        })?)
    }

    /// Steers all TCP to these queues: every flow reaches one of them.
    pub fn steer(&self, station: Station, queues: &[u32]) -> Result {
        let entries = self.rss_entries(station)?;
        let table = queues.iter().copied().cycle().take(entries).collect();
        Ok(self.guest.call(SetRss {
            ns: station.ns,
            interface: station.name(),
            table: Some(table),
            key: None,
        })?)
    }

    fn rss_entries(&self, station: Station) -> Result<usize> {
        let rss = self.guest.call(GetRss {
            ns: station.ns,
            interface: station.name(),
        })?;
        Ok(rss.table.len())
    }

    /// rtnl statistics.
    pub fn link_stats(&self, station: Station) -> Result<LinkStats> {
        Ok(self.guest.call(GetLinkStats {
            ns: station.ns,
            interface: station.name(),
        })?)
    }

    /// Packets that the NIC under test handed up, and that its peer sent, when none is on its way.
    pub fn packets_when_quiet(&self) -> Result<[u64; 2]> {
        let look = || -> Result<[u64; 2]> {
            Ok([
                self.link_stats(self.local)?.rx_packets,
                self.link_stats(self.peer)?.tx_packets,
            ])
        };
        let mut last = look()?;
        loop {
            thread::sleep(Duration::from_millis(200));
            let now = look()?;
            if now == last {
                return Ok(now);
            }
            last = now;
        }
    }

    /// One of the driver's own statistics.
    pub fn statistic(&self, station: Station, name: &str) -> Result<u64> {
        let all = self.guest.call(GetDriverStats {
            ns: station.ns,
            interface: station.name(),
        })?;
        all.get(name)
            .copied()
            .ok_or_else(|| crate::CaseError::new(format!("no statistic {name} in {all:?}")))
    }

    /// A statistic of each queue of a kind, in the order of the queues.
    pub fn queue_stats(&self, station: Station, kind: QueueKind, name: &str) -> Result<Vec<u64>> {
        let all = self.guest.call(GetQueueStats {
            ns: station.ns,
            interface: station.name(),
        })?;
        Ok(all
            .iter()
            .filter(|queue| queue.kind == kind)
            .map(|queue| queue.stats.get(name).copied().unwrap_or(0))
            .collect())
    }

    /// A counter of the stack (RFC 4293 and others), as `/proc/net/snmp` of the namespace names it:
    /// `("Tcp", "InCsumErrors")`.
    pub fn counter(&self, ns: Ns, group: &str, name: &str) -> Result<u64> {
        let text = self.guest.call(ReadFile {
            ns,
            path: "/proc/thread-self/net/snmp".to_owned(),
        })?;
        protocol::snmp::value(&text, group, name)
            .ok_or_else(|| crate::CaseError::new(format!("no counter {group} {name} in {text}")))
    }

    /// Looks at a number again and again until it is at least `wanted`; returns it. Fails when that
    /// does not happen.
    pub fn wait_until(&self, wanted: u64, mut look: impl FnMut() -> Result<u64>) -> Result<u64> {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        loop {
            let now = look()?;
            if now >= wanted {
                return Ok(now);
            }
            if Instant::now() > deadline {
                return Err(crate::CaseError::new(format!(
                    "waited for {wanted}, but it stays {now}; logs are in {}",
                    self.guest.directory().display()
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until no piece of a dma-buf is out of its page pool, with the driver, the stack or a
    /// user; returns how many are still out when that does not happen.
    ///
    /// The kernel looks only once a second whether a destroyed pool has everything back.
    pub fn net_iovs_left(&self, station: Station) -> Result<u64> {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        loop {
            let out = self.net_iovs_outstanding(station)?;
            if out == 0 || Instant::now() > deadline {
                return Ok(out);
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until an interface that is down has no page pool any more: a pool stays as long as a
    /// page of it is out. Fails when one stays.
    pub fn wait_pools_gone(&self, station: Station) -> Result {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
        loop {
            let pools = self.guest.call(ListPagePools {
                ns: station.ns,
                interface: station.name(),
            })?;
            if pools.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(crate::CaseError::new(format!(
                    "{} is down, but page pools miss pages: {pools:?}",
                    station.interface
                )));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Pieces of dma-bufs and areas that are out of their page pools: with the driver, the stack or a user.
    pub fn net_iovs_outstanding(&self, station: Station) -> Result<u64> {
        let pools = self.guest.call(ListPagePools {
            ns: station.ns,
            interface: station.name(),
        })?;
        Ok(pools
            .iter()
            .filter(|pool| pool.dmabuf.is_some() || pool.io_uring)
            .filter_map(|pool| pool.inflight)
            .sum())
    }

    /// Ends the guest; fails when the kernel complained.
    pub fn finish(self) -> Result<Verdict> {
        Ok(self.guest.finish()?)
    }
}
