// SPDX-License-Identifier: MIT OR Apache-2.0

//! The NIC under test: what its description, a file like those in `harness/nics`, says of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use protocol::rss::Flow;
use serde::Deserialize;
use vm::{NicBus, OUR_NIC};

use crate::{CaseError, Driver, Result};

/// Environment variable with the path of the description.
pub const NIC_ENV: &str = "NOBOUNCE_NIC_FILE";

/// What a NIC and its driver may be able to do, as far as cases need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// The driver feeds byte queue limits, of a queue for each of two processors.
    ByteQueueLimits,
    /// `ethtool -L combined`, up to more queue pairs than there are processors.
    Channels,
    /// A queue may be bound to device memory, or to an io_uring: header split, queue management
    /// operations, and memory providers.
    DevmemRx,
    /// Device memory is sent (`netmem_tx`).
    DevmemTx,
    /// The device reads and writes memory: bounce buffers, mappings.
    Dma,
    /// Nothing but what went wrong is counted as an error, or as dropped.
    ErrorCounters,
    /// Where timestamps are wanted of all event messages, all get them, and not one kind only.
    EventTimestamps,
    /// `ethtool -G tcp-data-split`
    HeaderSplit,
    /// What the stack has queued on the interface is sent, whatever is reconfigured meanwhile.
    LosslessChanges,
    /// The interfaces have the Ethernet addresses that the machine gives its NICs.
    MachineAddress,
    /// What the device sends to itself needs no link.
    LoopbackWithoutLink,
    /// The device filters by address, and exactly by 16 of them.
    MacFilter,
    /// No MTU is larger than [`Nic::max_mtu`], and what is longer than the MTU is not delivered.
    MtuLimit,
    /// Rules that steer flows to queues: `ethtool -N`.
    Ntuple,
    /// A NAPI for each queue pair, listed over netlink.
    NapiIds,
    /// Page pools, listed over netlink.
    PagePools,
    /// Statistics of queues over netlink (`netdev_stat_ops`).
    QueueStatistics,
    /// An IOMMU lets it reach other devices' memory: QEMU doesn't tell a vfio-user server of that.
    PeersThroughIommu,
    /// QEMU traces accesses to its registers, as it does for its own devices.
    RegisterTrace,
    /// `ethtool -G rx`, `tx`: [`Nic::rings`].
    RingSizes,
    /// A table that steers by hash: `ethtool -X`.
    Rss,
    /// Checksums that the device verifies, unless the user wants none.
    RxChecksum,
    /// The hash of received packets, by a key that can be read.
    RxHash,
    /// Tests of itself that interrupt traffic: `ethtool -t`.
    SelfTest,
    /// The device counts frames by the standards: `ethtool -S --all-groups`.
    StandardStatistics,
    /// Timestamps and a clock of the device's.
    Timestamps,
    /// Frames pass: all cases need it but for the first, which a driver that only probes passes.
    Traffic,
    /// Rate limits of TX queues (`queues/tx-N/tx_maxrate`).
    TxMaxRate,
    /// UDP is segmented into datagrams.
    UdpSegmentation,
    /// Whether UDP is segmented is found out by sending; it is not.
    UdpSegmentationProbe,
    /// It can be unplugged.
    Unplug,
    /// VLAN tags are inserted, stripped and filtered by the device.
    VlanOffload,
    /// Bytes are counted as they are on the wire, with the headers of each segment.
    WireBytes,
    /// XDP programs, in the driver.
    Xdp,
    /// XDP programs at an MTU of 9000.
    XdpJumbo,
    /// AF_XDP without copies.
    Xsk,
    /// An io_uring may receive from a queue: what [`Self::DevmemRx`] takes.
    Zcrx,
}

impl Ability {
    /// What the kernel must be built with for it, beyond what each guest needs.
    pub(crate) fn kernel_option(self) -> Option<&'static str> {
        match self {
            Self::ByteQueueLimits => Some("BQL"),
            Self::Timestamps => Some("PTP_1588_CLOCK"),
            Self::Unplug => Some("HOTPLUG_PCI_PCIE"),
            Self::VlanOffload => Some("VLAN_8021Q"),
            Self::Xdp | Self::XdpJumbo => Some("BPF_SYSCALL"),
            Self::Xsk => Some("XDP_SOCKETS"),
            Self::Zcrx => Some("IO_URING_ZCRX"),
            _ => None,
        }
    }
}

/// What a case needs of the NIC under test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    pub(crate) mtu: u32,
    pub(crate) abilities: BTreeSet<Ability>,
    pub(crate) counters: Vec<&'static str>,
    pub(crate) registers: Vec<&'static str>,
    /// Payload buffers, in bytes.
    pub(crate) rx_page_size: u32,
    /// What is steered by its hash.
    pub(crate) hashes: BTreeSet<Flow>,
    /// Queues that are bound beside queue 1.
    pub(crate) bound_queues: BTreeSet<u32>,
    /// Wires that do more than carry.
    pub(crate) link: bool,
    /// Of the kernel, as Kconfig names them.
    pub(crate) kernel_options: Vec<&'static str>,
}

