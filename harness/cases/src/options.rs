// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a testbed is made of, and how it boots.

use std::{sync::atomic::AtomicU16, time::Duration};

use protocol::{rings::TcpDataSplit, rss::Flow};
use vm::{Cables, End, Hypervisor, Images, Link, Machine, Topology};

use crate::{
    Ability, Nic, Result, Testbed,
    nic::Needs,
    skip,
    station::{FAR_WIRE, Station},
    unfinished::Unfinished,
};

/// The NIC drivers that a case can ask for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Ours.
    Rigb,
    /// Ours, on our model of its NIC.
    RigbModel,
    /// The kernel's, in C.
    Igb,
    /// The kernel's, in C, on our model of its NIC.
    IgbModel,
    /// Ours, without the machine's NICs: a pair of software NICs.
    Rwire,
}

impl Driver {
    /// The description of its NIC.
    ///
    /// # Panics
    ///
    /// If the committed description is wrong, which a test would show.
    #[must_use]
    pub fn nic(self) -> Nic {
        let text = match self {
            Self::Rigb => include_str!("../../nics/rigb.toml"),
            Self::RigbModel => include_str!("../../nics/rigb-model.toml"),
            Self::Igb => include_str!("../../nics/igb.toml"),
            Self::IgbModel => include_str!("../../nics/igb-model.toml"),
            Self::Rwire => include_str!("../../nics/rwire.toml"),
        };
        Nic::parse(text).expect("the description of a driver of the tree is right")
    }

    /// What reports call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rigb => "rigb",
            Self::RigbModel => "rigb-model",
            Self::Igb => "igb",
            Self::IgbModel => "igb-model",
            Self::Rwire => "rwire",
        }
    }
}

/// Call timeout for a counted guest, in real time.
const COUNTED_PATIENCE: Duration = Duration::from_secs(600);

/// Memory of the accelerator, in MiB.
pub const ACCELERATOR_MIB: u64 = 64;

/// The largest MTU where there is an IOMMU. For the last byte of a page, QEMU's virtio-iommu (11.1) looks up a range of
/// two bytes, and may find the mapping of the next page. If the ten packets that TCP may send at first fill the first
/// window of 65535 bytes, the payload of the next one begins with such a byte.
const MTU_WITH_IOMMU: u32 = 6000;

/// What a testbed is made of.
#[derive(Debug, Clone)]
pub struct Options {
    /// The one that the environment names, if there is none.
    driver: Option<Driver>,
    needs: Needs,
    machine: Machine,
    transmit_queue: Option<u32>,
    mtu: u32,
    header_split: bool,
    accelerator: bool,
    two_wires: bool,
    control_wire: bool,
    end: Option<End>,
    bare: bool,
}

impl Default for Options {
    /// The usual [`Machine`], MTU 1500, header split off.
    fn default() -> Self {
        Self {
            driver: None,
            needs: Needs::default(),
            machine: Machine::new(),
            transmit_queue: None,
            mtu: 1500,
            header_split: false,
            accelerator: false,
            two_wires: false,
            control_wire: false,
            end: None,
            bare: false,
        }
    }
}

impl Options {
    /// The driver of both NICs, whatever the NIC under test is.
    #[must_use]
    pub fn driver(mut self, driver: Driver) -> Self {
        self.driver = Some(driver);
        self
    }

    /// What the case needs, beside what follows from the other options: it is skipped for a NIC that
    /// lacks it.
    #[must_use]
    pub fn needs(mut self, abilities: impl IntoIterator<Item = Ability>) -> Self {
        self.needs.abilities.extend(abilities);
        self
    }

    /// As [`Self::needs`], for an MTU that the case sets later.
    #[must_use]
    pub fn needs_mtu(mut self, mtu: u32) -> Self {
        self.needs.mtu = self.needs.mtu.max(mtu);
        self
    }

    /// As [`Self::needs`], for payload buffers of so many bytes.
    #[must_use]
    pub fn needs_rx_page_size(mut self, bytes: u32) -> Self {
        self.needs.rx_page_size = bytes;
        self
    }

    /// As [`Self::needs`], for counters of the driver ([`Testbed::statistic`]).
    #[must_use]
    pub fn needs_counters(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.needs.counters.extend(names);
        self
    }

    /// As [`Self::needs`], for registers of the device ([`Testbed::register`]).
    #[must_use]
    pub fn needs_registers(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.needs.registers.extend(names);
        self
    }

    /// As [`Self::needs`], for options that the kernel must be built with, as Kconfig names them,
    /// beyond what each guest needs; with `=m` for one of the few modules that a guest has.
    #[must_use]
    pub fn needs_kernel(mut self, options: impl IntoIterator<Item = &'static str>) -> Self {
        self.needs.kernel_options.extend(options);
        self
    }

