// SPDX-License-Identifier: MIT OR Apache-2.0

//! Why a guest does not answer.

use std::{borrow::BorrowMut, fs, time::Duration};

use crate::{
    Error, Result, channel::Silence, process::Process, qmp::Monitor, run_dir::RunDir, scan::scan,
};

/// How long QEMU may take to end after the guest turned off, or to be seen dead.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(30);

/// What the agent writes into the kernel's log when it panics.
const AGENT_PANIC: &str = "agent panicked:";

/// Writes down where the processors of a guest that hangs are, if QEMU says it.
pub(crate) fn keep_registers(monitor: Result<impl BorrowMut<Monitor>>, run: &RunDir) {
    let registers = monitor.and_then(|mut monitor| monitor.borrow_mut().registers());
    let text = registers.unwrap_or_else(|error| error.to_string());
    if let Err(error) = fs::write(run.registers(), text) {
        tracing::warn!("cannot write the guest's registers: {error}");
    }
}

/// From silence to its cause: a dead QEMU, a panicked kernel, a hang.
pub(crate) fn explain(
    silence: Silence,
    during: &str,
    timeout: Duration,
    process: &Process,
    run: &RunDir,
) -> Error {
    let during = during.to_owned();
    // When the channel is closed, QEMU has ended or is about to.
    let grace = if silence == Silence::Timeout {
        Duration::ZERO
    } else {
        END_TIMEOUT
    };
    let status = process.wait(grace);
    let logs = run.logs();
    let text = run.console_text();
    match silence {
        Silence::Panicked(message) => Error::AgentPanicked {
            during,
            message,
            logs,
        },
        _ if text.contains("Kernel panic") => {
            // The panic itself often says no more than "Fatal exception"; its cause comes first.
            let cause = scan(&text).into_iter().next();
            let line = cause.map(|finding| first_line(&finding.text).to_owned());
            Error::KernelPanic {
                during,
                line: line.unwrap_or_default(),
                logs,
            }
        }
        // Before the channel was open.
        _ if text.contains(AGENT_PANIC) => {
            let message = text.lines().find(|line| line.contains(AGENT_PANIC));
            Error::AgentPanicked {
                during,
                message: message.unwrap_or_default().to_owned(),
                logs,
            }
        }
        _ if status.is_some() => {
            let status = status.unwrap_or_default();
            ended(&during, status, run)
        }
        Silence::Timeout => Error::Timeout {
            call: during,
            timeout,
            logs,
        },
        Silence::Closed => {
            let message = "QEMU closed it and still runs".to_owned();
            Error::Channel {
                during,
                message,
                logs,
            }
        }
        Silence::Broken(message) => Error::Channel {
            during,
            message,
            logs,
        },
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

pub(crate) fn ended(during: &str, status: std::process::ExitStatus, run: &RunDir) -> Error {
    let output = run.qemu_text();
    Error::QemuEnded {
        during: during.to_owned(),
        status,
        output: if output.is_empty() {
            "it printed nothing".to_owned()
        } else {
            output
        },
        logs: run.logs(),
    }
}
