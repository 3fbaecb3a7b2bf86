// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs a job in a process of its own, so that it can be killed.
//!
//! The process is another agent that serves calls on its standard input and output. It starts the
//! job; its reports are forwarded under the job ID that the host knows.

use std::{
    collections::HashMap,
    env,
    io::{self, BufReader},
    os::fd::OwnedFd,
    process::{self, ChildStdin, ChildStdout, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use anyhow::{Context, Result, anyhow};
use protocol::{
    Call, Command, Event, Failure, Job, JobId, Join, Message, Request, StartJob, Tell, frame,
};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use super::job::{Control, Ready};
use crate::{lock::lock, outbox::send_event};

/// The argument that makes the agent serve its standard input and output.
pub(crate) const ARGUMENT: &str = "serve";

pub(super) fn set_up(id: JobId, job: Job) -> Result<Ready> {
    let process = Process::start(id)?;
    let started = process.call(StartJob {
        job,
        process: false,
    })?;
    let job: JobId = serde_json::from_value(started).context("decoding the job's number")?;
    let control = Arc::new(Remote { process, job });
    let joined = Arc::clone(&control);
    Ok(Ready {
        control,
        // After this the process' channel is closed, and it ends.
        run: Box::new(move || joined.process.call(Join { job })),
    })
}

/// The job in the process.
struct Remote {
    process: Process,
    job: JobId,
}

impl Control for Remote {
    fn tell(&self, command: &Command) -> Result<()> {
        if *command == Command::Kill {
            return self.process.kill();
        }
        let (job, command) = (self.job, command.clone());
        self.process.call(Tell { job, command }).map(drop)
    }
}

type Answer = Result<Value, Failure>;

/// Calls that are not answered yet. `None`: the process is gone.
type Pending = Mutex<Option<HashMap<u64, mpsc::Sender<Answer>>>>;

/// Another agent.
struct Process {
    pidfd: OwnedFd,
    input: Mutex<ChildStdin>,
    last: AtomicU64,
    pending: Arc<Pending>,
}

impl Process {
    /// Starts an agent. The events of its jobs become those of `id`.
    fn start(id: JobId) -> Result<Self> {
        let exe = env::current_exe().context("looking for the agent's program")?;
        let mut child = process::Command::new(exe)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a process")?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let pidfd = pidfd.context("opening a process")?;
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        // The child is not waited for here: `children` reaps it like an orphan.
        drop(child);

        let pending: Arc<Pending> = Arc::new(Mutex::new(Some(HashMap::new())));
        let answers = Arc::clone(&pending);
        thread::Builder::new()
            .name(format!("process {}", id.0))
            .spawn(move || {
                pass_on(id, output, &answers);
                // Waiters notice, because their channels close.
                lock(&answers).take();
            })?;
        Ok(Self {
            pidfd,
            input: Mutex::new(input),
            last: AtomicU64::new(0),
            pending,
        })
    }

    /// Calls the other agent and waits for its answer.
    fn call(&self, request: impl Into<Request>) -> Result<Value> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = mpsc::channel();
        match &mut *lock(&self.pending) {
            Some(pending) => pending.insert(id, sender),
            None => return Err(gone()),
        };
        let call = Call {
            id,
            request: request.into(),
        };
        frame::write(&mut *lock(&self.input), &call).context("speaking to the job's process")?;
        let answer = answer.recv().map_err(|_| gone())?;
        answer.map_err(|failure| match failure.errno {
            Some(errno) => {
                anyhow!(std::io::Error::from_raw_os_error(errno)).context(failure.message)
            }
            None => anyhow!(failure.message),
        })
    }

    fn kill(&self) -> Result<()> {
        pidfd_send_signal(&self.pidfd, Signal::KILL).context("killing the job's process")
    }
}

fn gone() -> anyhow::Error {
    anyhow!(io::Error::from(Errno::SRCH)).context("the process of the job is gone")
}

/// Forwards the other agent's messages until there are no more.
fn pass_on(id: JobId, output: ChildStdout, pending: &Pending) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(true) = frame::read_line(&mut output, &mut line) {
        match frame::parse::<Message>(&line) {
            // The end is reported once the outcome is available.
            Ok(Message::Event { event, .. }) if event != Event::Ended => send_event(id, event),
            Ok(Message::Reply { id, result }) => {
                let sender = lock(pending).as_mut().and_then(|all| all.remove(&id));
                // The caller may have given up.
                sender.map(|sender| sender.send(result));
            }
            _ => {}
        }
    }
}
