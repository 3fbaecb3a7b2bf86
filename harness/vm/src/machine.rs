// SPDX-License-Identifier: MIT OR Apache-2.0

//! The hardware to boot.

use std::{path::PathBuf, time::Duration};

use crate::{
    Cables, End, Error, Guest, Hypervisor, Images, Link, NicBus, Result, Topology, Wire,
    device::Devices,
};

/// The NICs of a machine that asks for no others: an Intel 82576.
const NIC: &str = "igb";

/// What executes a counted guest's instructions.
const COUNTED: &[&str] = &["tcg,thread=single"];

/// A folder of the host that a guest can mount by a tag, as a 9p file system on virtio.
///
/// QEMU opens its files as the user that it runs as, whoever the guest's users are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The mount tag, unique in a machine.
    pub tag: String,
    /// The folder.
    pub path: PathBuf,
    /// Whether the guest may change it.
    pub writable: bool,
}

/// When a guest is kept for others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Moment {
    /// When its agent answers.
    Booted,
    /// When the program that booted it has done this with it.
    Prepared(String),
}

/// A machine that can be booted: a PC (q35) with wires, each with a NIC at both ends, and an
/// accelerator if asked for: an `ivshmem-plain`, whose memory is behind a BAR and is the host's too, and an
/// engine.
#[derive(Debug, Clone)]
pub struct Machine {
    pub(crate) memory_mib: u64,
    pub(crate) cpus: u32,
    pub(crate) wires: u8,
    pub(crate) cables: Option<Cables>,
    pub(crate) link: Option<Link>,
    pub(crate) nic: String,
    pub(crate) nic_bus: NicBus,
    pub(crate) nic_rom: Option<PathBuf>,
    pub(crate) accelerator_mib: Option<u64>,
    pub(crate) engine: bool,
    pub(crate) disk: Option<PathBuf>,
    pub(crate) exports: Vec<Export>,
    pub(crate) topology: Topology,
    pub(crate) iommu: bool,
    pub(crate) snap_length: u32,
    pub(crate) kernel_parameters: Vec<String>,
    pub(crate) qemu_arguments: Vec<String>,
    pub(crate) hypervisor: Hypervisor,
    pub(crate) counted: bool,
    pub(crate) snapshot: Option<Moment>,
    pub(crate) call_timeout: Duration,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// A machine with two processors, 1 GiB of memory and one wire.
    #[must_use]
    pub fn new() -> Self {
        Self {
            memory_mib: 1024,
            cpus: 2,
            wires: 1,
            cables: None,
            link: None,
            nic: NIC.to_owned(),
            nic_bus: NicBus::default(),
            nic_rom: None,
            accelerator_mib: None,
            engine: false,
            disk: None,
            exports: Vec::new(),
            topology: Topology::default(),
            iommu: false,
            snap_length: 128,
            kernel_parameters: Vec::new(),
            qemu_arguments: Vec::new(),
            hypervisor: Hypervisor::Auto,
            counted: false,
            snapshot: None,
            call_timeout: Duration::from_secs(300),
        }
    }

    /// Memory in MiB, at least 256.
    #[must_use]
    pub fn memory_mib(mut self, mib: u64) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Number of processors.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// Number of wires, each with two NICs; at most 8.
    #[must_use]
    pub fn wire_count(mut self, wires: u8) -> Self {
        self.wires = wires;
        self
    }

    /// Has wires lead to another machine: of each, this one has one end.
    #[must_use]
    pub fn cables(mut self, cables: Cables) -> Self {
        self.wires = u8::try_from(cables.count()).unwrap_or(u8::MAX);
        self.cables = Some(cables);
        self
    }

    /// What the wires do to their frames, if the NICs are [`OUR_NIC`](crate::OUR_NIC): QEMU's wires only
    /// carry. If they lead to another machine, that is what they do to what comes here: tell both the same.
    #[must_use]
    pub fn link(mut self, link: Link) -> Self {
        self.link = Some(link);
        self
    }

