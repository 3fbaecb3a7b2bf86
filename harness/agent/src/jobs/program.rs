// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs an external program.

mod streams;

use std::{
    os::unix::process::CommandExt,
    process,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use protocol::{
    Command, JobId, Program,
    program::{ProgramCommand, ProgramReport, Streams},
};
use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process, kill_process_group, setsid};

use self::streams::{Ends, Input};
use super::job::{Control, Ready, not_understood};
use crate::{children::Child, lock::lock, netns, root};

/// How long leftover processes of a program may keep its output open.
const LEFTOVERS: Duration = Duration::from_secs(5);

pub(super) fn set_up(id: JobId, spec: Program) -> Result<Ready> {
    let (program, arguments) = spec.command.split_first().context("no program is named")?;
    let Ends {
        child,
        input,
        outputs,
    } = Ends::open(spec.streams, &spec.root)?;
    let [stdin, stdout, stderr] = child;
    let mut command = process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(&spec.environment)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    if let Streams::Terminal { .. } = spec.streams {
        let lead = || {
            setsid()?;
            // Standard input is the terminal.
            Ok(ioctl_tiocsctty(rustix::stdio::stdin())?)
        };
        // SAFETY: Between fork and exec this makes two system calls.
        unsafe { command.pre_exec(lead) };
    } else {
        command.process_group(0);
    }
    root::enter(&mut command, &spec);
    let child = netns::within(spec.ns, || {
        Child::spawn(&mut command).with_context(|| format!("starting {program}"))
    })?;
    // The command holds the pipes' other ends, too.
    drop(command);
    let group = child.pid;
    let ended = streams::pass_on(id, outputs)?;
    let control = Arc::new(Running {
        group,
        input: Mutex::new(input),
    });
    Ok(Ready::new::<Program, _>(control, move |_| {
        let status = child.wait();
        // Leftover processes would disturb the next program. It is fine if there are none.
        let _ = kill_process_group(group, Signal::KILL);
        // For processes that escaped that, do not wait until the output ends.
        let _ = ended.recv_timeout(LEFTOVERS);
        match status.terminating_signal() {
            Some(signal) => ProgramReport::Killed { signal },
            None => ProgramReport::Exited {
                status: status.exit_status().unwrap_or(-1),
            },
        }
    }))
}

/// A program that runs.
struct Running {
    /// Of the program and its children; its ID is the program's PID.
    group: Pid,
    input: Mutex<Input>,
}

impl Control for Running {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::Stop => kill_process(self.group, Signal::TERM),
            Command::Kill => kill_process_group(self.group, Signal::KILL),
            Command::Program(command) => return self.tell_program(command),
            _ => return Err(not_understood("Program", command)),
        }
        .context("sending a signal")
    }
}

impl Running {
    fn tell_program(&self, command: &ProgramCommand) -> Result<()> {
        match command {
            ProgramCommand::Input(bytes) => lock(&self.input).write(&bytes.0),
            ProgramCommand::CloseInput => lock(&self.input).close(),
            ProgramCommand::Resize(size) => lock(&self.input).resize(*size),
            ProgramCommand::Signal(signal) => {
                let Some(signal) = Signal::from_named_raw(*signal) else {
                    bail!("there is no signal {signal}");
                };
                kill_process_group(self.group, signal).context("sending a signal")
            }
        }
    }
}
