// SPDX-License-Identifier: MIT OR Apache-2.0

//! A program at one end of the wire, from its start to its end.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use libc::{EACCES, ENOENT, ENOEXEC};
use protocol::kernel::ReadFile;
use protocol::program::{ProgramReport, Stream, WaitListening};
use protocol::{Command, Event, Ns, Program};
use vm::{Error, Guest, JobHandle};

/// The program was ended as it took too long, as timeout(1) says it.
const TIMED_OUT: u8 = 124;
/// The lab could not do what was asked for.
pub(crate) const FAILED: u8 = 125;
/// There is such a program, but it can't be executed, as a shell says it.
const NOT_EXECUTABLE: u8 = 126;
/// There is no such program, as a shell says it.
const NOT_FOUND: u8 = 127;
/// A signal ended it: this and the signal's number, as a shell says it.
const SIGNAL: u8 = 128;

// These are on the guest's clock, which stands still while the guest is at a breakpoint.
/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);
/// How long a server may take to end by itself when its client has ended.
const LINGER: Duration = Duration::from_secs(2);
/// The same for CMD, when a client that failed leaves it waiting.
const LINGER_OF_CMD: Duration = Duration::from_secs(10);
/// A server that takes longer to listen is said to be waited for.
const LONG: Duration = Duration::from_secs(1);
/// How often clocks are looked at.
const TICK: Duration = Duration::from_millis(200);

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// By itself, or by a signal.
    Ended(ProgramReport),
    /// It took too long.
    TimedOut,
    /// It was a server that its client, which had ended, left waiting.
    NotNeeded,
    /// Its guest is about to end.
    GuestEnds,
    /// It could not be started: the exit status that says why, and the reason in words.
    NotStarted { status: u8, error: String },
    /// It was not started, as its server ended before it listened.
    NoServer,
}

impl Outcome {
    /// The exit status to pass on.
    pub(super) fn status(&self) -> u8 {
        match *self {
            Self::Ended(ProgramReport::Exited { status }) => {
                u8::try_from(status).unwrap_or(u8::MAX)
            }
            Self::Ended(ProgramReport::Killed { signal }) => {
                SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0))
            }
            Self::TimedOut => TIMED_OUT,
            Self::NotStarted { status, .. } => status,
            // The client's counts.
            Self::NotNeeded => 0,
            Self::GuestEnds | Self::NoServer => FAILED,
        }
    }

    /// What the user must be told, as the program could not tell it.
    pub(super) fn complaint(&self) -> Option<String> {
        match self {
            Self::NotStarted { error, .. } => Some(error.clone()),
            Self::NoServer => Some("the server ended before it listened on a TCP port".to_owned()),
            Self::GuestEnds => Some("the guest ends".to_owned()),
            Self::Ended(_) | Self::TimedOut | Self::NotNeeded => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(ProgramReport::Exited { status }) => write!(f, "exit status {status}"),
            Self::Ended(ProgramReport::Killed { signal }) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => write!(f, "took too long"),
            Self::NotNeeded => write!(f, "ended after its client"),
            Self::NotStarted { error, .. } => write!(f, "could not be started: {error}"),
            Self::GuestEnds => write!(f, "the guest ends"),
            Self::NoServer => write!(f, "its server did not listen"),
        }
    }
}

/// What a program is to the one at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Alone,
    /// Starts when the other one listens.
    Client,
    /// Is ended when the other one has ended.
    Server,
}

/// What is said while a server in `ns` does not listen, and the way out if it never does.
fn waits_for(ns: Ns) -> String {
    let server = name_of_server(ns);
    format!("lab: waiting until {server} listens on a TCP port; {OTHERWISE}")
}

/// What the server in a namespace is called.
fn name_of_server(ns: Ns) -> &'static str {
    match ns {
        Ns::Local => "CMD",
        Ns::Peer => "the peer",
    }
}

const OTHERWISE: &str = "if it listens on UDP or on nothing, have CMD start both, in one guest: \
    `ip netns exec $NOBOUNCE_PEER_NETNS PEER & …`";

/// One end of the wire.
pub(super) struct Side<'g> {
    pub(super) guest: &'g Guest,
    role: Role,
    timeout: Option<Duration>,
    closing: Option<&'g AtomicBool>,
    ended: AtomicBool,
    failed: AtomicBool,
}

