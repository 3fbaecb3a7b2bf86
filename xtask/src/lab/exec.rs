// SPDX-License-Identifier: MIT OR Apache-2.0

//! `exec`: a program in a guest, as if it ran here, and another one at the wire's other end.

use std::io::{self, Write, stderr, stdout};
use std::slice;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use cases::Testbed;
use clap::Args;
use fs_err as fs;
use kselftest::Lines;
use protocol::program::{ProgramCommand, Stream, Streams};
use protocol::{Command, Ns, Program, Tell};
use signal_hook::consts::SIGPIPE;
use vm::{Images, Wire};

use super::guests::{self, Lab};
use super::running::Running;
use super::setup::{ROOT, Setup, user};
use super::side::{Outcome, Side};
use super::terminal::Raw;
use super::{counted, environment, memory_check, streams, trace, visitors};
use crate::model::Model;
use crate::ui::Step;

/// What to run, and where.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    setup: Setup,
    /// End the program after this many seconds, with exit status 124. Not with --gdb: time goes on at a
    /// breakpoint
    #[arg(long, value_name = "SECONDS", conflicts_with = "gdb")]
    timeout: Option<u64>,
    /// Run this (in /bin/sh) at the other end of the wire; CMD starts as soon as
    /// it listens on a TCP port. Where it never does, have CMD start it, too:
    /// `ip netns exec peer ...`
    #[arg(long, value_name = "CMD", conflicts_with = "bare")]
    peer: Option<String>,
    /// CMD is the server: the peer starts as soon as CMD listens. CMD must end by itself,
    /// unless the peer fails
    #[arg(long, requires = "peer")]
    serve: bool,
    /// Send MIB MiB of random payload to the TCP port that CMD listens on, out of the
    /// accelerator's memory, and say how much of it is in the guest's RAM, and how much in
    /// the accelerator's memory, where CMD may receive it
    #[arg(long, value_name = "MIB", conflicts_with_all = ["bare", "guests", "peer"],
          value_parser = clap::value_parser!(u64).range(1..=256))]
    memory_check: Option<u64>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Where to run a shell.
#[derive(Args)]
pub(crate) struct ShellOptions {
    #[command(flatten)]
    setup: Setup,
    /// Run it at the other end of the wire, in the peer's namespace
    #[arg(long, conflicts_with = "bare")]
    peer: bool,
}

impl Options {
    /// What its NICs are.
    pub(crate) fn model(&self) -> Model {
        self.setup.model
    }
}

impl ShellOptions {
    /// What its NICs are.
    pub(crate) fn model(&self) -> Model {
        self.setup.model
    }
}

/// Boots a guest and runs the user's shell. Returns the exit status to pass on.
///
/// # Errors
///
/// As [`exec`].
pub(crate) fn shell(images: Images, options: &ShellOptions) -> Result<u8> {
    let shell = shell_of_user();
    in_guest(images, &options.setup, &shell, |lab| {
        let mut program = program(lab, &options.setup, slice::from_ref(&shell))?;
        if options.peer {
            program.ns = Ns::Peer;
        }
        let outcome = run_here(&Side::new(lab.guest(program.ns), None), None, program)?;
        complain(&outcome);
        Ok(outcome.status())
    })
}

/// The shell that the user has here.
pub(super) fn shell_of_user() -> String {
    std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())
}

/// Boots a guest for `work`, with what the user wants to see of it.
fn in_guest(
    mut images: Images,
    setup: &Setup,
    command: &str,
    work: impl FnOnce(&Lab) -> Result<u8>,
) -> Result<u8> {
    guests::working_directory()?;
    let running = Running::create(setup.name.as_deref(), command)?;
    // gdb's user wants to see the boot. And in a capture of QEMU's, frames of a guest that resumed have
    // times that are too late, by what its clock had come to.
    if setup.gdb || setup.pcap.is_some() {
        images.snapshots = None;
    }
    // gdb's user looks at what gdb says.
    let booting = (!setup.gdb).then(|| Step::begin("lab", "starting a guest"));
    let lab = Lab::boot(setup, &images, &running)?;
    drop(booting);
    let bed = &lab.bed;
    let status = visitors::with(&lab, setup, &running, || {
        eprintln!("{}", environment::summary(&running.name(), setup, &lab));
        if !setup.trace.is_empty() {
            trace::begin(bed, &setup.trace)?;
        }
        if setup.counted {
            counted::begin(bed, setup)?;
        }
        let status = work(&lab)?;
        if setup.counted {
            counted::end(bed)?;
        }
        if !setup.trace.is_empty() {
            let _step = Step::begin("trace", "copying what was recorded");
            trace::end(bed)?;
        }
        Ok(status)
    })?;
    finish(lab, setup)?;
    Ok(status)
}

