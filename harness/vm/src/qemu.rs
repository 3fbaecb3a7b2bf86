// SPDX-License-Identifier: MIT OR Apache-2.0

//! QEMU's command line.

use std::{ffi::OsString, os::fd::RawFd, path::Path};

use crate::{
    Cables, End, Export, Images, Machine, Wire,
    device::Devices,
    run_dir::RunDir,
    topology::{ACCELERATOR, Ports},
    tsc,
};

/// Descriptors that QEMU inherits, by number.
#[derive(Debug, Clone)]
pub(crate) struct Inherited {
    pub(crate) ram: RawFd,
    /// The accelerator's memory, where the machine has one.
    pub(crate) accelerator: Option<RawFd>,
    pub(crate) control: RawFd,
    pub(crate) monitor: RawFd,
    /// One for each wire that leads to another machine.
    pub(crate) cables: Vec<RawFd>,
}

impl Inherited {
    /// Of no QEMU that runs.
    pub(crate) const NONE: Self = Self {
        ram: -1,
        accelerator: Some(-1),
        control: -1,
        monitor: -1,
        cables: Vec::new(),
    };
}

/// What QEMU calls the accelerator's memory.
pub(crate) const ACCELERATOR_MEMORY: &str = "accelerator-memory";

/// Kernel parameters of every boot.
///
/// A panic resets the machine at once, which ends QEMU (`-no-reboot`); warnings reach the console.
/// The timer check is off: it panics when fewer than four ticks arrive while the cycle counter
/// advances by ten, as happens now and then to an emulated machine on a busy host. The TSC watchdog
/// is off: it waits for another processor, with a limit in jiffies, which stand still meanwhile; a
/// processor in `stop_machine()` never answers, and the boot hangs (`watchdog_check_skew()` in
/// kernel/time/clocksource.c of Linux 7.3).
const KERNEL_PARAMETERS: &str = "console=ttyS0 loglevel=5 panic=-1 oops=panic no_timer_check \
     tsc=nowatchdog udmabuf.size_limit_mb=1024";

/// Features that an emulated processor must not have: a kernel copies and clears with `rep movsb` and
/// `rep stosb` where there is any of these, and TCG runs them byte by byte. Without, it takes eight
/// bytes at a time, and a case a fifth less.
const SLOW_STRINGS: &str = ",-erms,-fsrm,-fsrs";

/// Whether QEMU is to emulate processors at once, and not only where KVM does not start.
pub(crate) fn is_emulated(hypervisors: &[&str]) -> bool {
    hypervisors.first().is_some_and(|a| a.starts_with("tcg"))
}

/// All arguments behind the command's own.
pub(crate) fn arguments(
    machine: &Machine,
    images: &Images,
    run: &RunDir,
    hypervisors: &[&str],
    fds: &Inherited,
    devices: Option<&Devices>,
    resumed: bool,
) -> Vec<OsString> {
    let mut arguments = Arguments::default();
    let mib = machine.memory_mib;
    arguments.flag("-nodefaults");
    arguments.flag("-no-user-config");
    arguments.flag("-no-reboot");
    arguments.add("-display", "none");
    arguments.add("-machine", "q35,memory-backend=ram");
    for hypervisor in hypervisors {
        arguments.add("-accel", *hypervisor);
    }
    let emulated = is_emulated(hypervisors);
    if machine.counted {
        add_counter(&mut arguments, machine, images, run);
    } else {
        let without = if emulated { SLOW_STRINGS } else { "" };
        arguments.add("-cpu", format!("{}{without}", machine.topology.cpu()));
        arguments.add("-smp", machine.cpus.to_string());
    }
    arguments.add("-m", format!("{mib}M"));
    arguments.add("-object", memory("ram", mib, fds.ram));

    arguments.add("-kernel", &images.kernel);
    arguments.add("-initrd", &images.initramfs);
    let mut parameters = KERNEL_PARAMETERS.to_owned();
    // A counted guest's time is exact, and KVM tells its guest the rate.
    if let Some(khz) = tsc::khz().filter(|_| emulated && !machine.counted) {
        parameters.push_str(&format!(" {}", tsc::parameter(khz)));
    }
    for parameter in &machine.kernel_parameters {
        parameters.push(' ');
        parameters.push_str(parameter);
    }
    arguments.add("-append", parameters);

    if resumed {
        arguments.add("-incoming", "defer");
    }
    // QEMU has it translate for devices that come after it alone.
    if machine.iommu {
        arguments.device("virtio-iommu-pci");
    }
    // The log of a guest that goes on does, too.
    let console = path(&run.console());
    arguments.add(
        "-chardev",
        format!("file,id=console,path={console},append=on"),
    );
    arguments.add("-serial", "chardev:console");
    arguments.device("virtio-serial-pci");
    arguments.add("-chardev", format!("socket,id=control,fd={}", fds.control));
    arguments.device(format!(
        "virtserialport,chardev=control,name={}",
        protocol::PORT_NAME
    ));
    arguments.add("-chardev", format!("socket,id=monitor,fd={}", fds.monitor));
    arguments.add("-mon", "chardev=monitor,mode=control");

    if let Some(disk) = &machine.disk {
        let file = path(disk);
        arguments.add(
            "-drive",
            format!("if=none,id=disk,format=raw,readonly=on,file={file}"),
        );
        arguments.device("virtio-blk-pci,drive=disk");
    }

    for export in &machine.exports {
        add_export(&mut arguments, export);
    }

    // Ours are told each by itself.
    if let (Some(rom), None) = (&machine.nic_rom, devices) {
        let (device, _) = machine.nic.split_once(',').unwrap_or((&machine.nic, ""));
        // Those that are plugged in later have it, too.
        arguments.add("-global", format!("{device}.romfile={}", rom.display()));
    }
    let mut ports = Ports::new(machine.topology, &mut arguments);
    for wire in machine.wires() {
        match devices.filter(|_| Devices::have_nics(machine)) {
            Some(devices) => add_own_wire(&mut arguments, &mut ports, wire, machine, devices),
            None => add_wire(&mut arguments, &mut ports, wire, run, machine, fds),
        }
    }
    if let Some((mib, fd)) = machine.accelerator_mib.zip(fds.accelerator) {
        arguments.add("-object", memory(ACCELERATOR_MEMORY, mib, fd));
        let port = ports.add(&mut arguments);
        // ivshmem blocks migration, and so snapshots, without `master=on`.
        arguments.device(format!(
            "ivshmem-plain,id={ACCELERATOR},master=on,memdev={ACCELERATOR_MEMORY},bus={port}"
        ));
    }
    if let Some(devices) = devices.filter(|_| machine.engine) {
        let port = ports.add(&mut arguments);
        arguments.device(devices.engine(&port));
    }
    arguments
        .0
        .extend(machine.qemu_arguments.iter().map(OsString::from));
    arguments.0
}

