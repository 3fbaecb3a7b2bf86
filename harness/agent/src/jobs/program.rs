// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs an external program.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    os::fd::OwnedFd,
    os::unix::process::CommandExt,
    process,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use protocol::{Command, Event, JobId, Program, program::ProgramReport};
use rustix::{
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, kill_process, kill_process_group},
};

use super::{Control, Ready, not_understood};
use crate::{children::Child, control::send_event, root};

/// How long leftover processes of a program may keep its output open.
const LEFTOVERS: Duration = Duration::from_secs(5);

pub(super) fn set_up(id: JobId, spec: Program) -> Result<Ready> {
    let (program, arguments) = spec.command.split_first().context("no program is named")?;
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).context("making a pipe")?;
    let mut command = process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(&spec.environment)
        .process_group(0)
        .stdout(write.try_clone()?)
        .stderr(write);
    root::enter(&mut command, &spec.root, &spec.directory);
    let child = Child::spawn(&mut command).with_context(|| format!("starting {program}"))?;
    // The command holds the pipe's other end, too.
    drop(command);
    let group = child.pid;
    let output = pass_on(id, read)?;
    Ok(Ready::new::<Program>(Arc::new(Group(group)), move || {
        let status = child.wait();
        // Leftover processes would disturb the next program. It is fine if there are none.
        let _ = kill_process_group(group, Signal::KILL);
        // For processes that escaped that, do not wait until the output ends.
        let _ = output.recv_timeout(LEFTOVERS);
        match status.terminating_signal() {
            Some(signal) => ProgramReport::Killed { signal },
            None => ProgramReport::Exited {
                status: status.exit_status().unwrap_or(-1),
            },
        }
    }))
}

/// Sends lines as events until there are no more; the channel closes then.
fn pass_on(id: JobId, read: OwnedFd) -> Result<mpsc::Receiver<()>> {
    let (sender, done) = mpsc::channel();
    let mut lines = BufReader::new(File::from(read));
    thread::Builder::new()
        .name(format!("output {}", id.0))
        .spawn(move || {
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                send_event(id, Event::Line { text });
                line.clear();
            }
            drop(sender);
        })
        .context("starting a thread")?;
    Ok(done)
}

/// The process group of the program and its children; its ID is the program's PID.
struct Group(Pid);

impl Control for Group {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::Stop => kill_process(self.0, Signal::TERM),
            Command::Kill => kill_process_group(self.0, Signal::KILL),
            _ => return Err(not_understood("Program", command)),
        }
        .context("sending a signal")
    }
}
