// SPDX-License-Identifier: MIT OR Apache-2.0

//! From device memory.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use devmem_tcp::SendError;
use devmem_tcp::interface::Interface;
use devmem_tcp::netdev::TxBinding;
use devmem_tcp::tx::Sender;
use devmem_tcp::way::ByWay;
use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::source::{Piece, Source};
use super::{Arguments, wait_for_close};
use crate::flow::{LOOK, Run};

/// How long completions may take when everything was acknowledged; only there to end a hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn send(
    arguments: &Arguments,
    stream: &TcpStream,
    interface: Interface,
    mut source: Source<'_>,
    run: &Run,
) -> Result<Histogram<u64>> {
    let mut times = Histogram::new(3).context("a histogram")?;
    let binding = TxBinding::to(interface).bind(source.memory.dmabuf()?)?;
    let mut sender = Sender::new(stream, binding)?;
    run.includes_now();
    loop {
        // What is in flight must not be overwritten.
        if source.is_filled() && source.next_is_at_start() {
            drain(&mut sender, run)?;
        }
        let Some(piece) = source.next()? else { break };
        let start = Instant::now();
        if !send_piece(&mut sender, piece, run)? {
            break;
        }
        if let Some(rpc) = arguments.rpc {
            if !rpc.wait(stream, run)? {
                break;
            }
            times.record(start.elapsed().as_nanos() as u64)?;
        }
    }
    sender.finish()?;
    wait_for_close(stream, run)?;
    if !run.stopped() {
        let completions = sender.wait_all(PATIENCE)?;
        count(completions, run);
    }
    Ok(times)
}

/// Sends a whole piece; whether it did, and the run was not ended before.
fn send_piece(sender: &mut Sender<&TcpStream>, piece: Piece, run: &Run) -> Result<bool> {
    let (mut offset, mut left) = (piece.offset, piece.len);
    while left > 0 {
        match sender.send(offset, left) {
            Ok(accepted) => {
                offset += accepted as u64;
                left -= accepted;
            }
            Err(SendError::WouldBlock) => {}
            Err(SendError::TooManyInFlight { .. }) => wait(sender)?,
            Err(error) => return Err(error).context("sending"),
        }
        count(sender.completions()?, run);
        if run.stopped() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits until nothing is in flight.
fn drain(sender: &mut Sender<&TcpStream>, run: &Run) -> Result<()> {
    while sender.in_flight() > 0 && !run.stopped() {
        wait(sender)?;
        count(sender.completions()?, run);
    }
    Ok(())
}

/// Waits a while for completions.
fn wait(sender: &Sender<&TcpStream>) -> Result<()> {
    let timeout = Timespec::try_from(LOOK).context("a timeout")?;
    // A non-empty error queue is reported as POLLERR, whatever events are requested.
    let mut sockets = [PollFd::new(sender, PollFlags::empty())];
    match poll(&mut sockets, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno).context("waiting for completions"),
    }
}

fn count(completions: Vec<devmem_tcp::tx::Completion>, run: &Run) {
    if completions.is_empty() {
        return;
    }
    let mut ways = ByWay::default();
    for completion in &completions {
        ways.add(completion.way(), completion.len as u64);
    }
    run.passed(ways, completions.len() as u64);
}