/// Everything that makes two runs alike, and the counter.
///
/// Time follows the instructions executed (`-icount`). Copies are made with `rep movsq`: TCG runs
/// `rep movsb`, which a processor with `erms` and `fsrm` copies with, byte by byte, as no processor
/// does.
fn add_counter(arguments: &mut Arguments, machine: &Machine, images: &Images, run: &RunDir) {
    let cpu = machine.topology.cpu();
    arguments.add("-cpu", format!("{cpu},-erms,-fsrm,-rdrand,-rdseed"));
    arguments.add("-smp", "1");
    arguments.add("-icount", "shift=4,sleep=off");
    arguments.add("-rtc", "base=2026-01-01T00:00:00,clock=vm");
    arguments.add("-seed", "1");
    if let Some(counter) = &images.counter {
        let (file, dir) = (path(counter), path(run.path()));
        arguments.add("-plugin", format!("file={file},dir={dir}"));
    }
}

/// Files have the host's owners and modes; to change an owner does nothing. Folders of several file
/// systems have inode numbers of their own in the guest.
fn add_export(arguments: &mut Arguments, export: &Export) {
    let (tag, path) = (&export.tag, path(&export.path));
    let readonly = if export.writable { "off" } else { "on" };
    arguments.add(
        "-fsdev",
        format!(
            "local,id={tag},path={path},security_model=none,readonly={readonly},multidevs=remap"
        ),
    );
    arguments.device(format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}"));
}

/// Memory that this process made.
fn memory(id: &str, mib: u64, fd: RawFd) -> String {
    format!("memory-backend-file,id={id},size={mib}M,mem-path=/proc/self/fd/{fd},share=on")
}

/// Two NICs on a hub, each behind a port of its own, and a capture of what one of them sees. Of a wire
/// to another machine there is one end.
fn add_wire(
    arguments: &mut Arguments,
    ports: &mut Ports,
    wire: Wire,
    run: &RunDir,
    machine: &Machine,
    fds: &Inherited,
) {
    let Wire(number) = wire;
    let cable = machine.cables.as_ref().map(Cables::end);
    for end in End::BOTH {
        // The other end's stays empty, so that ports have the same names.
        let bus = ports.add_for_nic(machine.nic_bus, arguments);
        let (nic, netdev) = (wire.nic(end), wire.netdev(end));
        let kind = match (cable, fds.cables.get(usize::from(number))) {
            (Some(here), _) if here != end => continue,
            (Some(_), Some(fd)) => format!("dgram,id={netdev},local.type=fd,local.str={fd}"),
            _ => format!("hubport,id={netdev},hubid={number}"),
        };
        arguments.add("-netdev", kind);
        let (device, mac) = (&machine.nic, wire.mac(end));
        arguments.device(format!(
            "{device},id={nic},bus={bus},netdev={netdev},mac={mac}"
        ));
    }
    arguments.add(
        "-object",
        format!(
            "filter-dump,id=capture{number},netdev={},file={},maxlen={}",
            wire.netdev(cable.unwrap_or(End::Local)),
            path(&run.file(&wire.pcap())),
            machine.snap_length
        ),
    );
}