    /// One processor, and the counter: see [`vm::counter`].
    #[must_use]
    pub fn counted(mut self) -> Self {
        let machine = self.machine.cpus(1).counted();
        self.machine = machine.call_timeout(COUNTED_PATIENCE);
        self
    }

    /// The queue that processor 0 sends on, on both NICs (XPS). If not set, a flow's random hash
    /// chooses.
    #[must_use]
    pub fn transmit_queue(mut self, queue: u32) -> Self {
        self.transmit_queue = Some(queue);
        self
    }

    /// Changes the machine in ways that concern nothing else.
    #[must_use]
    pub fn machine(mut self, change: impl FnOnce(Machine) -> Machine) -> Self {
        self.machine = change(self.machine);
        self
    }

    /// Processors, and so queue pairs.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.machine = self.machine.cpus(cpus);
        self
    }

    /// MTU of both NICs.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = mtu;
        self.needs_mtu(mtu)
    }

    /// Turns header split on for the NIC under test.
    #[must_use]
    pub fn header_split(mut self) -> Self {
        self.header_split = true;
        self.needs([Ability::HeaderSplit])
    }

    /// Adds an accelerator with [`ACCELERATOR_MIB`], connected to the NICs like this, and loads its
    /// driver.
    #[must_use]
    pub fn accelerator(mut self, topology: Topology) -> Self {
        let machine = self.machine.topology(topology);
        self.machine = machine.accelerator_memory_mib(ACCELERATOR_MIB);
        if topology != Topology::Switch {
            // The root complex's behaviour depends on the CPU, so it must not be the host's.
            self.machine = self.machine.hypervisor(Hypervisor::Tcg);
        }
        self.accelerator = true;
        self.needs([Ability::Dma]).needs_kernel(["PCI_P2PDMA"])
    }

    /// Adds the engine of an accelerator, which reaches its memory as NICs do.
    #[must_use]
    pub fn engine(mut self) -> Self {
        self.machine = self.machine.engine();
        self
    }

    /// Puts the stations on two wires, each with another NIC for an XDP program that connects the
    /// wires: [`crate::PORTS`], in [`protocol::Ns::Local`], which does not answer on them.
    #[must_use]
    pub fn two_wires(mut self) -> Self {
        self.two_wires = true;
        self.machine = self.machine.wire_count(2);
        self
    }

    /// Lets the guest's own PCIe port driver handle hot-unplug by the host. Otherwise the firmware
    /// would, with a driver that the guest does not have.
    #[must_use]
    pub fn hot_plug(self) -> Self {
        self.native_ports().needs([Ability::Unplug])
    }

    /// Leaves the PCIe ports, and what they report, to the guest's own driver of them, and not to the
    /// firmware.
    #[must_use]
    pub fn native_ports(mut self) -> Self {
        self.machine = self
            .machine
            .qemu_argument("-global")
            .qemu_argument("ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")
            .kernel_parameter("pcie_ports=native");
        self
    }

    /// Makes the guest's kernel copy all that devices read and write, as it must where they cannot
    /// address all memory.
    #[must_use]
    pub fn bounce_buffers(mut self) -> Self {
        self.machine = self.machine.kernel_parameter("swiotlb=force");
        self.needs([Ability::Dma]).needs_kernel(["SWIOTLB"])
    }

    /// Puts an IOMMU before the memory, so that a device reaches what the driver has mapped for it, and no longer
    /// than it has. A model of ours that is to access anything else records a violation.
    #[must_use]
    pub fn iommu(mut self) -> Self {
        self.machine = self.machine.iommu();
        self.needs([Ability::Dma]).needs_kernel(["VIRTIO_IOMMU"])
    }

    /// Turns off DMA debugging, and only that, in the debug kernel because of
    /// [`KernelFault::SyncOfBusAddresses`](crate::KernelFault::SyncOfBusAddresses).
    #[must_use]
    pub fn without_dma_debugging(mut self) -> Self {
        self.machine = self.machine.kernel_parameter("dma_debug=off");
        self
    }

    /// Binds these queues, and not only queue 1.
    #[must_use]
    pub fn binds(mut self, queues: impl IntoIterator<Item = u32>) -> Self {
        self.needs.bound_queues.extend(queues);
        self.needs([Ability::DevmemRx])
    }

    /// Steers these kinds of flows by their hash.
    #[must_use]
    pub fn hashes(mut self, flows: impl IntoIterator<Item = Flow>) -> Self {
        self.needs.hashes.extend(flows);
        self.needs([Ability::Rss])
    }

    /// Adds a wire for connections that are none of the test's:
    /// [`Station::CONTROL`], [`Station::CONTROL_PEER`].
    #[must_use]
    pub fn control_wire(mut self) -> Self {
        self.control_wire = true;
        self.machine = self.machine.wire_count(2);
        self
    }

    /// Has the wires lead to another testbed: of each pair of stations one is here.
    #[must_use]
    pub fn cables(mut self, cables: Cables) -> Self {
        self.end = Some(cables.end());
        self.machine = self.machine.cables(cables);
        self
    }

    /// Gives the wires a rate, a delay, losses and more, which only wires of our models have: the case is
    /// skipped for other NICs. Both testbeds at cables take the same link.
    #[must_use]
    pub fn link(mut self, link: Link) -> Self {
        self.needs.link = true;
        self.machine = self.machine.link(link);
        self
    }

    /// Leaves the NICs without a driver.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// Boots a guest with the images named by the environment, and brings both NICs up. The case
    /// must end with [`Testbed::finish`].
    pub fn boot(mut self, name: &str) -> Result<Testbed> {
        if !self.bare {
            self = self.needs([Ability::Traffic]);
        }
        if let Some(lacking) = Nic::from_env()?.lacks(&self.needs) {
            skip::skip(&lacking)?;
        }
        let images = Images::from_env()?;
        if let Some(option) = images.lacks(self.needs.of_kernel())? {
            skip::skip(&format!("the kernel lacks CONFIG_{option}"))?;
        }
        let mut bed = self.machine(Machine::snapshot).boot_images(&images, name)?;
        bed.unfinished = Some(Unfinished::new());
        Ok(bed)
    }

    /// As [`Options::boot`], with all TCP steered to queue 1.
    pub fn boot_steered(self, name: &str) -> Result<Testbed> {
        let bed = self.boot(name)?;
        bed.steer(bed.local, &[1])?;
        Ok(bed)
    }

    /// As [`Options::boot`], with these images, for a program that need not call
    /// [`Testbed::finish`].
    pub fn boot_images(self, images: &Images, name: &str) -> Result<Testbed> {
        let bed = self.start(self.machine.clone(), images, name)?;
        self.set_up(&bed)?;
        Ok(bed)
    }

    /// As [`Options::boot_images`], with more that is done to the guest. The next one of such options and
    /// such a machine goes on from there. `how` says what `prepare` depends on.
    pub fn boot_prepared(
        self,
        images: &Images,
        name: &str,
        how: &str,
        prepare: impl FnOnce(&Testbed) -> Result,
    ) -> Result<Testbed> {
        let here = Self {
            machine: Machine::new(),
            ..self.clone()
        };
        let how = format!("{here:?} {:?} {how}", self.nic()?);
        let machine = self.machine.clone().prepared(&how);
        let mut bed = self.start(machine, images, name)?;
        if !bed.guest.resumed() {
            self.set_up(&bed)?;
            prepare(&bed)?;
            bed.guest.keep()?;
        }
        Ok(bed)
    }

    fn nic(&self) -> Result<Nic> {
        match self.driver {
            Some(driver) => Ok(driver.nic()),
            None => Nic::from_env(),
        }
    }

    /// Boots a guest, and leaves it as it is then.
    fn start(&self, mut machine: Machine, images: &Images, name: &str) -> Result<Testbed> {
        let nic = self.nic()?;
        if let Some(device) = &nic.device {
            machine = machine.nic(device).nic_bus(nic.bus);
        }
        let mut peer = Station::PEER;
        if self.two_wires {
            peer.wire = FAR_WIRE;
        }
        let mtu = if machine.has_iommu() {
            self.mtu.min(MTU_WITH_IOMMU)
        } else {
            self.mtu
        };
        let guest = machine.boot(images, name)?;
        Ok(Testbed {
            unfinished: None,
            nic,
            transmit_queue: self.transmit_queue,
            guest,
            local: Station::LOCAL,
            peer,
            end: self.end,
            mtu,
            ports: AtomicU16::default(),
        })
    }

    /// Brings the NICs up, with all else that is wanted.
    fn set_up(&self, bed: &Testbed) -> Result {
        if self.bare {
            return Ok(());
        }
        bed.load_driver()?;
        bed.set_up()?;
        if self.control_wire {
            bed.set_up_control()?;
        }
        if self.two_wires {
            bed.set_up_ports()?;
        }
        if self.accelerator {
            bed.load_accelerator()?;
        }
        if self.header_split {
            bed.set_header_split(bed.local, TcpDataSplit::On)?;
        }
        Ok(())
    }
}