    /// QEMU's device for the NICs, with properties if there are any: `e1000e`, `igb,rombar=0`; or
    /// [`OUR_NIC`](crate::OUR_NIC), our model of the 82576.
    #[must_use]
    pub fn nic(mut self, device: &str) -> Self {
        self.nic = device.to_owned();
        self
    }

    /// What the NICs are on.
    #[must_use]
    pub fn nic_bus(mut self, bus: NicBus) -> Self {
        self.nic_bus = bus;
        self
    }

    /// Gives the NICs an expansion ROM with this image, which is off until somebody maps it.
    #[must_use]
    pub fn nic_rom(mut self, image: impl Into<PathBuf>) -> Self {
        self.nic_rom = Some(image.into());
        self
    }

    /// Adds an accelerator with memory of this many MiB, a power of two.
    /// [`Guest::accelerator_memory`] is the host's view of it.
    #[must_use]
    pub fn accelerator_memory_mib(mut self, mib: u64) -> Self {
        self.accelerator_mib = Some(mib);
        self
    }

    /// Adds the engine of an accelerator, a device beside the memory: our model of it. The machine boots
    /// each time then.
    #[must_use]
    pub fn engine(mut self) -> Self {
        self.engine = true;
        self
    }

    /// Adds a disk, `/dev/vda`, with this image, which is only read.
    #[must_use]
    pub fn disk(mut self, image: impl Into<PathBuf>) -> Self {
        self.disk = Some(image.into());
        self
    }

    /// Exports a folder of the host to the guest, over 9p.
    #[must_use]
    pub fn export(mut self, export: Export) -> Self {
        self.exports.push(export);
        self
    }

