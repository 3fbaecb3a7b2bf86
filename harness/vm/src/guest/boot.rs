// SPDX-License-Identifier: MIT OR Apache-2.0

//! From a machine to a guest whose agent answers.

use std::{
    fs::File,
    io::Read,
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
    sync::{Mutex, OnceLock},
    time::{Instant, SystemTime},
};

use protocol::agent::{AgentInfo, Resumed};
use serde_json::json;

use super::Guest;
use crate::{
    Cables, Error, Images, Machine, Result,
    channel::{Channel, Silence},
    device::Devices,
    machine::Moment,
    memory::Backing,
    process::Process,
    qemu::{self, Inherited},
    qmp::Monitor,
    run_dir::RunDir,
    silence::{explain, keep_registers},
    snapshot::{Memories, PATIENCE, Place, Snapshot},
};

impl Guest {
    /// Starts QEMU and waits for the agent; or lets it go on from where an equal guest was then.
    pub(crate) fn boot(
        machine: &Machine,
        images: &Images,
        name: &str,
        hypervisors: &[&str],
    ) -> Result<Self> {
        let span = tracing::info_span!("boot", name);
        let _entered = span.enter();
        let place = match Devices::wanted(machine) {
            // QEMU takes no snapshot of a machine with them: they would have to speak VFIO's migration.
            true => None,
            false => Place::of(machine, images, hypervisors),
        };
        let place = place.filter(|place| !place.is_given_up());
        let start = |snapshot: Option<&Snapshot>| {
            Started::start(machine, images, name, hypervisors, snapshot)
        };

        if let Some((place, snapshot)) = place.as_ref().and_then(|p| Some((p, p.open()?))) {
            let resumed =
                start(Some(&snapshot)).and_then(|started| started.resume(machine, snapshot));
            match resumed {
                Err(error) if !is_of_the_host(&error) => {
                    tracing::warn!("no guest came of a snapshot, it boots: {error}");
                    let guest = start(None)?.wait(machine, None)?;
                    // It is not for another reason that none came.
                    place.give_up(&error);
                    return Ok(guest);
                }
                resumed => return resumed,
            }
        }
        start(None)?.wait(machine, place)
    }
}

/// Whether an error has nothing to do with what is started: a boot would meet it, too.
fn is_of_the_host(error: &Error) -> bool {
    matches!(
        error,
        Error::RunDirectory { .. }
            | Error::DiskFull { .. }
            | Error::Memory { .. }
            | Error::QemuMissing { .. }
            | Error::BadMachine(_)
    )
}

/// A QEMU whose agent has not answered yet.
struct Started {
    start: Instant,
    run: RunDir,
    ram: Backing,
    accelerator: Option<Backing>,
    devices: Option<Devices>,
    process: Process,
    channel: Channel,
    monitor: UnixStream,
}

impl Started {
    fn start(
        machine: &Machine,
        images: &Images,
        name: &str,
        hypervisors: &[&str],
        snapshot: Option<&Snapshot>,
    ) -> Result<Self> {
        let start = Instant::now();
        let run = RunDir::create(&images.logs, name)?;
        tracing::debug!(directory = %run.path().display(), "run directory");
        let unwritable = Error::unwritable(run.path());

        let ram = Backing::create("the guest's RAM", machine.memory_mib << 20)?;
        let accelerator = machine
            .accelerator_mib
            .map(|mib| Backing::create("the accelerator's memory", mib << 20))
            .transpose()?;
        if let Some(snapshot) = snapshot {
            let memories = Memories {
                ram: &ram,
                accelerator: accelerator.as_ref(),
            };
            snapshot.lay_out(memories, &run)?;
        }
        let devices = Devices::wanted(machine).then(|| Devices::start(machine, images, &run));
        let devices = devices.transpose()?;
        let (control, guest_control) = UnixStream::pair().map_err(&unwritable)?;
        let (monitor, guest_monitor) = UnixStream::pair().map_err(&unwritable)?;
        let transcript = File::create(run.transcript()).map_err(&unwritable)?;
        let output = File::create(run.qemu_output()).map_err(&unwritable)?;

        let share = |backing: &Backing| backing.as_fd().try_clone_to_owned().map_err(&unwritable);
        let guest_ram = share(&ram)?;
        let guest_accelerator = accelerator.as_ref().map(share).transpose()?;
        // Those of our NICs are their process's.
        let cables = machine.cables.as_ref();
        let cables = cables.filter(|_| !Devices::have_nics(machine));
        let cables = cables.map(Cables::share);
        let cables = cables.transpose().map_err(&unwritable)?.unwrap_or_default();
        let fds = Inherited {
            ram: guest_ram.as_raw_fd(),
            accelerator: guest_accelerator.as_ref().map(AsRawFd::as_raw_fd),
            control: guest_control.as_raw_fd(),
            monitor: guest_monitor.as_raw_fd(),
            cables: cables.iter().map(AsRawFd::as_raw_fd).collect(),
        };
        let mut inherited = vec![guest_ram, guest_control.into(), guest_monitor.into()];
        inherited.extend(guest_accelerator);
        inherited.extend(cables);
        let Some((program, arguments)) = images.qemu.argv.split_first() else {
            return Err(Error::BadMachine(
                "the manifest names no command for QEMU".to_owned(),
            ));
        };
        let resumed = snapshot.is_some();
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        command.args(arguments).envs(&images.qemu.env);
        command.args(["-name", &format!("nobounce-{}", qemu::escape(name))]);
        command.args(qemu::arguments(
            machine,
            images,
            &run,
            hypervisors,
            &fds,
            devices.as_ref(),
            resumed,
        ));
        tracing::debug!(?command, "starting QEMU");
        let process =
            Process::spawn(command, inherited, output).map_err(|error| Error::QemuMissing {
                program: program.clone(),
                error,
            })?;
        let channel =
            Channel::new(control, transcript, machine.call_timeout).map_err(&unwritable)?;
        Ok(Self {
            start,
            run,
            ram,
            accelerator,
            devices,
            process,
            channel,
            monitor,
        })
    }

