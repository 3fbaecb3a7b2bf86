// SPDX-License-Identifier: MIT OR Apache-2.0

//! `exec`: a program in a guest, as if it ran here, and another one at the wire's other end.

use std::fs;
use std::io::{Write, stderr, stdout};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use cases::Testbed;
use clap::Args;
use kselftest::Lines;
use protocol::program::{Stream, Streams};
use protocol::{Ns, Program};
use vm::{Images, Wire};

use super::side::{Outcome, Side};
use super::terminal::{self, Raw};
use super::{ROOT, Setup, boot, counted, environment, streams};

/// What to run, and where.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    setup: Setup,
    /// End the program after so many seconds, with exit status 124
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Run this (in a shell) at the other end of the wire; CMD starts as soon as
    /// it listens on a TCP port
    #[arg(long, value_name = "CMD", conflicts_with = "bare")]
    peer: Option<String>,
    /// CMD is the server: the peer starts as soon as CMD listens
    #[arg(long, requires = "peer")]
    serve: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Where to run a shell.
#[derive(Args)]
pub(crate) struct ShellOptions {
    #[command(flatten)]
    setup: Setup,
    /// At the other end of the wire, in the peer's namespace
    #[arg(long, conflicts_with = "bare")]
    peer: bool,
}

/// Boots a guest and runs the user's shell. Returns the exit status to pass on.
///
/// # Errors
///
/// As [`exec`].
pub(crate) fn shell(images: Images, options: &ShellOptions) -> Result<u8> {
    let bed = boot(&options.setup, images)?;
    eprintln!("{}", environment::summary(&options.setup, &bed));
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let mut program = program(&bed, &options.setup, &[shell])?;
    if options.peer {
        program.ns = Ns::Peer;
    }
    let status = run_here(&Side::new(&bed.guest, None), None, program)?.status();
    finish(bed, &options.setup)?;
    Ok(status)
}

/// Ends the guest, and keeps what the user asked for.
fn finish(bed: Testbed, setup: &Setup) -> Result<()> {
    let captured = bed.guest.pcap(Wire(0));
    let ended = bed.finish().map_err(crate::error);
    if let Some(file) = &setup.pcap {
        fs::copy(&captured, file)
            .with_context(|| format!("copying {} to {}", captured.display(), file.display()))?;
    }
    ended.map(drop)
}

/// Boots a guest and runs the program. Returns the exit status to pass on.
///
/// # Errors
///
/// Those of the guest, and when its kernel complained.
pub(crate) fn exec(images: Images, options: &Options) -> Result<u8> {
    let bed = boot(&options.setup, images)?;
    eprintln!("{}", environment::summary(&options.setup, &bed));
    if options.setup.counted {
        counted::begin(&bed, &options.setup)?;
    }
    let status = run(&bed, options)?;
    if options.setup.counted {
        counted::end(&bed)?;
    }
    finish(bed, &options.setup)?;
    Ok(status)
}

fn run(bed: &Testbed, options: &Options) -> Result<u8> {
    let program = program(bed, &options.setup, &options.command)?;
    let timeout = options.timeout.map(Duration::from_secs);
    let Some(peer) = &options.peer else {
        return Ok(run_here(&Side::new(&bed.guest, timeout), None, program)?.status());
    };
    let peer = Program {
        ns: Ns::Peer,
        command: ["/bin/sh", "-c", peer].map(str::to_owned).to_vec(),
        streams: Streams::Merged,
        ..program.clone()
    };
    let (here, there) = if options.serve {
        (
            Side::server(&bed.guest, timeout),
            Side::client(&bed.guest, timeout),
        )
    } else {
        (
            Side::client(&bed.guest, timeout),
            Side::server(&bed.guest, timeout),
        )
    };
    let [ours, theirs] = thread::scope(|scope| {
        let peer = scope.spawn(|| run_there(&there, &here, peer));
        let ours = run_here(&here, Some(&there), program);
        let theirs = peer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        [ours, theirs]
    });
    let (ours, theirs) = (ours?, theirs?);
    if theirs.status() != 0 {
        eprintln!("peer: {theirs}");
    }
    Ok(match ours.status() {
        0 => theirs.status(),
        status => status,
    })
}

/// A program that has what the user has here.
fn program(bed: &Testbed, setup: &Setup, command: &[String]) -> Result<Program> {
    let folder = std::env::current_dir().context("finding the working directory")?;
    Ok(Program {
        ns: Ns::Local,
        root: ROOT.to_owned(),
        directory: folder.to_string_lossy().into_owned(),
        command: command.to_vec(),
        environment: environment::environment(setup, bed)?,
        user: setup.user()?,
        streams: if terminal::wanted() {
            Streams::Terminal(terminal::size()?)
        } else {
            Streams::Pipes
        },
    })
}

/// Runs the program that has the user's input, terminal and signals.
fn run_here(side: &Side<'_>, other: Option<&Side<'_>>, program: Program) -> Result<Outcome> {
    let terminal = matches!(program.streams, Streams::Terminal(_));
    side.run(other, program, |job| {
        // From here on the terminal is the program's.
        let raw = terminal.then(Raw::enter).transpose()?;
        let ended = thread::scope(|scope| {
            let passing = streams::pass_on(scope, side.guest, job.id(), terminal)?;
            let ended = side.follow(job, other, print);
            drop(passing);
            ended
        });
        drop(raw);
        ended
    })
}

/// Runs the peer's program, whose lines go to standard error.
fn run_there(side: &Side<'_>, other: &Side<'_>, program: Program) -> Result<Outcome> {
    let mut lines = Lines::default();
    let outcome = side.run(Some(other), program, |job| {
        side.follow(job, Some(other), |_, bytes| {
            for line in lines.push(bytes) {
                // In a raw terminal, the cursor is wherever CMD left it.
                eprint!("peer: {line}\r\n");
            }
            Ok(())
        })
    })?;
    if let Some(line) = lines.rest() {
        eprint!("peer: {line}\r\n");
    }
    Ok(outcome)
}

fn print(stream: Stream, bytes: &[u8]) -> Result<()> {
    let written = match stream {
        Stream::Output => {
            let mut out = stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        Stream::Error => stderr().lock().write_all(bytes),
    };
    written.context("writing what the program prints")
}
