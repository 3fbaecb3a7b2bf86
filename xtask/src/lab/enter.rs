// SPDX-License-Identifier: MIT OR Apache-2.0

//! `enter`: another program in a guest that runs.

use std::io::BufReader;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::frame;
use protocol::program::Streams;
use protocol::{Ns, Program};

use super::exec::{print, shell_of_user};
use super::setup::user;
use super::terminal::Raw;
use super::visitors::{self, Answer};
use super::{environment, guests, running, streams};

/// Which guest, and what to run in it.
#[derive(Args)]
pub(crate) struct Options {
    /// Enter the peer's namespace, at the other end of the wire
    #[arg(long)]
    peer: bool,
    /// Run it as your own user, not as root
    #[arg(long)]
    user: bool,
    /// The guest, as `ls` names it; not needed if only one runs
    name: Option<String>,
    /// A program and its arguments, instead of your shell
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Runs a program or the user's shell in a guest that runs. Returns the exit status to pass on.
///
/// # Errors
///
/// When there is no such guest, or it ends.
pub(crate) fn enter(options: &Options) -> Result<u8> {
    let socket = running::connect(options.name.as_deref())?;
    let program = Program {
        ns: if options.peer { Ns::Peer } else { Ns::Local },
        // The guest's own process knows where.
        root: String::new(),
        directory: guests::working_directory()?,
        command: match options.command.as_slice() {
            [] => vec![shell_of_user()],
            command => command.to_vec(),
        },
        environment: environment::of_user(),
        user: user(options.user)?,
        streams: streams::wanted()?,
    };
    let terminal = matches!(program.streams, Streams::Terminal { .. });
    let mut reader = BufReader::new(socket.try_clone().context("entering")?);
    frame::write(&mut &socket, &program)?;

    let writer = Mutex::new(socket);
    let raw = terminal.then(Raw::enter).transpose()?;
    let ended = thread::scope(|scope| {
        let tell = |command| {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            frame::write(&mut *writer, &command).is_ok()
        };
        let passing = streams::pass_on(scope, terminal, tell)?;
        let ended = loop {
            match visitors::next(&mut reader) {
                Ok(Some(Answer::Output { stream, bytes })) => print(stream, &bytes.0, tell)?,
                Ok(Some(Answer::Ended { status, error })) => break Some((status, error)),
                Ok(None) | Err(_) => break None,
            }
        };
        drop(passing);
        anyhow::Ok(ended)
    })?;
    drop(raw);
    let Some((status, error)) = ended else {
        bail!("the guest has ended");
    };
    if let Some(error) = error {
        eprintln!("error: {error}");
    }
    Ok(status)
}