/// Ends the lab, and keeps what the user asked for.
fn finish(lab: Lab, setup: &Setup) -> Result<()> {
    let captured = lab.bed.guest.pcap(Wire(0));
    let ended = lab.finish();
    if let Some(file) = &setup.pcap {
        fs::copy(captured, file)?;
    }
    ended
}

/// Boots a guest and runs the program. Returns the exit status to pass on.
///
/// # Errors
///
/// Those of the guest, and when its kernel complained.
pub(crate) fn exec(images: Images, options: &Options) -> Result<u8> {
    let command = options.command.join(" ");
    in_guest(images, &options.setup, &command, |lab| run(lab, options))
}

fn run(lab: &Lab, options: &Options) -> Result<u8> {
    let program = program(lab, &options.setup, &options.command)?;
    let timeout = options.timeout.map(Duration::from_secs);
    if let Some(mib) = options.memory_check {
        return run_checked(&lab.bed, program, timeout, mib << 20);
    }
    let Some(peer) = &options.peer else {
        let outcome = run_here(&Side::new(lab.guest(program.ns), timeout), None, program)?;
        complain(&outcome);
        return Ok(outcome.status());
    };
    let peer = Program {
        ns: Ns::Peer,
        command: ["/bin/sh", "-c", peer].map(str::to_owned).to_vec(),
        streams: Streams::Merged,
        ..program.clone()
    };
    let [ours, theirs] = [program.ns, peer.ns].map(|ns| lab.guest(ns));
    let (here, there) = if options.serve {
        // It is what the user wants to see the end of.
        (Side::new(ours, timeout), Side::client(theirs, timeout))
    } else {
        (Side::client(ours, timeout), Side::server(theirs, timeout))
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
    complain(&ours);
    if theirs.status() != 0 {
        eprintln!("peer: {theirs}");
    }
    Ok(match (&ours, ours.status()) {
        // That is what it took too long for.
        (Outcome::NoServer, _) if matches!(theirs, Outcome::TimedOut) => theirs.status(),
        (_, 0) => theirs.status(),
        (_, status) => status,
    })
}

/// Runs a program that receives what the check sends.
fn run_checked(
    bed: &Testbed,
    program: Program,
    timeout: Option<Duration>,
    bytes: u64,
) -> Result<u8> {
    let receiver = Side::new(&bed.guest, timeout);
    let sender = Side::client(&bed.guest, None);
    let (outcome, check) = thread::scope(|scope| {
        let check = scope.spawn(|| memory_check::send(bed, &sender, &receiver, bytes));
        let outcome = run_here(&receiver, None, program);
        let check = check
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (outcome, check)
    });
    let outcome = outcome?;
    complain(&outcome);
    match check? {
        Some(check) => {
            let report = check.report(bed)?;
            eprintln!("{report}");
        }
        None => eprintln!("memory-check: the program ended before it listened on a TCP port"),
    }
    Ok(outcome.status())
}

fn complain(outcome: &Outcome) {
    if let Some(error) = outcome.complaint() {
        eprintln!("error: {error}");
    }
}

/// A program that has what the user has here.
fn program(lab: &Lab, setup: &Setup, command: &[String]) -> Result<Program> {
    let mut environment = environment::of_user();
    environment::add_lab(&mut environment, setup, lab)?;
    Ok(Program {
        ns: Ns::Local,
        root: ROOT.to_owned(),
        directory: guests::working_directory()?,
        command: command.to_vec(),
        environment,
        user: user(setup.user)?,
        streams: streams::wanted()?,
    })
}

/// Runs the program that has the user's input, terminal and signals.
fn run_here(side: &Side<'_>, other: Option<&Side<'_>>, program: Program) -> Result<Outcome> {
    let terminal = matches!(program.streams, Streams::Terminal { .. });
    side.run(other, program, |job| {
        // From here on the terminal is the program's.
        let raw = terminal.then(Raw::enter).transpose()?;
        let ended = thread::scope(|scope| {
            let id = job.id();
            // What fails here fails as the program has ended, which its report says.
            let tell = move |command| {
                let command = Command::Program(command);
                side.guest.call(Tell { job: id, command }).is_ok()
            };
            let passing = streams::pass_on(scope, terminal, tell)?;
            let ended = side.follow(job, other, |stream, bytes| print(stream, bytes, tell));
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

/// Prints what a program has written. Where nobody reads it any more, the program is told so, as the
/// kernel tells a program here.
pub(super) fn print(
    stream: Stream,
    bytes: &[u8],
    tell: impl Fn(ProgramCommand) -> bool,
) -> Result<()> {
    let written = match stream {
        Stream::Output => {
            let mut out = stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        Stream::Error => stderr().lock().write_all(bytes),
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            tell(ProgramCommand::Signal(SIGPIPE));
            Ok(())
        }
        written => written.context("writing what the program prints"),
    }
}
