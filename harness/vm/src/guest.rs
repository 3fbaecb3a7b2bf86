// SPDX-License-Identifier: MIT OR Apache-2.0

//! A running guest.

use std::{
    fs::{self, File},
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use protocol::{
    Event, Failure, Job, JobId, JobSpec, Query, StartJob,
    agent::{AgentInfo, PowerOff},
    kernel::FindLeaks,
    memory::PhysicalRange,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    DmaBufView, End, Error, GuestMemory, JobHandle, Logs, Machine, Result, Wire,
    channel::{Channel, Silence},
    leaks,
    memory::Backing,
    process::Process,
    qemu::{self, Inherited},
    qmp::Monitor,
    run_dir::RunDir,
    scan::{Finding, scan},
    silence::{END_TIMEOUT, ended, explain, keep_registers},
    topology::accelerator_address,
};

/// How long kmemleak may take: it looks at all of an emulated processor's memory, twice.
const LEAKS_TIMEOUT: Duration = Duration::from_secs(600);

/// A guest whose agent answers.
///
/// Dropping it kills QEMU; so does the end of this process. [`Guest::finish`] ends it properly.
#[derive(Debug)]
pub struct Guest {
    // The process first: it dies before what it uses goes away.
    process: Process,
    channel: Channel,
    monitor: Mutex<Monitor>,
    ram: GuestMemory,
    accelerator_backing: Option<Backing>,
    /// The accelerator's memory, from when its address is known.
    accelerator_memory: OnceLock<GuestMemory>,
    run: RunDir,
    info: AgentInfo,
    accelerator: &'static str,
    boot_time: Duration,
    call_timeout: Duration,
    wires: u8,
    expected: Mutex<Vec<Expectation>>,
    finished: bool,
}

/// A line of the kernel's log that is no reason to fail.
#[derive(Debug)]
struct Expectation {
    pattern: String,
    required: bool,
}

/// A guest that ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Directory of the logs.
    pub directory: PathBuf,
    /// The kernel's log.
    pub console: PathBuf,
    /// Every message between host and guest.
    pub transcript: PathBuf,
    /// What crossed each wire.
    pub pcaps: Vec<PathBuf>,
    /// Complaints that were expected or allowed.
    pub allowed: Vec<Finding>,
}

