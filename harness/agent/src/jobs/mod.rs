// SPDX-License-Identifier: MIT OR Apache-2.0

//! Background jobs. One file for each kind of job.

mod area;
mod binding;
mod copy_sink;
mod devmem_gather;
mod devmem_relay;
mod devmem_signalled;
mod devmem_sink;
mod devmem_source;
mod held;
mod job;
mod measured;
mod measured_sink;
mod measured_source;
mod measured_window;
pub(crate) mod memory;
mod paced_wire;
mod process;
mod program;
mod receive;
mod report;
mod restarts;
mod switch;
mod tcp;
mod tcp_sink;
mod tcp_source;
mod udp_sink;
mod udp_source;
mod xdp_socket;
mod zcrx_sink;

pub(crate) use process::ARGUMENT;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result, anyhow};
use protocol::{Command, Event, Job, JobId};
use serde_json::Value;

use self::job::{Control, Ready};
use crate::{lock::lock, outbox::send_event};

struct Running {
    control: Arc<dyn Control>,
    thread: JoinHandle<Result<Value>>,
}

/// All jobs that were started but not joined.
#[derive(Default)]
pub(crate) struct Jobs {
    last: AtomicU64,
    running: Mutex<HashMap<JobId, Running>>,
}

impl Jobs {
    /// Sets up a job and runs it in a thread or in a process of its own.
    pub(crate) fn start(&self, job: Job, process: bool) -> Result<JobId> {
        let id = JobId(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let name = job.name();
        let Ready { control, run } = match job {
            job if process => process::set_up(id, job),
            Job::TcpSink(spec) => tcp_sink::set_up(id, spec),
            Job::TcpSource(spec) => tcp_source::set_up(id, spec),
            Job::DevmemSink(spec) => devmem_sink::set_up(id, spec),
            Job::DevmemSource(spec) => devmem_source::set_up(id, spec),
            Job::DevmemRelay(spec) => devmem_relay::set_up(id, spec),
            Job::DevmemGather(spec) => devmem_gather::set_up(id, spec),
            Job::DevmemSignalled(spec) => devmem_signalled::set_up(id, spec),
            Job::CopySink(spec) => copy_sink::set_up(id, spec),
            Job::Binding(spec) => binding::set_up(id, &spec),
            Job::UdpSink(spec) => udp_sink::set_up(id, &spec),
            Job::UdpSource(spec) => udp_source::set_up(id, spec),
            Job::ZcrxSink(spec) => zcrx_sink::set_up(id, spec),
            Job::XdpSocket(spec) => xdp_socket::set_up(id, spec),
            Job::MeasuredSink(spec) => measured_sink::set_up(id, spec),
            Job::MeasuredSource(spec) => measured_source::set_up(id, spec),
            Job::PacedWire(spec) => paced_wire::set_up(&spec),
            Job::Program(spec) => program::set_up(id, spec),
            Job::Restarts(spec) => restarts::set_up(spec),
        }?;
        let thread = thread::Builder::new()
            .name(format!("{name} {}", id.0))
            .spawn(move || {
                let outcome = run();
                send_event(id, Event::Ended);
                outcome
            })?;
        lock(&self.running).insert(id, Running { control, thread });
        Ok(id)
    }

    /// Passes a command on.
    pub(crate) fn tell(&self, job: JobId, command: &Command) -> Result<()> {
        let control = lock(&self.running)
            .get(&job)
            .map(|job| Arc::clone(&job.control));
        control.with_context(|| unknown(job))?.tell(command)
    }

    /// Waits for the end and returns the outcome.
    pub(crate) fn join(&self, job: JobId) -> Result<Value> {
        // Not removed from the table yet: the job must receive commands while it is waited for.
        loop {
            let mut running = lock(&self.running);
            let found = running.get(&job).with_context(|| unknown(job))?;
            if found.thread.is_finished() {
                let job = running.remove(&job).with_context(|| unknown(job))?;
                drop(running);
                let outcome = job.thread.join().map_err(|_| anyhow!("the job panicked"))?;
                // Release bindings and dma-bufs before the host gets the outcome.
                drop(job.control);
                return outcome;
            }
            drop(running);
            thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

fn unknown(job: JobId) -> String {
    format!(
        "there is no job {}: it was never started, or joined before",
        job.0
    )
}
