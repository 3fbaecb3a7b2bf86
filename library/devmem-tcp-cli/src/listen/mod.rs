// SPDX-License-Identifier: MIT OR Apache-2.0

//! `listen`: receives from connections that peers make.

mod devmem;
mod ordinary;
mod validate;
mod zcrx;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use devmem_tcp::interface::Interface;
use devmem_tcp::steering::{Plan, Steering};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::flow::{LOOK, Run};
use crate::report::{Format, Report};
use crate::rpc::Rpc;
use crate::{memory, size};

/// How payload is received. No mode falls back to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Device memory TCP
    Devmem,
    /// io_uring zero-copy receive, into the same memory
    Zcrx,
    /// The same without a NIC: the kernel copies everything, into ordinary memory
    ZcrxNodev,
    /// Ordinary sockets: this process copies into the memory
    Ordinary,
}

/// What the flows are steered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Steer {
    /// Flow rules for the port
    Port,
    /// The table of RSS: everything of the interface goes to the queue
    Everything,
    /// Nothing: it is set up already
    None,
}

/// What to receive, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Port to listen on, or address and port
    #[arg(value_name = "[ADDRESS:]PORT", value_parser = address)]
    at: SocketAddr,
    #[arg(long, value_enum, default_value_t = Mode::Devmem)]
    mode: Mode,
    /// Interface whose queue receives: name, index or address [default: that of ADDRESS]
    #[arg(long, value_name = "INTERFACE")]
    interface: Option<String>,
    /// RX queue to bind; devmem takes several
    #[arg(long = "queue", value_name = "NUMBER")]
    queues: Vec<u32>,
    #[command(flatten)]
    memory: memory::Choice,
    /// Size of a receive buffer; a page without it
    #[arg(long, value_parser = size::parse, value_name = "BYTES")]
    rx_page_size: Option<u64>,
    /// How the flows reach the queue; it is undone at the end
    #[arg(long, value_enum, default_value_t = Steer::Port)]
    steer: Steer,
    /// How many connections to wait for before receiving
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    flows: u32,
    /// End after this time, counted from the last connection [default: when all streams end]
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u64>,
    /// Fail unless exactly this much arrives over all flows: a stream that ends may be incomplete
    #[arg(long, value_parser = size::parse, value_name = "BYTES")]
    bytes: Option<u64>,
    /// Compare all payload with what `connect --validate` makes of the same seed
    #[arg(long, value_name = "SEED")]
    validate: Option<u64>,
    /// Respond to each request of this size; REQUEST[/RESPONSE] in bytes, as the peer has it
    #[arg(long, value_name = "SIZES")]
    rpc: Option<Rpc>,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A port, or an address and a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().or_else(|_| {
        let port = text.parse::<u16>();
        let port =
            port.map_err(|_| format!("\"{text}\" is neither a port nor an address and a port"))?;
        Ok(SocketAddr::from(([0u16; 8], port)))
    })
}

impl Arguments {
    fn interface(&self) -> Result<Interface> {
        match &self.interface {
            Some(text) => Ok(text.parse()?),
            None if self.at.ip().is_unspecified() => {
                anyhow::bail!("say which interface receives: --interface")
            }
            None => Ok(Interface::by_address(self.at.ip().to_canonical())?),
        }
    }

    /// Size of a receive buffer in bytes, if it is not a page.
    fn page_size(&self) -> Result<Option<u32>> {
        let size = self.rx_page_size.map(u32::try_from).transpose();
        size.context("--rx-page-size is too large")
    }

    /// How flows reach the queues; none if that is set up already.
    fn plan(&self) -> Result<Option<Plan>> {
        let queues = self.queues.iter().copied();
        let mut plan = queues.fold(Plan::new(self.interface()?), Plan::queue);
        if let Some(bytes) = self.page_size()? {
            plan = plan.rx_page_size(bytes);
        }
        Ok(match self.steer {
            Steer::None => None,
            Steer::Port => Some(plan.tcp_listener(self.at)),
            Steer::Everything => Some(plan.everything()),
        })
    }