    /// How NICs and accelerator are connected.
    #[must_use]
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = topology;
        self
    }

    /// Puts an IOMMU between the devices and memory, of which they reach what is mapped for them, as long as it
    /// is: the kernel unmaps in strict mode. It takes `CONFIG_VIRTIO_IOMMU`.
    #[must_use]
    pub fn iommu(mut self) -> Self {
        self.iommu = true;
        self.kernel_parameter("iommu.strict=1")
    }

    /// Whether there is an IOMMU.
    #[must_use]
    pub fn has_iommu(&self) -> bool {
        self.iommu
    }

    /// Bytes of each frame that the captures keep.
    #[must_use]
    pub fn snap_length(mut self, bytes: u32) -> Self {
        self.snap_length = bytes;
        self
    }

    /// Adds a parameter to the kernel's command line.
    #[must_use]
    pub fn kernel_parameter(mut self, parameter: &str) -> Self {
        self.kernel_parameters.push(parameter.to_owned());
        self
    }

    /// Adds an argument to QEMU's command line.
    #[must_use]
    pub fn qemu_argument(mut self, argument: &str) -> Self {
        self.qemu_arguments.push(argument.to_owned());
        self
    }

    /// What executes the guest. The environment's `NOBOUNCE_ACCEL` wins.
    #[must_use]
    pub fn hypervisor(mut self, hypervisor: Hypervisor) -> Self {
        self.hypervisor = hypervisor;
        self
    }

    /// Counts what the processor does: see [`crate::counter`].
    ///
    /// The machine has one processor, whose instructions are emulated one by one and take 16 ns of
    /// the guest's time each, so that a guest that does the same counts the same.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counted = true;
        self
    }

    /// Goes on from where an equal machine had booted, if it is emulated and that can be, and keeps
    /// what the first of them was. Monotonic time has stood still in between, and what was random
    /// until then is the same in all of them; after that it is not.
    #[must_use]
    pub fn snapshot(mut self) -> Self {
        self.snapshot = Some(Moment::Booted);
        self
    }

    /// As [`Machine::snapshot`], from where [`Guest::keep`] was called by this very program. `how` says
    /// all that it does with a guest until then, where not all guests are prepared alike.
    #[must_use]
    pub fn prepared(mut self, how: &str) -> Self {
        self.snapshot = Some(Moment::Prepared(how.to_owned()));
        self
    }

    /// How long the guest may take for an answer, the boot included. It is there to end a hang:
    /// an emulated guest on a busy machine is slow.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// The wires of this machine.
    pub fn wires(&self) -> impl Iterator<Item = Wire> + use<> {
        (0..self.wires).map(Wire)
    }

    /// The ends of its wires that are its own.
    pub(crate) fn ends(&self) -> impl Iterator<Item = End> + use<> {
        let cables = self.cables.as_ref().map(Cables::end);
        let is_here = move |end: &End| cables.is_none_or(|here| here == *end);
        End::BOTH.into_iter().filter(is_here)
    }

    /// Boots these images, and returns when the agent is ready. `name` names the logs.
    ///
    /// # Errors
    ///
    /// [`Error::ImageMissing`], [`Error::BadMachine`], [`Error::RunDirectory`],
    /// [`Error::DiskFull`], [`Error::Memory`], [`Error::QemuMissing`], and whatever can befall a
    /// guest: [`Error::QemuEnded`], [`Error::KernelPanic`], [`Error::AgentPanicked`],
    /// [`Error::Timeout`], [`Error::Version`].
    pub fn boot(&self, images: &Images, name: &str) -> Result<Guest> {
        images.check()?;
        self.check()?;
        if name.is_empty() || name.contains('/') {
            return Err(Error::BadMachine(format!(
                "{name:?} cannot name a directory for logs"
            )));
        }
        if self.counted && images.counter.is_none() {
            return Err(Error::BadMachine(
                "the manifest names no counter: build the guest again".to_owned(),
            ));
        }
        let mut machine = self.clone();
        machine.memory_mib += images.extra_memory_mib;
        let wanted = images.kernel_parameters.iter().cloned();
        machine.kernel_parameters.extend(wanted);
        let hypervisor = Hypervisor::from_env()?.unwrap_or(self.hypervisor);
        let options = match self.counted {
            true => COUNTED,
            false => hypervisor.options(),
        };
        Guest::boot(&machine, images, name, options)
    }

    fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::BadMachine(message));
        if self.memory_mib < 256 {
            return bad(format!(
                "a guest needs 256 MiB of memory, not {}",
                self.memory_mib
            ));
        }
        if self.cpus == 0 {
            return bad("a machine needs a processor".to_owned());
        }
        if self.counted && self.cpus != 1 {
            return bad("only one processor can be counted".to_owned());
        }
        if self.wires > 8 {
            return bad(format!("a machine has at most 8 wires, not {}", self.wires));
        }
        if self.link.is_some() && !Devices::have_nics(self) {
            return bad(format!(
                "wires between NICs of QEMU's only carry: a link takes NICs of ours, not {}",
                self.nic
            ));
        }
        if let Some(fault) = self.link.and_then(|link| link.fault()) {
            return bad(fault);
        }
        if let Some(mib) = self.accelerator_mib.filter(|mib| !mib.is_power_of_two()) {
            return bad(format!(
                "the size of an accelerator's memory is a power of two, not {mib} MiB"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OUR_NIC;

    #[test]
    fn an_impossible_machine_is_refused_before_anything_is_started() {
        let images = Images::of_nothing();
        let machine = Machine::new;
        let zero = Link {
            rate: Some(0),
            ..Link::default()
        };
        let refused = [
            (machine().link(Link::default()), "impossible"),
            (machine().nic(OUR_NIC).link(zero), "impossible"),
            (machine().memory_mib(16), "impossible"),
            (machine().cpus(0), "impossible"),
            (machine().wire_count(9), "impossible"),
            (machine().cpus(1).counted(), "impossible"),
            (machine().accelerator_memory_mib(48), "impossible"),
            (machine(), "a/b"),
        ];
        for (machine, name) in refused {
            let error = machine.boot(&images, name).unwrap_err();
            assert!(matches!(error, Error::BadMachine(_)), "{error}");
        }
    }
}