/// NICs of ours, each behind a port of its own. The wire, or the end of it that is here, and a capture are in their
/// process.
fn add_own_wire(
    arguments: &mut Arguments,
    ports: &mut Ports,
    wire: Wire,
    machine: &Machine,
    devices: &Devices,
) {
    for end in End::BOTH {
        // As above.
        let bus = ports.add_for_nic(machine.nic_bus, arguments);
        let rom = machine.nic_rom.as_deref();
        if machine.ends().any(|own| own == end) {
            arguments.device(devices.nic(wire, end, &bus, rom));
        }
    }
}

/// A command line in the making.
#[derive(Default)]
pub(crate) struct Arguments(Vec<OsString>);

impl Arguments {
    /// Adds an option without a value.
    pub(crate) fn flag(&mut self, name: &str) {
        self.0.push(name.into());
    }

    /// Adds an option with its value.
    pub(crate) fn add(&mut self, name: &str, value: impl Into<OsString>) {
        self.flag(name);
        self.0.push(value.into());
    }

    /// Adds a device with its properties.
    pub(crate) fn device(&mut self, value: impl Into<OsString>) {
        self.add("-device", value);
    }

    /// All of it, for tests to look at.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

/// A path as the value of a QEMU option. Run directories are canonical paths that this program
/// names, so replacing what is no UTF-8 concerns a root that a user chose to be strange.
fn path(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// In QEMU's option lists a comma ends a value and two commas are one.
pub(crate) fn escape(text: &str) -> String {
    text.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Topology;

    #[test]
    fn a_comma_in_a_path_does_not_end_the_option() {
        assert_eq!(
            path(Path::new("/tmp/a,b/console.log")),
            "/tmp/a,,b/console.log"
        );
    }

    /// A machine's arguments for its wires.
    fn arguments_of(machine: Machine, cables: &[RawFd]) -> Vec<String> {
        let mut arguments = Arguments::default();
        let mut ports = Ports::new(Topology::RootPorts, &mut arguments);
        let fds = Inherited {
            cables: cables.to_vec(),
            ..Inherited::NONE
        };
        for wire in machine.wires() {
            let run = RunDir::nowhere();
            add_wire(&mut arguments, &mut ports, wire, &run, &machine, &fds);
        }
        let words = arguments.0.iter().map(|word| word.to_string_lossy());
        words.map(|word| word.into_owned()).collect()
    }

    #[test]
    fn of_a_wire_to_another_machine_there_is_one_end_at_its_usual_port() {
        let ends = Cables::lay(2).unwrap();
        for cables in ends {
            let end = cables.end();
            let machine = Machine::new().cables(cables);
            let text = arguments_of(machine, &[5, 6]).join(" ");
            assert_eq!(text.matches("igb,id=").count(), 2, "{text}");
            assert_eq!(text.matches("hubport").count(), 0, "{text}");
            for (wire, fd) in [(Wire(0), 5), (Wire(1), 6)] {
                let netdev = format!("dgram,id={},local.type=fd,local.str={fd}", wire.netdev(end));
                let device = format!("igb,id={},bus={},", wire.nic(end), wire.port(end));
                assert!(text.contains(&netdev) && text.contains(&device), "{text}");
            }
        }
    }

    #[test]
    fn the_nics_of_a_wire_share_a_hub_and_nothing_else() {
        let all = arguments_of(Machine::new().wire_count(2), &[]);
        let starting = |prefix: &str| {
            all.iter()
                .filter(|a| a.starts_with(prefix))
                .collect::<Vec<_>>()
        };
        assert_eq!(starting("hubport").len(), 4);
        assert_eq!(all.iter().filter(|a| a.ends_with("hubid=1")).count(), 2);
        // Where they are put when they are plugged in again.
        for wire in [Wire(0), Wire(1)] {
            for end in End::BOTH {
                let device = format!("igb,id={},bus={},", wire.nic(end), wire.port(end));
                assert_eq!(starting(&device).len(), 1, "{all:?}");
            }
        }
        for prefix in ["igb,", "pcie-root-port,"] {
            let mut found = starting(prefix);
            assert_eq!(found.len(), 4);
            found.dedup();
            assert_eq!(found.len(), 4, "{found:?}");
        }
    }
}