impl Guest {
    /// Starts QEMU and waits for the agent.
    pub(crate) fn boot(machine: Machine, accelerators: &[&str]) -> Result<Self> {
        let span = tracing::info_span!("boot", name = machine.name);
        let _entered = span.enter();
        let start = Instant::now();
        let run = RunDir::create(&machine.logs, &machine.name)?;
        tracing::debug!(directory = %run.path().display(), "run directory");
        let unwritable = |error| Error::RunDirectory {
            path: run.path().to_owned(),
            error,
        };

        let ram = Backing::create("the guest's RAM", machine.memory_mib << 20)?;
        let accelerator_backing = machine
            .accelerator_mib
            .map(|mib| Backing::create("the accelerator's memory", mib << 20))
            .transpose()?;
        let (control, guest_control) = UnixStream::pair().map_err(unwritable)?;
        let (monitor, guest_monitor) = UnixStream::pair().map_err(unwritable)?;
        let transcript = File::create(run.transcript()).map_err(unwritable)?;
        let output = File::create(run.qemu_output()).map_err(unwritable)?;

        let share = |backing: &Backing| backing.as_fd().try_clone_to_owned().map_err(unwritable);
        let guest_ram = share(&ram)?;
        let guest_accelerator = accelerator_backing.as_ref().map(share).transpose()?;
        let fds = Inherited {
            ram: guest_ram.as_raw_fd(),
            accelerator: guest_accelerator.as_ref().map(AsRawFd::as_raw_fd),
            control: guest_control.as_raw_fd(),
            monitor: guest_monitor.as_raw_fd(),
        };
        let mut inherited = vec![guest_ram, guest_control.into(), guest_monitor.into()];
        inherited.extend(guest_accelerator);
        let images = &machine.images;
        let Some((program, arguments)) = images.qemu.argv.split_first() else {
            return Err(Error::BadMachine(
                "the manifest names no command for QEMU".to_owned(),
            ));
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(&images.qemu.env);
        command.args(qemu::arguments(&machine, images, &run, accelerators, fds));
        tracing::debug!(?command, "starting QEMU");
        let process =
            Process::spawn(command, inherited, output).map_err(|error| Error::QemuMissing {
                program: program.clone(),
                error,
            })?;

        let channel =
            Channel::new(control, transcript, machine.call_timeout).map_err(unwritable)?;
        let info = match channel.wait_ready(machine.call_timeout) {
            Ok(info) => info,
            Err(silence) => {
                if silence == Silence::Timeout {
                    keep_registers(Monitor::connect(monitor), &run);
                }
                let during = "the boot";
                let timeout = machine.call_timeout;
                return Err(explain(silence, during, timeout, &process, &run));
            }
        };
        if info.version != protocol::VERSION {
            return Err(Error::Version {
                agent: info.version,
                host: protocol::VERSION,
            });
        }
        let mut monitor = Monitor::connect(monitor)?;
        let kvm = monitor.execute("query-kvm", json!({}))?;
        let accelerator = if kvm["enabled"] == true { "kvm" } else { "tcg" };
        let boot_time = start.elapsed();
        tracing::info!(
            accelerator,
            ?boot_time,
            kernel = info.kernel_release,
            "the guest is up"
        );
        Ok(Self {
            process,
            channel,
            monitor: Mutex::new(monitor),
            ram: ram.as_ram()?,
            accelerator_backing,
            accelerator_memory: OnceLock::new(),
            run,
            info,
            accelerator,
            boot_time,
            call_timeout: machine.call_timeout,
            wires: machine.wires,
            expected: Mutex::default(),
            finished: false,
        })
    }

    /// Asks the agent and waits for its answer. Other threads may ask meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with the guest's errno when the guest could not do it, and those of a
    /// lost guest: [`Error::Timeout`], [`Error::KernelPanic`], [`Error::AgentPanicked`],
    /// [`Error::QemuEnded`], [`Error::Channel`].
    pub fn call<Q: Query>(&self, request: Q) -> Result<Q::Reply> {
        self.call_within(request, self.call_timeout)
    }

    /// As [`Guest::call`] with a timeout of its own.
    ///
    /// # Errors
    ///
    /// As [`Guest::call`].
    pub fn call_within<Q: Query>(&self, request: Q, timeout: Duration) -> Result<Q::Reply> {
        let request = request.into();
        let name = request.name();
        let _entered = tracing::debug_span!("call", name).entered();
        let reply = self.channel.call(request, timeout);
        let reply = reply.map_err(|silence| self.explain(silence, name, timeout))?;
        decode(name, self.granted(name, reply)?, self)
    }

    /// Sets a job up in the guest. It listens, is connected or bound when this returns.
    ///
    /// # Errors
    ///
    /// As [`Guest::call`]; [`Error::Refused`] when the setup failed.
    pub fn start<J: JobSpec>(&self, job: J) -> Result<JobHandle<'_, J>> {
        self.start_job(job.into(), false)
    }