impl<'g> Side<'g> {
    pub(super) fn new(guest: &'g Guest, timeout: Option<Duration>) -> Self {
        Self {
            guest,
            role: Role::Alone,
            timeout,
            closing: None,
            ended: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }

    /// One that ends when `closing` says so.
    pub(super) fn until(guest: &'g Guest, closing: &'g AtomicBool) -> Self {
        Self {
            closing: Some(closing),
            ..Self::new(guest, None)
        }
    }

    pub(super) fn client(guest: &'g Guest, timeout: Option<Duration>) -> Self {
        Self {
            role: Role::Client,
            ..Self::new(guest, timeout)
        }
    }

    pub(super) fn server(guest: &'g Guest, timeout: Option<Duration>) -> Self {
        Self {
            role: Role::Server,
            ..Self::new(guest, timeout)
        }
    }

    /// Starts `program` when it is time, and has `follow` follow it to its end.
    pub(super) fn run(
        &self,
        other: Option<&Self>,
        program: Program,
        follow: impl FnOnce(JobHandle<'g, Program>) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let outcome = self.start_and(other, program, follow);
        let failed = outcome
            .as_ref()
            .map_or(true, |outcome| outcome.status() != 0);
        self.failed.store(failed, Ordering::Release);
        self.ended.store(true, Ordering::Release);
        outcome
    }

    fn start_and(
        &self,
        other: Option<&Self>,
        program: Program,
        follow: impl FnOnce(JobHandle<'g, Program>) -> Result<Outcome>,
    ) -> Result<Outcome> {
        if let (Role::Client, Some(server)) = (self.role, other) {
            if self.await_server(server, program.ns.other())?.is_none() {
                return Ok(Outcome::NoServer);
            }
        }
        match self.guest.start(program) {
            Ok(job) => follow(job),
            Err(error) => {
                let status = match error.errno() {
                    Some(ENOENT) => NOT_FOUND,
                    Some(EACCES | ENOEXEC) => NOT_EXECUTABLE,
                    _ => return Err(error.into()),
                };
                // A mistake of the user's: not in the harness's words.
                let error = match error {
                    Error::Refused { failure, .. } => failure.to_string(),
                    other => other.to_string(),
                };
                Ok(Outcome::NotStarted { status, error })
            }
        }
    }

    /// Waits until the server listens in `ns`, and returns its ports; none if it has ended before.
    pub(super) fn await_server(&self, server: &Self, ns: Ns) -> Result<Option<Vec<u16>>> {
        let (started, patience) = (Instant::now(), self.guest.call_timeout());
        let mut said = false;
        loop {
            let looked = server.guest.call(WaitListening {
                ns,
                except: Vec::new(),
                timeout_ms: 200,
            });
            match looked {
                Ok(ports) => return Ok(Some(ports)),
                Err(Error::Refused { .. }) if server.ended.load(Ordering::Acquire) => {
                    return Ok(None);
                }
                Err(Error::Refused { .. }) if started.elapsed() < patience => {
                    if !said && started.elapsed() >= LONG {
                        // In a raw terminal, the cursor is wherever a program left it.
                        eprint!("{}\r\n", waits_for(ns));
                        said = true;
                    }
                }
                Err(Error::Refused { .. }) => bail!(
                    "{} listens on no TCP port after {} s; {OTHERWISE}",
                    name_of_server(ns),
                    patience.as_secs()
                ),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How long the guest has been up, on its clock.
    fn uptime(&self) -> Result<Duration> {
        let text = self.guest.call(ReadFile::new(Ns::Local, "/proc/uptime"))?;
        let seconds = text.split(' ').next().and_then(|word| word.parse().ok());
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .with_context(|| format!("/proc/uptime says {text:?}"))
    }

    /// Hands what the program prints to `print` until it ends.
    pub(super) fn follow(
        &self,
        mut job: JobHandle<'_, Program>,
        other: Option<&Self>,
        mut print: impl FnMut(Stream, &[u8]) -> Result<()>,
    ) -> Result<Outcome> {
        let started = Instant::now();
        let mut not_needed_since = None;
        let mut told: Option<(Duration, Outcome)> = None;
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        while !job.ended() {
            if let Some(Event::Output { stream, bytes }) = job.next_event(TICK)? {
                print(stream, &bytes.0)?;
            }
            let lonely = match (self.role, other) {
                (Role::Server, Some(client)) if is_set(&client.ended) => Some(LINGER),
                (Role::Alone, Some(client)) if is_set(&client.failed) => Some(LINGER_OF_CMD),
                _ => None,
            };
            let not_needed = match lonely {
                Some(patience) if told.is_none() => {
                    let now = self.uptime()?;
                    now >= *not_needed_since.get_or_insert(now) + patience
                }
                _ => false,
            };
            let reason = if self.timeout.is_some_and(|limit| started.elapsed() >= limit) {
                Some(Outcome::TimedOut)
            } else if not_needed {
                Some(Outcome::NotNeeded)
            } else if self.closing.is_some_and(is_set) {
                Some(Outcome::GuestEnds)
            } else {
                None
            };
            // It may have ended meanwhile.
            match (&told, reason) {
                (None, Some(reason)) => {
                    let command = match reason {
                        Outcome::GuestEnds => Command::Kill,
                        _ => Command::Stop,
                    };
                    told = Some((self.uptime()?, reason));
                    let _ = job.tell(command);
                }
                (Some((since, _)), _) if self.uptime()? >= *since + GRACE => {
                    let _ = job.tell(Command::Kill);
                }
                _ => {}
            }
        }
        let report = job.join()?;
        Ok(told.map_or(Outcome::Ended(report), |(_, reason)| reason))
    }
}
