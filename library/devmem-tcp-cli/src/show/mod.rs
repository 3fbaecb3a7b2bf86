// SPDX-License-Identifier: MIT OR Apache-2.0

//! `show`: what the kernel tells of an interface's queues, once or again and again.

mod gather;
mod memory;
mod rates;
mod split;
mod state;
mod text;

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use devmem_tcp::interface::Interface;

use self::state::Shown;
use crate::exit;

/// Of what, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Names, indices or addresses of interfaces; all if there is none
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Show it every SECONDS, with rates; with --json, one object per line
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = interval
    )]
    watch: Option<Duration>,
}

/// Clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    match show(arguments) {
        // Who read it has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(exit::HOLDS),
        done => done.map(|()| exit::HOLDS),
    }
}

fn show(arguments: &Arguments) -> Result<()> {
    let mut before: Option<(Shown, Instant)> = None;
    loop {
        let mut shown = gather::shown(&interfaces(&arguments.interfaces)?);
        let now = Instant::now();
        if let Some((before, then)) = &before {
            shown.add_rates(before, now - *then);
        }
        print(arguments, &shown)?;
        let Some(interval) = arguments.watch else {
            return Ok(());
        };
        before = Some((shown, now));
        std::thread::sleep(interval);
    }
}

fn print(arguments: &Arguments, shown: &Shown) -> Result<()> {
    let watched = arguments.watch.is_some();
    let mut out = io::stdout().lock();
    if arguments.json {
        let json = match watched {
            true => serde_json::to_string(shown)?,
            false => serde_json::to_string_pretty(shown)?,
        };
        writeln!(out, "{json}")?;
    } else {
        if watched && out.is_terminal() {
            write!(out, "{CLEAR}")?;
        }
        write!(out, "{}", text::of(shown))?;
        if watched && !out.is_terminal() {
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn interfaces(names: &[String]) -> Result<Vec<Interface>> {
    if names.is_empty() {
        return Ok(Interface::all()?);
    }
    let found = names.iter().map(|name| name.parse());
    Ok(found.collect::<Result<_, _>>()?)
}

fn interval(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().context("it must be a number of seconds")?;
    let interval = Duration::try_from_secs_f64(seconds)?;
    anyhow::ensure!(!interval.is_zero(), "it must be more than 0");
    Ok(interval)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
