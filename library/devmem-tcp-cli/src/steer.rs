// SPDX-License-Identifier: MIT OR Apache-2.0

//! `steer`: sets an interface up for as long as a command runs.

use std::io;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::thread;

use anyhow::{Context, Result, ensure};
use devmem_tcp::steering::{Plan, Steering};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit;
use crate::flow::{LOOK, Run};
use crate::interface::About;

/// Which flows reach which queues, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    about: About,
    /// RX queue to take out of RSS, for whatever will be bound to it; may be given several times
    #[arg(long = "queue", value_name = "NUMBER", required = true)]
    queues: Vec<u32>,
    /// What is sent to this TCP port reaches the queue; may be given several times
    #[arg(long = "port", value_name = "PORT")]
    ports: Vec<u16>,
    /// One connection reaches it, by local and peer's address and port; may be given several times
    #[arg(long = "connection", value_name = "LOCAL=PEER", value_parser = connection)]
    connections: Vec<(SocketAddr, SocketAddr)>,
    /// Everything that RSS distributes reaches it
    #[arg(long, conflicts_with_all = ["ports", "connections"])]
    everything: bool,
    /// Run until this command ends, and pass on its exit code [default: until a signal]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn connection(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let pair = text
        .split_once('=')
        .and_then(|(local, peer)| Some((local.parse().ok()?, peer.parse().ok()?)));
    pair.ok_or_else(|| format!("\"{text}\" is not as 192.0.2.1:5201=192.0.2.2:40000"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let run = Run::new("steering")?;
    let mut plan = arguments
        .queues
        .iter()
        .fold(Plan::new(arguments.about.find()?), |plan, &queue| {
            plan.queue(queue)
        });
    for &port in &arguments.ports {
        plan = plan.tcp_port(port);
    }
    for &(local, peer) in &arguments.connections {
        plan = plan.tcp_connection(local, peer);
    }
    if arguments.everything {
        plan = plan.everything();
    }
    let steering = plan.apply_unbound()?;
    let by = steering.steered();
    eprintln!(
        "devmem-tcp: steering to queue {:?} by {by}",
        arguments.queues
    );
    let code = match arguments.command.split_first() {
        Some((program, rest)) => {
            let status = wait(Command::new(program).args(rest), &run);
            let status = status.with_context(|| format!("running {program}"))?;
            // As a shell says it.
            let by_signal = || status.signal().map(|signal| 128 + signal);
            let code = status.code().or_else(by_signal);
            code.and_then(|code| u8::try_from(code).ok())
                .unwrap_or(exit::FAILED)
        }
        None => {
            while !run.stopped() {
                thread::sleep(LOOK);
            }
            exit::HOLDS
        }
    };
    undo(steering)?;
    Ok(code)
}

/// Undoes what was set up; prints what can't be, which is an error.
pub(crate) fn undo(steering: Steering) -> Result<()> {
    let left = steering.undo();
    for error in &left {
        eprintln!("devmem-tcp: can't undo a change: {error}");
    }
    ensure!(left.is_empty(), "the interface is not as it was");
    Ok(())
}

/// Runs a command to its end, and passes on what is to end it. (SIGINT of a terminal gets to it anyway.)
fn wait(command: &mut Command, run: &Run) -> io::Result<ExitStatus> {
    let mut signals = Signals::new([SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let mut child = command.spawn()?;
    let id = Pid::from_child(&child);
    if run.stopped() {
        // It came before the command did.
        kill_process(id, Signal::TERM)?;
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            for signal in &mut signals {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    // It may have ended meanwhile.
                    let _ = kill_process(id, signal);
                }
            }
        });
        // The number stays the command's until it is waited for without NOWAIT.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(id), ended).is_err_and(|errno| errno == Errno::INTR) {}
        handle.close();
    });
    child.wait()
}