    /// Waits for the agent's first message, and takes a snapshot where one is wanted.
    fn wait(self, machine: &Machine, place: Option<Place>) -> Result<Guest> {
        let info = match self.channel.wait_ready(machine.call_timeout) {
            Ok(info) => info,
            Err(silence) => {
                if silence == Silence::Timeout {
                    keep_registers(self.connect(), &self.run);
                }
                let during = "the boot";
                let timeout = machine.call_timeout;
                return Err(explain(silence, during, timeout, &self.process, &self.run));
            }
        };
        if info.version != protocol::VERSION {
            return Err(Error::Version {
                agent: info.version,
                host: protocol::VERSION,
            });
        }
        let monitor = self.connect()?;
        let mut guest = self.guest(machine, monitor, info, false)?;
        guest.place = place.filter(|place| !place.is_given_up());
        if machine.snapshot == Some(Moment::Booted) {
            guest.keep()?;
        }
        Ok(guest)
    }

    /// Lets the guest of a snapshot go on.
    fn resume(self, machine: &Machine, snapshot: Snapshot) -> Result<Guest> {
        let mut monitor = self.connect()?;
        snapshot.resume(&mut monitor)?;
        let guest = self.guest(machine, monitor, snapshot.info, true)?;
        let mut random = [0; 32];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(|error| Error::Snapshot {
                path: "/dev/urandom".into(),
                error,
            })?;
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let time = time.unwrap_or_default();
        guest.call_within(Resumed { random, time }, PATIENCE)?;
        Ok(guest)
    }

    fn connect(&self) -> Result<Monitor> {
        let socket = self.monitor.try_clone();
        Monitor::connect(socket.map_err(Error::unwritable(self.run.path()))?)
    }

    fn guest(
        self,
        machine: &Machine,
        mut monitor: Monitor,
        info: AgentInfo,
        resumed: bool,
    ) -> Result<Guest> {
        let kvm = monitor.execute("query-kvm", json!({}))?;
        let hypervisor = if kvm["enabled"] == true { "kvm" } else { "tcg" };
        let boot_time = self.start.elapsed();
        tracing::info!(
            hypervisor,
            ?boot_time,
            kernel = info.kernel_release,
            "the guest is up"
        );
        Ok(Guest {
            process: self.process,
            devices: self.devices,
            channel: self.channel,
            monitor: Mutex::new(monitor),
            ram: self.ram.as_ram()?,
            ram_backing: self.ram,
            accelerator_backing: self.accelerator,
            accelerator_memory: OnceLock::new(),
            run: self.run,
            info,
            hypervisor,
            boot_time,
            resumed,
            place: None,
            unkept: None,
            call_timeout: machine.call_timeout,
            wires: machine.wires,
            nic: machine.nic.clone(),
            expected: Mutex::default(),
            finished: false,
        })
    }
}
