// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a testbed is made of, and how it boots.

use std::{path::PathBuf, sync::atomic::AtomicU16, time::Duration};

use protocol::rings::TcpDataSplit;
use vm::{Cables, Export, Hypervisor, Images, Machine, Topology};

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
    /// The kernel's, in C.
    Igb,
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
            Self::Igb => include_str!("../../nics/igb.toml"),
            Self::Rwire => include_str!("../../nics/rwire.toml"),
        };
        Nic::parse(text).expect("the description of a driver of the tree is right")
    }

    /// The module's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rigb => "rigb",
            Self::Igb => "igb",
            Self::Rwire => "rwire",
        }
    }
}

/// Call timeout for a counted guest, in real time.
const COUNTED_PATIENCE: Duration = Duration::from_secs(600);

/// Memory of the accelerator, in MiB.
pub const ACCELERATOR_MIB: u64 = 64;

/// What a testbed is made of.
#[derive(Debug, Clone)]
pub struct Options {
    /// The one that the environment names, if there is none.
    driver: Option<Driver>,
    needs: Needs,
    transmit_queue: Option<u32>,
    counted: bool,
    memory_mib: u64,
    cpus: u32,
    mtu: u32,
    header_split: bool,
    accelerator: Option<Topology>,
    accelerator_mib: u64,
    two_wires: bool,
    hot_plug: bool,
    bounce_buffers: bool,
    dma_debugging: bool,
    disk: Option<PathBuf>,
    rom: Option<PathBuf>,
    snapshot: bool,
    exports: Vec<Export>,
    kernel_parameters: Vec<String>,
    qemu_arguments: Vec<String>,
    call_timeout: Option<Duration>,
    control_wire: bool,
    cables: Option<Cables>,
    bare: bool,
}

impl Default for Options {
    /// Two processors, MTU 1500, header split off.
    fn default() -> Self {
        Self {
            driver: None,
            needs: Needs::default(),
            transmit_queue: None,
            counted: false,
            memory_mib: 1024,
            cpus: 2,
            mtu: 1500,
            header_split: false,
            accelerator: None,
            accelerator_mib: ACCELERATOR_MIB,
            two_wires: false,
            hot_plug: false,
            bounce_buffers: false,
            dma_debugging: true,
            disk: None,
            rom: None,
            snapshot: false,
            exports: Vec::new(),
            kernel_parameters: Vec::new(),
            qemu_arguments: Vec::new(),
            call_timeout: None,
            control_wire: false,
            cables: None,
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

    /// As [`Self::needs`], for counters of the driver ([`Testbed::statistic`]).
    #[must_use]
    pub fn needs_counters(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.needs.counters.extend(names);
        self
    }

    /// As [`Self::needs`], for options that the kernel must be built with, as Kconfig names them,
    /// beyond what each guest needs.
    #[must_use]
    pub fn needs_kernel(mut self, options: impl IntoIterator<Item = &'static str>) -> Self {
        self.needs.kernel_options.extend(options);
        self
    }

    /// One processor, and the counter: see [`vm::counter`].
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counted = true;
        self.cpus = 1;
        self
    }

    /// The queue that processor 0 sends on, on both NICs (XPS). If not set, a flow's random hash
    /// chooses.
    #[must_use]
    pub fn transmit_queue(mut self, queue: u32) -> Self {
        self.transmit_queue = Some(queue);
        self
    }

    /// Resumes from a snapshot of an identical guest after boot: see [`Machine::snapshot`].
    #[must_use]
    pub fn snapshot(mut self) -> Self {
        self.snapshot = true;
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
        self.needs_mtu(mtu)
    }

    /// Turns header split on for the NIC under test.
    #[must_use]
    pub fn header_split(mut self) -> Self {
        self.header_split = true;
        self.needs([Ability::HeaderSplit])
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
        self.needs([Ability::Dma]).needs_kernel(["PCI_P2PDMA"])
    }

    /// Puts the stations on two wires, each with another NIC for an XDP program that connects the
    /// wires: [`crate::PORTS`], in [`protocol::Ns::Local`], which does not answer on them.
    #[must_use]
    pub fn two_wires(mut self) -> Self {
        self.two_wires = true;
        self
    }

    /// Lets the guest's own PCIe port driver handle hot-unplug by the host. Otherwise the firmware
    /// would, with a driver that the guest does not have.
    #[must_use]
    pub fn hot_plug(mut self) -> Self {
        self.hot_plug = true;
        self.needs([Ability::Unplug])
    }

    /// Makes the guest's kernel copy all that devices read and write, as it must where they cannot
    /// address all memory.
    #[must_use]
    pub fn bounce_buffers(mut self) -> Self {
        self.bounce_buffers = true;
        self.needs([Ability::Dma]).needs_kernel(["SWIOTLB"])
    }

    /// Turns off DMA debugging, and only that, in the debug kernel because of
    /// [`KernelFault::SyncOfBusAddresses`](crate::KernelFault::SyncOfBusAddresses).
    #[must_use]
    pub fn without_dma_debugging(mut self) -> Self {
        self.dma_debugging = false;
        self
    }

    /// Adds a disk with this image: see [`Machine::disk`].
    #[must_use]
    pub fn disk(mut self, image: impl Into<PathBuf>) -> Self {
        self.disk = Some(image.into());
        self
    }

    /// Gives the NICs an expansion ROM with this image. It is off until a case maps it.
    #[must_use]
    pub fn rom(mut self, image: impl Into<PathBuf>) -> Self {
        self.rom = Some(image.into());
        self
    }

    /// Adds to the kernel's command line.
    #[must_use]
    pub fn kernel_parameter(mut self, parameter: &str) -> Self {
        self.kernel_parameters.push(parameter.to_owned());
        self
    }

    /// Adds to QEMU's command line.
    #[must_use]
    pub fn qemu_argument(mut self, argument: &str) -> Self {
        self.qemu_arguments.push(argument.to_owned());
        self
    }

    /// How long the guest may take for an answer: see [`Machine::call_timeout`].
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = Some(timeout);
        self
    }

