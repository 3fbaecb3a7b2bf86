// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the user types and what signals come go to a program, while it runs.

use std::io::{IsTerminal, Read, stderr, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Scope;

use super::terminal;
use anyhow::{Context, Result};
use protocol::bytes::Bytes;
use protocol::program::{ProgramCommand, Streams};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::{Handle, Signals};

/// How much is read at once, in bytes.
const CHUNK: usize = 32 << 10;

/// Signals that a program gets in our place.
const PASSED: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// Passes input and signals on until it is dropped.
pub(super) struct Passing {
    signals: Handle,
    /// Closing it ends the thread that reads.
    _wake: OwnedFd,
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.signals.close();
        // From here on they end this process again. Only signals that can't be caught are refused.
        for signal in PASSED {
            let _ = register_conditional_default(signal, Arc::new(AtomicBool::new(true)));
        }
    }
}

/// What a program's streams are, whose user is here.
pub(super) fn wanted() -> Result<Streams> {
    Ok(match terminal::wanted() {
        true => Streams::Terminal {
            size: terminal::size()?,
            errors_apart: !stderr().is_terminal(),
        },
        false => Streams::Pipes,
    })
}

/// Passes standard input and signals on to a program, which `tell` tells them, and whether it could;
/// the terminal's size, too, if the program has a `terminal`.
pub(super) fn pass_on<'s>(
    scope: &'s Scope<'s, '_>,
    terminal: bool,
    tell: impl Fn(ProgramCommand) -> bool + Copy + Send + 's,
) -> Result<Passing> {
    let mut signals =
        Signals::new(PASSED.iter().chain([&SIGWINCH])).context("waiting for signals")?;
    let handle = signals.handle();
    scope.spawn(move || {
        for signal in signals.forever() {
            match (signal, terminal) {
                (SIGWINCH, true) => {
                    if let Ok(size) = terminal::size() {
                        tell(ProgramCommand::Resize(size));
                    }
                }
                (SIGWINCH, false) => {}
                (signal, _) => {
                    tell(ProgramCommand::Signal(signal));
                }
            }
        }
    });
    let (woken, wake) = pipe_with(PipeFlags::CLOEXEC).context("making a pipe")?;
    scope.spawn(move || {
        let mut input = stdin().lock();
        let mut buffer = vec![0; CHUNK];
        while ready(&input, &woken) {
            match input.read(&mut buffer) {
                Ok(read @ 1..) => {
                    if !tell(ProgramCommand::Input(Bytes(buffer[..read].to_owned()))) {
                        return;
                    }
                }
                _ => {
                    tell(ProgramCommand::CloseInput);
                    return;
                }
            }
        }
    });
    Ok(Passing {
        signals: handle,
        _wake: wake,
    })
}

/// Waits until there is input, or its end. False when nobody wants it any more.
pub(super) fn ready(input: &impl AsFd, woken: &OwnedFd) -> bool {
    loop {
        let mut events = [
            PollFd::new(input, PollFlags::IN),
            PollFd::new(woken, PollFlags::IN),
        ];
        match poll(&mut events, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) if !events[1].revents().is_empty() => return false,
            Ok(_) if !events[0].revents().is_empty() => return true,
            Ok(_) => {}
        }
    }
}