    /// What is received into, which this process writes in ordinary mode, and reads to validate.
    fn allocate(&self, align: u32, parts: u32) -> Result<Vec<memory::Target>> {
        let cpu = self.mode == Mode::Ordinary || self.validate.is_some();
        self.memory.allocate(align, parts, cpu)
    }

    /// What counts and looks at the payload of a flow.
    fn validator(&self) -> validate::Validator {
        validate::Validator::new(self.validate)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let run = Run::new("received")?;
    let listener = TcpListener::bind(arguments.at)
        .with_context(|| format!("listening on {}", arguments.at))?;
    let done = match arguments.mode {
        Mode::Devmem => devmem::receive(arguments, &listener, &run),
        Mode::Zcrx | Mode::ZcrxNodev => zcrx::receive(arguments, &listener, &run),
        Mode::Ordinary => ordinary::receive(arguments, &listener, &run),
    };
    let totals = run.totals();
    // What is wrong with payload is in the report.
    if totals.mismatch.is_none() {
        done?;
    }
    let (mode, flows) = (&arguments.mode, arguments.flows);
    let report = Report::new("listen", mode, flows, &totals, arguments.validate.is_some());
    let status = report.print(arguments.format)?;
    let came = totals.ways.total();
    match arguments.bytes {
        Some(wanted) if wanted != came => bail!("{came} bytes came, and not {wanted}"),
        _ => Ok(status),
    }
}

/// Accepts all connections; none if the run was ended before. `room` is how much of the memory payload
/// may take that waits in sockets.
fn accept(
    arguments: &Arguments,
    listener: &TcpListener,
    run: &Run,
    room: usize,
) -> Result<Option<Vec<TcpStream>>> {
    // The kernel doubles it. Each fragment counts as a whole receive buffer. It is an int there.
    let each = (room / 4 / arguments.flows as usize).min(i32::MAX as usize);
    sockopt::set_socket_recv_buffer_size(listener, each).context("SO_RCVBUF")?;
    listener.set_nonblocking(true).context("listening")?;
    eprintln!("devmem-tcp: listening on {}", arguments.at);
    let mut streams = Vec::new();
    while streams.len() < arguments.flows as usize {
        if run.stopped() {
            return Ok(None);
        }
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).context("a connection")?;
                stream
                    .set_read_timeout(Some(LOOK))
                    .context("a connection")?;
                stream.set_nodelay(true).context("a connection")?;
                streams.push(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(listener)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("accepting a connection"),
        }
    }
    Ok(Some(streams))
}

/// Waits a while for a connection. It is to be received from before its first bytes come: the time of the
/// run begins when they are read.
fn wait(listener: &TcpListener) -> Result<()> {
    let timeout = Timespec::try_from(LOOK).context("a timeout")?;
    let mut sockets = [PollFd::new(listener, PollFlags::IN)];
    match poll(&mut sockets, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno).context("waiting for a connection"),
    }
}

/// Ends the run at its time.
struct Deadline(Option<Instant>);

impl Deadline {
    fn of(arguments: &Arguments) -> Self {
        let seconds = arguments.duration.map(Duration::from_secs);
        Self(seconds.map(|duration| Instant::now() + duration))
    }

    /// Whether a flow is to end.
    fn over(&self, run: &Run) -> bool {
        run.stopped() || self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// Undoes what was set up.
fn undo(steering: Option<Steering>) -> Result<()> {
    steering.map_or(Ok(()), crate::steer::undo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_all_addresses() {
        let any = address("5201").expect("a port");
        assert!(any.ip().is_unspecified() && any.is_ipv6() && any.port() == 5201);
        assert_eq!(
            address("192.0.2.1:7").map(|at| at.to_string()),
            Ok("192.0.2.1:7".to_owned())
        );
        assert!(address("host:7").is_err() && address("70000").is_err());
    }
}
