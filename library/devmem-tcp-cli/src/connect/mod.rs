// SPDX-License-Identifier: MIT OR Apache-2.0

//! `connect`: sends to a peer that listens.

mod devmem;
mod ordinary;
mod source;

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use devmem_tcp::interface::Interface;
use hdrhistogram::Histogram;

use self::source::Source;
use crate::flow::{LOOK, Run, in_threads};
use crate::report::{Format, Report};
use crate::rpc::Rpc;
use crate::{memory, size};

/// How payload is sent. No mode falls back to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// From device memory
    Devmem,
    /// Ordinary sockets: this process copies out of the memory
    Ordinary,
}

/// What to send, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where a peer listens
    #[arg(value_name = "HOST:PORT")]
    to: String,
    #[arg(long, value_enum, default_value_t = Mode::Devmem)]
    mode: Mode,
    /// Interface that sends: name, index or address [default: that of the connection]
    #[arg(long, value_name = "INTERFACE")]
    interface: Option<String>,
    #[command(flatten)]
    memory: memory::Choice,
    /// How many connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    flows: u32,
    /// How much one call sends
    #[arg(long, default_value = "64K", value_parser = size::parse, value_name = "BYTES")]
    write: u64,
    /// End when this much was sent over all flows; with --rpc, as many whole requests as fit in each flow's share
    #[arg(long, value_parser = size::parse, value_name = "BYTES")]
    bytes: Option<u64>,
    /// End after this time [default: 10 without --bytes]
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u64>,
    /// Send what `listen --validate` compares with the same seed. The memory is filled anew for each call
    #[arg(long, value_name = "SEED")]
    validate: Option<u64>,
    /// Send requests, wait for the response to each, and measure round trips; REQUEST[/RESPONSE] in bytes
    #[arg(long, value_name = "SIZES")]
    rpc: Option<Rpc>,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let run = Run::new("sent")?;
    // It is filled to be validated, and read by ordinary sockets.
    let cpu = arguments.mode == Mode::Ordinary || arguments.validate.is_some();
    let memory = arguments.memory.allocate(0, arguments.flows, cpu)?;
    let streams = (0..arguments.flows).map(|_| connect(&arguments.to));
    let streams = streams.collect::<Result<Vec<_>>>()?;
    let times = Mutex::new(Histogram::new(3).context("a histogram")?);
    let flows = (0..).zip(&streams).zip(&memory);
    let sent = in_threads(&run, flows, |((flow, stream), memory)| {
        let source = Source::new(Budget::of(arguments, flow), arguments, memory, &run)?;
        let interface = || interface(arguments, stream);
        let own = match arguments.mode {
            Mode::Devmem => devmem::send(arguments, stream, interface()?, source, &run)?,
            Mode::Ordinary => ordinary::send(arguments, stream, source, &run)?,
        };
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        times.add(&own).context("joining histograms")
    });
    let totals = run.totals();
    sent?;
    let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    let report = Report::new("connect", &arguments.mode, arguments.flows, &totals, false);
    report.with_latency(&times).print(arguments.format)
}

fn connect(to: &str) -> Result<TcpStream> {
    let addresses = to.to_socket_addrs();
    let addresses: Vec<_> = addresses
        .with_context(|| format!("looking up {to}"))?
        .collect();
    let stream =
        TcpStream::connect(&addresses[..]).with_context(|| format!("connecting to {to}"))?;
    stream
        .set_write_timeout(Some(LOOK))
        .context("a connection")?;
    stream
        .set_read_timeout(Some(LOOK))
        .context("a connection")?;
    Ok(stream)
}

fn interface(arguments: &Arguments, stream: &TcpStream) -> Result<Interface> {
    match &arguments.interface {
        Some(text) => Ok(text.parse()?),
        None => {
            let local = stream.local_addr().context("the address of a connection")?;
            Ok(Interface::by_address(local.ip().to_canonical())?)
        }
    }
}

/// When a flow has sent enough.
#[derive(Debug)]
struct Budget {
    bytes: Option<u64>,
    end: Option<Instant>,
}

impl Budget {
    /// The budget of the flow with this number, from 0: the first ones send what does not divide.
    fn of(arguments: &Arguments, flow: u32) -> Self {
        let flows = u64::from(arguments.flows);
        let part = |bytes: u64| bytes / flows + u64::from(u64::from(flow) < bytes % flows);
        let default = arguments.bytes.is_none().then_some(10);
        let seconds = arguments.duration.or(default).map(Duration::from_secs);
        Self {
            bytes: arguments.bytes.map(part),
            end: seconds.map(|duration| Instant::now() + duration),
        }
    }

    /// Rounds down to whole requests: a partial one gets no response.
    fn of_whole(&mut self, request: u64) -> Result<()> {
        if let Some(bytes) = &mut self.bytes {
            ensure!(
                *bytes >= request,
                "--bytes has no request of {request} bytes for each flow"
            );
            *bytes -= *bytes % request;
        }
        Ok(())
    }

    /// How many of `wanted` bytes may be sent after `sent`.
    fn left(&self, sent: u64, wanted: u64) -> u64 {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            return 0;
        }
        self.bytes
            .map_or(wanted, |bytes| wanted.min(bytes - sent.min(bytes)))
    }
}

/// Waits until the peer has closed its side, which it does when it has read everything: what sockets accept
/// before says how large their buffers are.
fn wait_for_close(mut stream: &TcpStream, run: &Run) -> Result<()> {
    let mut buffer = [0; 4096];
    while !run.stopped() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("waiting for the peer to read everything"),
        }
    }
    run.includes_now();
    Ok(())
}
