// SPDX-License-Identifier: MIT OR Apache-2.0

//! Those who enter a guest that runs: they say what program they want, and have its streams.

use std::io::BufReader;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use protocol::bytes::Bytes;
use protocol::frame::{self, FrameError};
use protocol::program::{ProgramCommand, Stream};
use protocol::{Command, Program, Tell};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGHUP;

use super::environment;
use super::guests::Lab;
use super::running::Running;
use super::setup::{ROOT, Setup};
use super::side::Side;
use super::streams::ready;

/// What a visitor hears, after having sent a [`Program`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The program has written this.
    Output { stream: Stream, bytes: Bytes },
    /// It has ended, or could not be started, for this reason.
    Ended { status: u8, error: Option<String> },
}

/// Lets visitors in while `work` is done; then they must go.
pub(super) fn with<T>(
    lab: &Lab,
    setup: &Setup,
    running: &Running,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let listener = running.listen()?;
    let (woken, wake) = pipe_with(PipeFlags::CLOEXEC).context("making a pipe")?;
    let closing = AtomicBool::new(false);
    thread::scope(|scope| {
        let _closing = Closing(&closing, wake);
        let closing = &closing;
        scope.spawn(move || {
            while ready(&listener, &woken) {
                let Ok((visitor, _)) = listener.accept() else {
                    return;
                };
                scope.spawn(move || {
                    if let Err(error) = receive(lab, setup, closing, &visitor) {
                        let error = Some(format!("{error:#}"));
                        let status = super::side::FAILED;
                        let _ = frame::write(&mut &visitor, &Answer::Ended { status, error });
                    }
                    let _ = visitor.shutdown(Shutdown::Both);
                });
            }
        });
        work()
    })
}

/// Ends the visits when it is dropped.
struct Closing<'a>(
    &'a AtomicBool,
    #[expect(dead_code, reason = "closed on drop")] OwnedFd,
);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs a visitor's program.
fn receive(lab: &Lab, setup: &Setup, closing: &AtomicBool, visitor: &UnixStream) -> Result<()> {
    let mut reader = BufReader::new(visitor.try_clone().context("receiving a visitor")?);
    let Some(mut program) = next::<Program>(&mut reader)? else {
        return Ok(());
    };
    program.root = ROOT.to_owned();
    environment::add_lab(&mut program.environment, setup, lab)?;
    let guest = lab.guest(program.ns);
    let side = Side::until(guest, closing);
    let outcome = side.run(None, program, |job| {
        let id = job.id();
        thread::scope(|scope| {
            scope.spawn(move || {
                let tell = |command| {
                    let command = Command::Program(command);
                    // What fails here fails as the program has ended.
                    let _ = guest.call(Tell { job: id, command });
                };
                while let Ok(Some(command)) = next::<ProgramCommand>(&mut reader) {
                    tell(command);
                }
                tell(ProgramCommand::Signal(SIGHUP));
            });
            let ended = side.follow(job, None, |stream, bytes| {
                let bytes = Bytes(bytes.to_owned());
                // A visitor that has left hears nothing.
                let _ = frame::write(&mut &*visitor, &Answer::Output { stream, bytes });
                Ok(())
            });
            // The thread above waits for what the visitor says.
            let _ = visitor.shutdown(Shutdown::Read);
            ended
        })
    })?;
    let ended = Answer::Ended {
        status: outcome.status(),
        error: outcome.complaint(),
    };
    Ok(frame::write(&mut &*visitor, &ended)?)
}

/// The next message, or none at the end.
pub(super) fn next<T: DeserializeOwned>(
    reader: &mut BufReader<UnixStream>,
) -> Result<Option<T>, FrameError> {
    let mut line = Vec::new();
    match frame::read_line(reader, &mut line)? {
        true => frame::parse(&line).map(Some),
        false => Ok(None),
    }
}