impl Needs {
    /// What the kernel must be built with for these abilities, beyond what each guest needs.
    pub(crate) fn of_kernel(&self) -> impl Iterator<Item = &'static str> {
        let implied = self.abilities.iter();
        let implied = implied.filter_map(|ability| ability.kernel_option());
        implied.chain(self.kernel_options.iter().copied())
    }

    /// The first queue that is bound, of these.
    fn binds_one_of(&self, queues: &BTreeSet<u32>) -> Option<u32> {
        let binds = [Ability::DevmemRx, Ability::Zcrx];
        let usual = binds.iter().any(|ability| self.abilities.contains(ability));
        let mut bound = self.bound_queues.iter().copied().chain(usual.then_some(1));
        bound.find(|queue| queues.contains(queue))
    }
}

/// How many descriptors a ring may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingSizes {
    /// No fewer than these.
    pub min: u32,
    /// No more.
    pub max: u32,
    /// A multiple of this.
    pub multiple: u32,
}

/// A NIC under test, and its driver.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Nic {
    /// What reports call it.
    pub name: String,
    /// Its modules, in load order. The last one is the driver's.
    pub load: Vec<String>,
    /// A folder with a Kbuild file whose modules are built out of tree. A path that is not absolute
    /// starts at the description's folder.
    pub build: Option<PathBuf>,
    /// Modules that are built already.
    #[serde(default)]
    pub modules: Vec<PathBuf>,
    /// QEMU's device, with properties if it has any. Without one, the driver makes two interfaces
    /// itself, which are connected.
    pub device: Option<String>,
    /// Where in the machine it is.
    #[serde(default)]
    pub bus: NicBus,
    /// The largest MTU.
    pub max_mtu: u32,
    /// The sizes of its rings.
    pub rings: Option<RingSizes>,
    /// The largest buffers for payload, in bytes; without it, a page.
    #[serde(default = "page")]
    pub max_rx_page_size: u32,
    /// What its hash covers.
    #[serde(default)]
    hashes: BTreeSet<Flow>,
    /// Queues that can't be bound to device memory, nor to an io_uring.
    #[serde(default)]
    unbindable_queues: BTreeSet<u32>,
    can: BTreeSet<Ability>,
    #[serde(default)]
    counters: BTreeMap<String, String>,
    #[serde(default)]
    registers: BTreeMap<String, u32>,
}

/// The size of a page.
fn page() -> u32 {
    4096
}

