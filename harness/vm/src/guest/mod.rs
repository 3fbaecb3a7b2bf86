// SPDX-License-Identifier: MIT OR Apache-2.0

//! A running guest.

mod boot;
mod nics;
mod verdict;

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock},
    thread,
    time::Duration,
};

use protocol::{
    Event, Job, JobId, JobSpec, Query, Request, StartJob, agent::AgentInfo, memory::PhysicalRange,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::verdict::Expectation;
pub use self::verdict::Verdict;
use crate::{
    DmaBufView, Error, GuestMemory, JobHandle, Logs, Result, Wire,
    channel::{Channel, Silence},
    device::Devices,
    lock::lock,
    memory::Backing,
    process::Process,
    qmp::Monitor,
    run_dir::RunDir,
    scan::scan,
    silence::{explain, keep_registers},
    snapshot::{Memories, Place},
    topology::accelerator_address,
};

/// A guest whose agent answers.
///
/// Dropping it kills QEMU; so does the end of this process. [`Guest::finish`] ends it properly.
#[derive(Debug)]
pub struct Guest {
    // The process first: it dies before what it uses goes away.
    process: Process,
    /// Our devices, if there are any.
    devices: Option<Devices>,
    channel: Channel,
    monitor: Mutex<Monitor>,
    ram: GuestMemory,
    ram_backing: Backing,
    accelerator_backing: Option<Backing>,
    /// The accelerator's memory, from when its address is known.
    accelerator_memory: OnceLock<GuestMemory>,
    run: RunDir,
    info: AgentInfo,
    hypervisor: &'static str,
    boot_time: Duration,
    resumed: bool,
    /// Where it is to be kept for others.
    place: Option<Place>,
    unkept: Option<Error>,
    call_timeout: Duration,
    wires: u8,
    /// As [`Machine::nic`](crate::Machine::nic).
    nic: String,
    expected: Mutex<Vec<Expectation>>,
    finished: bool,
}

impl Guest {
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
        self.ask(request, name, timeout)
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
        let request = StartJob { job, process }.into();
        let id = self.ask(request, name, self.call_timeout)?;
        Ok(JobHandle::new(self, id, name))
    }

    /// Asks the agent for what errors call `name`.
    fn ask<T: DeserializeOwned>(
        &self,
        request: Request,
        name: &str,
        timeout: Duration,
    ) -> Result<T> {
        let reply = self.channel.call(request, timeout);
        let reply = reply.map_err(|silence| self.explain(silence, name, timeout))?;
        let granted = reply.map_err(|failure| Error::Refused {
            call: name.to_owned(),
            failure,
            console: self.console(),
        })?;
        decode(name, granted, self)
    }

    /// Executes any command of QEMU's monitor (QMP) and returns its value.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`].
    pub fn monitor(&self, command: &str, arguments: Value) -> Result<Value> {
        lock(&self.monitor).execute(command, arguments)
    }

    /// Reads a device's register of 32 bits, at a guest-physical address, past the guest.
    ///
    /// # Errors
    ///
    /// [`Error::Monitor`].
    pub fn read_register(&self, address: u64) -> Result<u32> {
        lock(&self.monitor).read_physical(address)
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
    pub fn hypervisor(&self) -> &'static str {
        self.hypervisor
    }

    /// From the start of QEMU to the agent's first message, or to where the guest went on.
    #[must_use]
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// Whether it did not boot, but went on from a snapshot: see
    /// [`Machine::snapshot`](crate::Machine::snapshot).
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Keeps what it is now for the next of an equal machine ([`Machine::prepared`](crate::Machine::prepared)).
    /// Nobody asks it anything meanwhile, and it has mounted no folder of the host.
    ///
    /// # Errors
    ///
    /// When the guest is lost with it. When it can't be kept, [`Guest::unkept`] says why.
    pub fn keep(&mut self) -> Result<()> {
        let Some(place) = self.place.take() else {
            return Ok(());
        };
        let memories = Memories {
            ram: &self.ram_backing,
            accelerator: self.accelerator_backing.as_ref(),
        };
        match place.take(&mut lock(&self.monitor), memories, &self.run, &self.info) {
            Err(error @ Error::Snapshot { .. }) => {
                tracing::warn!("the guest is not kept for others: {error}");
                self.unkept = Some(error);
                Ok(())
            }
            taken => taken,
        }
    }

    /// Why no other goes on from where this one was kept, although it was to be kept for them.
    #[must_use]
    pub fn unkept(&self) -> Option<&Error> {
        self.unkept.as_ref()
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

    fn explain(&self, silence: Silence, during: &str, timeout: Duration) -> Error {
        if let Some(Err(error @ Error::DevicesEnded { .. })) =
            self.devices.as_ref().map(Devices::check)
        {
            return error;
        }
        if silence == Silence::Timeout {
            if let Ok(mut monitor) = self.monitor.lock() {
                keep_registers(Ok(&mut *monitor), &self.run);
            }
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