    /// Exports a folder of the host: see [`Machine::export`].
    #[must_use]
    pub fn export(mut self, export: Export) -> Self {
        self.exports.push(export);
        self
    }

    /// Adds a wire for connections that are none of the test's:
    /// [`Station::CONTROL`], [`Station::CONTROL_PEER`].
    #[must_use]
    pub fn control_wire(mut self) -> Self {
        self.control_wire = true;
        self
    }

    /// Has the wires lead to another testbed: of each pair of stations one is here.
    #[must_use]
    pub fn cables(mut self, cables: Cables) -> Self {
        self.cables = Some(cables);
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
    pub fn boot(self, name: &str) -> Result<Testbed> {
        if let Some(lacking) = Nic::from_env()?.lacks(&self.needs) {
            skip::skip(&lacking)?;
        }
        let images = Images::from_env()?;
        if let Some(option) = images.lacks(self.needs.of_kernel())? {
            skip::skip(&format!("the kernel lacks CONFIG_{option}"))?;
        }
        let mut bed = self.snapshot().boot_images(images, name)?;
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
    pub fn boot_images(self, images: Images, name: &str) -> Result<Testbed> {
        let nic = match self.driver {
            Some(driver) => driver.nic(),
            None => Nic::from_env()?,
        };
        let mut machine = Machine::new(images, name)
            .cpus(self.cpus)
            .memory_mib(self.memory_mib);
        let mut peer = Station::PEER;
        if self.snapshot {
            machine = machine.snapshot();
        }
        if self.two_wires || self.control_wire {
            machine = machine.wire_count(2);
        }
        let end = self.cables.as_ref().map(Cables::end);
        if let Some(cables) = self.cables {
            machine = machine.cables(cables);
        }
        if let Some(device) = &nic.device {
            machine = machine.nic(device);
        }
        if self.two_wires {
            peer.wire = FAR_WIRE;
        }
        for parameter in &self.kernel_parameters {
            machine = machine.kernel_parameter(parameter);
        }
        for argument in &self.qemu_arguments {
            machine = machine.qemu_argument(argument);
        }
        for export in self.exports {
            machine = machine.export(export);
        }
        if self.hot_plug {
            machine = machine
                .qemu_argument("-global")
                .qemu_argument("ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")
                .kernel_parameter("pcie_ports=native");
        }
        if self.bounce_buffers {
            machine = machine.kernel_parameter("swiotlb=force");
        }
        if !self.dma_debugging {
            machine = machine.kernel_parameter("dma_debug=off");
        }
        if let Some(disk) = self.disk {
            machine = machine.disk(disk);
        }
        if let Some(rom) = self.rom {
            machine = machine
                .qemu_argument("-global")
                .qemu_argument(&format!("igb.romfile={}", rom.display()));
        }
        if self.counted {
            machine = machine.counted().call_timeout(COUNTED_PATIENCE);
        }
        if let Some(timeout) = self.call_timeout {
            machine = machine.call_timeout(timeout);
        }
        if let Some(topology) = self.accelerator {
            machine = machine
                .topology(topology)
                .accelerator_memory_mib(self.accelerator_mib);
            if topology != Topology::Switch {
                // The root complex's behaviour depends on the CPU, so it must not be the host's.
                machine = machine.hypervisor(Hypervisor::Tcg);
            }
        }
        let guest = machine.boot()?;
        let bed = Testbed {
            unfinished: None,
            nic,
            transmit_queue: self.transmit_queue,
            guest,
            local: Station::LOCAL,
            peer,
            end,
            mtu: self.mtu,
            ports: AtomicU16::default(),
        };
        if self.bare {
            return Ok(bed);
        }
        bed.load_driver()?;
        bed.set_up()?;
        if self.control_wire {
            bed.set_up_control()?;
        }
        if self.two_wires {
            bed.set_up_ports()?;
        }
        if self.accelerator.is_some() {
            bed.load_accelerator()?;
        }
        if self.header_split {
            bed.set_header_split(bed.local, TcpDataSplit::On)?;
        }
        Ok(bed)
    }
}