    /// As [`Guest::start`], in a process of its own, which [`protocol::Command::Kill`] ends.
    ///
    /// # Errors
    ///
    /// As [`Guest::start`].
    pub fn start_process<J: JobSpec>(&self, job: J) -> Result<JobHandle<'_, J>> {
        self.start_job(job.into(), true)
    }

    fn start_job<J: JobSpec>(&self, job: Job, process: bool) -> Result<JobHandle<'_, J>> {
        let name = job.name();
        let _entered = tracing::debug_span!("start", job = name).entered();
        let reply = self
            .channel
            .call(StartJob { job, process }.into(), self.call_timeout);
        let reply = reply.map_err(|silence| self.explain(silence, name, self.call_timeout))?;
        let id: JobId = decode(name, self.granted(name, reply)?, self)?;
        Ok(JobHandle::new(self, id, name))
    }

    /// Puts a NIC's link up or down, as if its cable was pulled.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`].
    pub fn set_link(&self, wire: Wire, end: End, up: bool) -> Result<()> {
        self.monitor("set_link", json!({ "name": wire.nic(end), "up": up }))
            .map(drop)
    }

    /// Unplugs the NIC at one end of a wire: QEMU asks the guest to let go of it.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`].
    pub fn unplug(&self, wire: Wire, end: End) -> Result<()> {
        self.monitor("device_del", json!({ "id": wire.nic(end) }))
            .map(drop)
    }

    /// Whether there is a NIC at one end of a wire.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`].
    pub fn is_plugged(&self, wire: Wire, end: End) -> Result<bool> {
        let list = self.monitor("qom-list", json!({ "path": "/machine/peripheral" }))?;
        let name = wire.nic(end);
        let devices = list.as_array().into_iter().flatten();
        Ok(devices
            .into_iter()
            .any(|device| device["name"] == name.as_str()))
    }

    /// Plugs in the NIC at one end of a wire, which was unplugged.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`].
    pub fn plug(&self, wire: Wire, end: End) -> Result<()> {
        let nic = json!({
            "driver": "igb",
            "id": wire.nic(end),
            "bus": wire.port(end),
            "netdev": wire.netdev(end),
            "mac": wire.mac(end).to_string(),
        });
        self.monitor("device_add", nic).map(drop)
    }

    /// Executes any command of QEMU's monitor (QMP) and returns its value.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`].
    pub fn monitor(&self, command: &str, arguments: Value) -> Result<Value> {
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        monitor.execute(command, arguments)
    }

    /// The guest's RAM.
    #[must_use]
    pub fn ram(&self) -> &GuestMemory {
        &self.ram
    }

    /// The accelerator's memory, at the guest-physical address that its BAR has.
    ///
    /// The BAR has none until a driver switched it on, and is expected to stay where it is then.
    ///
    /// # Errors
    ///
    /// [`Error::NoAccelerator`] when the machine has none or its BAR is off, [`Error::Monitor`],
    /// [`Error::Memory`].
    pub fn accelerator_memory(&self) -> Result<&GuestMemory> {
        if let Some(memory) = self.accelerator_memory.get() {
            return Ok(memory);
        }
        let missing = |why: &str| Error::NoAccelerator(why.to_owned());
        let backing = self
            .accelerator_backing
            .as_ref()
            .ok_or_else(|| missing("the machine was made without one"))?;
        let address = accelerator_address(&self.monitor("query-pci", json!({}))?)
            .ok_or_else(|| missing("its BAR is off; load its driver first"))?;
        let memory = backing.at(address)?;
        Ok(self.accelerator_memory.get_or_init(|| memory))
    }

    /// A dma-buf by the ranges that [`Event::DmaBuf`] tells, in RAM or in the accelerator's memory.
    ///
    /// # Errors
    ///
    /// As [`Guest::accelerator_memory`] for a dma-buf that is not in RAM.
    pub fn dmabuf(&self, ranges: Vec<PhysicalRange>) -> Result<DmaBufView<'_>> {
        let in_ram = ranges.iter().all(|range| self.ram.contains(range.address));
        let memory = if in_ram {
            &self.ram
        } else {
            self.accelerator_memory()?
        };
        Ok(DmaBufView::new(memory, ranges))
    }

    /// What the agent said about its guest at the start.
    #[must_use]
    pub fn info(&self) -> &AgentInfo {
        &self.info
    }

    /// What executes the guest's instructions: `kvm` or `tcg`.
    #[must_use]
    pub fn accelerator(&self) -> &'static str {
        self.accelerator
    }

    /// From the start of QEMU to the agent's first message.
    #[must_use]
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// How long the guest may take for an answer.
    #[must_use]
    pub fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Directory of this boot's logs.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.run.path()
    }

    /// File with the kernel's log.
    #[must_use]
    pub fn console(&self) -> PathBuf {
        self.run.console()
    }

    /// The kernel's log so far.
    #[must_use]
    pub fn console_text(&self) -> String {
        self.run.console_text()
    }

    /// File with every message between host and guest.
    #[must_use]
    pub fn transcript(&self) -> PathBuf {
        self.run.transcript()
    }

    /// File with what crosses a wire.
    #[must_use]
    pub fn pcap(&self, wire: Wire) -> PathBuf {
        self.run.file(&wire.pcap())
    }

    /// A complaint of the kernel that contains `pattern` is what this run provokes:
    /// [`Guest::finish`] fails without it.
    pub fn expect_log(&self, pattern: &str) {
        self.expect(pattern, true);
    }

    /// A complaint of the kernel that contains `pattern` is no reason to fail, nor is its absence.
    pub fn allow_log(&self, pattern: &str) {
        self.expect(pattern, false);
    }

    fn expect(&self, pattern: &str, required: bool) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.push(Expectation {
            pattern: pattern.to_owned(),
            required,
        });
    }

    /// Looks for complaints in the kernel's log so far; returns those that are allowed.
    ///
    /// # Errors
    ///
    /// [`Error::KernelComplained`].
    pub fn check_log(&self) -> Result<Vec<Finding>> {
        self.judge(scan(&self.console_text()), self.console())
    }

    /// Returns the findings that are allowed, and fails when there are others.
    fn judge(&self, findings: Vec<Finding>, log: PathBuf) -> Result<Vec<Finding>> {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let is_expected = |finding: &Finding| {
            expected
                .iter()
                .any(|expectation| finding.text.contains(&expectation.pattern))
        };
        let (allowed, findings): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_expected);
        if findings.is_empty() {
            Ok(allowed)
        } else {
            Err(Error::KernelComplained {
                findings,
                console: log,
            })
        }
    }

    /// Asks a kernel that has kmemleak for memory that nothing refers to any more.
    fn check_leaks(&self) -> Result<Vec<Finding>> {
        let Some(report) = self.call_within(FindLeaks {}, LEAKS_TIMEOUT)? else {
            return Ok(Vec::new());
        };
        let path = self.run.file("kmemleak.log");
        fs::write(&path, &report).map_err(|error| Error::RunDirectory {
            path: path.clone(),
            error,
        })?;
        self.judge(leaks::findings(&report), path)
    }

    /// Turns the guest off, waits for QEMU's end and looks through the kernel's log. Before that, a
    /// kernel that has kmemleak is asked for leaks.
    ///
    /// # Errors
    ///
    /// [`Error::KernelComplained`] when the kernel complained, [`Error::LogLineMissing`] when it
    /// did not complain as expected, and those of a lost guest.
    pub fn finish(mut self) -> Result<Verdict> {
        self.finished = true;
        let leaks = self.check_leaks();
        self.call(PowerOff {})?;
        let Some(status) = self.process.wait(self.call_timeout.max(END_TIMEOUT)) else {
            return Err(self.explain(Silence::Timeout, "power off", self.call_timeout));
        };
        if !status.success() {
            return Err(ended("power off", status, &self.run));
        }
        let mut allowed = self.check_log()?;
        allowed.extend(leaks?);
        let text = self.console_text();
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = expected
            .iter()
            .find(|e| e.required && !text.contains(&e.pattern));
        if let Some(Expectation { pattern, .. }) = missing {
            return Err(Error::LogLineMissing {
                pattern: pattern.clone(),
                console: self.console(),
            });
        }
        Ok(Verdict {
            directory: self.directory().to_owned(),
            console: self.console(),
            transcript: self.transcript(),
            pcaps: (0..self.wires).map(|wire| self.pcap(Wire(wire))).collect(),
            allowed,
        })
    }

    pub(crate) fn logs(&self) -> Logs {
        self.run.logs()
    }

    pub(crate) fn event(&self, job: JobId, name: &str, wait: Duration) -> Result<Option<Event>> {
        match self.channel.event(job, wait) {
            Ok(event) => Ok(Some(event)),
            Err(Silence::Timeout) => Ok(None),
            Err(silence) => Err(self.explain(silence, name, wait)),
        }
    }

    pub(crate) fn forget(&self, job: JobId) {
        self.channel.forget(job);
    }

    fn granted(&self, call: &str, reply: std::result::Result<Value, Failure>) -> Result<Value> {
        reply.map_err(|failure| Error::Refused {
            call: call.to_owned(),
            failure,
            console: self.console(),
        })
    }

    fn explain(&self, silence: Silence, during: &str, timeout: Duration) -> Error {
        if silence == Silence::Timeout
            && let Ok(mut monitor) = self.monitor.lock()
        {
            keep_registers(Ok(&mut *monitor), &self.run);
        }
        explain(silence, during, timeout, &self.process, &self.run)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.finished || !thread::panicking() {
            return;
        }
        // A failed assertion knows nothing of the guest: say where to look.
        self.process.kill();
        eprintln!("guest of the failed test: {}", self.logs());
        for finding in scan(&self.console_text()) {
            eprintln!("the kernel complained: {finding}");
        }
    }
}

/// Decodes what the agent answered.
pub(crate) fn decode<T: DeserializeOwned>(call: &str, value: Value, guest: &Guest) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::Channel {
        during: call.to_owned(),
        message: format!("the answer is of another type: {error}"),
        logs: guest.logs(),
    })
}