impl Nic {
    /// Reads a description.
    ///
    /// # Errors
    ///
    /// When it can't be read, or is none.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .map_err(|error| CaseError::new(format!("can't read {}: {error}", path.display())))?;
        let mut nic = Self::parse(&text)
            .map_err(|error| CaseError::new(format!("{}: {error}", path.display())))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in nic.build.iter_mut().chain(&mut nic.modules) {
            *file = folder.join(&*file);
        }
        Ok(nic)
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let nic: Self = toml::from_str(text)?;
        if nic.load.is_empty() {
            return Err(CaseError::new("`load` names no module"));
        }
        if nic.can(Ability::Unplug) && nic.bus != NicBus::Port {
            return Err(CaseError::new("`unplug` takes `bus = \"port\"`"));
        }
        if nic.can(Ability::RingSizes) != nic.rings.is_some() {
            return Err(CaseError::new(
                "`ring-sizes` takes a table `rings`, and only that",
            ));
        }
        Ok(nic)
    }

    /// The one that the environment names, or [`Driver::Rigb`]'s.
    pub(crate) fn from_env() -> Result<Self> {
        match env::var_os(NIC_ENV) {
            Some(path) => Self::read(Path::new(&path)),
            None => Ok(Driver::Rigb.nic()),
        }
    }

    /// The driver's module.
    #[must_use]
    pub fn driver(&self) -> &str {
        self.load.last().map_or("", String::as_str)
    }

    /// What `ethtool -S` calls a counter, if there is one.
    pub(crate) fn counter(&self, name: &str) -> Option<&str> {
        self.counters.get(name).map(String::as_str)
    }

    /// Where a register of the first BAR is.
    pub(crate) fn register(&self, name: &str) -> Option<u32> {
        self.registers.get(name).copied()
    }

    /// Whether it can do this.
    #[must_use]
    pub fn can(&self, ability: Ability) -> bool {
        self.can.contains(&ability)
    }

    /// The first of `needs` that the NIC has not, in words.
    pub(crate) fn lacks(&self, needs: &Needs) -> Option<String> {
        if needs.mtu > self.max_mtu {
            return Some(format!(
                "{} has no MTU of {}, but of {} at most",
                self.name, needs.mtu, self.max_mtu
            ));
        }
        if needs.rx_page_size > self.max_rx_page_size {
            return Some(format!(
                "{} has no payload buffers of {} bytes, but of {} at most",
                self.name, needs.rx_page_size, self.max_rx_page_size
            ));
        }
        if needs.link && self.device.as_deref() != Some(OUR_NIC) {
            return Some(format!(
                "{} is no model of ours: its wires have no losses or delay",
                self.name
            ));
        }
        if let Some(ability) = needs.abilities.difference(&self.can).next() {
            return Some(format!("{} lacks {ability:?}", self.name));
        }
        if let Some(flow) = needs.hashes.difference(&self.hashes).next() {
            return Some(format!("{} hashes no {flow:?}", self.name));
        }
        if let Some(queue) = needs.binds_one_of(&self.unbindable_queues) {
            return Some(format!("queue {queue} of {} can't be bound", self.name));
        }
        let missing = needs.counters.iter().find(|c| self.counter(c).is_none());
        if let Some(counter) = missing {
            return Some(format!("{} has no counter {counter}", self.name));
        }
        let missing = needs.registers.iter().find(|r| self.register(r).is_none());
        missing.map(|register| format!("{} doesn't say where {register} is", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "mynic"
        load = ["libmynic", "mynic"]
        build = "src"
        modules = ["/lib/libmynic.ko"]
        device = "igb"
        bus = "pci"
        hashes = ["tcp4", "tcp6"]
        unbindable-queues = [0, 3]
        max-mtu = 1500
        can = ["rss", "devmem-rx"]
        [counters]
        tx_tso = "tso_packets"
    "#;

    #[test]
    fn paths_of_a_description_start_at_its_folder() {
        let dir = env::temp_dir().join(format!("nobounce-nic-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("mynic.toml");
        fs::write(&path, TEXT).unwrap();
        let nic = Nic::read(&path);
        fs::remove_dir_all(&dir).unwrap();
        let nic = nic.unwrap();
        assert_eq!(nic.build, Some(dir.join("src")));
        assert_eq!(nic.modules, [Path::new("/lib/libmynic.ko")]);
        assert_eq!(nic.driver(), "mynic");
    }

    #[test]
    fn what_a_nic_lacks_is_named() {
        let nic = Nic::parse(TEXT).unwrap();
        let needs = |mtu, ability, counter| Needs {
            mtu,
            abilities: [ability].into(),
            counters: vec![counter],
            ..Needs::default()
        };
        let lacks = |needs: Needs| nic.lacks(&needs).unwrap_or_default();
        assert_eq!(lacks(needs(1500, Ability::Rss, "tx_tso")), "");
        assert!(lacks(needs(9000, Ability::Rss, "tx_tso")).contains("9000"));
        assert_eq!(
            lacks(needs(1500, Ability::Xdp, "tx_tso")),
            "mynic lacks Xdp"
        );
        assert!(lacks(needs(1500, Ability::Rss, "rx_split")).contains("rx_split"));

        let pages = |rx_page_size| Needs {
            rx_page_size,
            ..Needs::default()
        };
        assert_eq!(lacks(pages(4096)), "");
        assert!(lacks(pages(16384)).contains("of 4096 at most"));

        let flows = |flow| Needs {
            hashes: [flow].into(),
            ..Needs::default()
        };
        assert_eq!(lacks(flows(Flow::Tcp4)), "");
        assert_eq!(lacks(flows(Flow::Udp4)), "mynic hashes no Udp4");

        let linked = Needs {
            link: true,
            ..Needs::default()
        };
        assert!(lacks(linked.clone()).contains("no model of ours"));
        assert_eq!(Driver::RigbModel.nic().lacks(&linked), None);

        let binds = |queues: &[u32]| Needs {
            abilities: [Ability::DevmemRx].into(),
            bound_queues: queues.iter().copied().collect(),
            ..Needs::default()
        };
        assert_eq!(lacks(binds(&[])), "", "queue 1");
        assert_eq!(lacks(binds(&[2, 3])), "queue 3 of mynic can't be bound");
    }

    #[test]
    fn a_nic_that_can_be_unplugged_is_on_a_port() {
        assert_eq!(Nic::parse(TEXT).unwrap().bus, NicBus::Pci);
        let error = Nic::parse(&TEXT.replace("\"rss\"", "\"unplug\"")).unwrap_err();
        assert!(error.to_string().contains("bus"), "{error}");
    }

    #[test]
    fn a_wrong_description_says_where_it_is_wrong() {
        for (from, to, says) in [
            ("max-mtu", "mtu", "mtu"),
            ("\"rss\"", "\"rrs\"", "rrs"),
            ("\"pci\"", "\"isa\"", "isa"),
            ("\"tcp6\"", "\"tcp5\"", "tcp5"),
            ("[\"libmynic\", \"mynic\"]", "[]", "load"),
        ] {
            let error = Nic::parse(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_drivers_of_the_tree_are_described() {
        for driver in [
            Driver::Rigb,
            Driver::RigbModel,
            Driver::Igb,
            Driver::IgbModel,
            Driver::Rwire,
        ] {
            assert_eq!(driver.nic().name, driver.name());
        }
    }
}
