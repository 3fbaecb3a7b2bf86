// SPDX-License-Identifier: MIT OR Apache-2.0

//! From a machine to a guest whose agent answers.

use std::{
    fs::File,
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
    process::Command,
    sync::{Mutex, OnceLock},
    time::Instant,
};

use serde_json::json;

use super::Guest;
use crate::{
    Error, Machine, Result,
    channel::{Channel, Silence},
    memory::Backing,
    process::Process,
    qemu::{self, Inherited},
    qmp::Monitor,
    run_dir::RunDir,
    silence::{explain, keep_registers},
};

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
}
