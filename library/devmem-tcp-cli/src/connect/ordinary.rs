// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary sockets, whose payload this process copies out of the memory.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result};
use devmem_tcp::memory::ReadAt;
use devmem_tcp::way::{ByWay, Way};
use hdrhistogram::Histogram;

use super::source::Source;
use super::{Arguments, wait_for_close};
use crate::flow::Run;

pub(super) fn send(
    arguments: &Arguments,
    stream: &TcpStream,
    mut source: Source<'_>,
    run: &Run,
) -> Result<Histogram<u64>> {
    let mut times = Histogram::new(3).context("a histogram")?;
    let mut copy = Vec::new();
    run.includes_now();
    while let Some(piece) = source.next()? {
        copy.resize(piece.len, 0);
        source.memory.read_at(piece.offset as usize, &mut copy)?;
        let start = Instant::now();
        if !write_all(stream, &copy, run)? {
            break;
        }
        let mut ways = ByWay::default();
        ways.add(Way::Ordinary, piece.len as u64);
        run.passed(ways, 1);
        if let Some(rpc) = arguments.rpc {
            if !rpc.wait(stream, run)? {
                break;
            }
            times.record(start.elapsed().as_nanos() as u64)?;
        }
    }
    stream
        .shutdown(Shutdown::Write)
        .context("ending the stream")?;
    wait_for_close(stream, run)?;
    Ok(times)
}

/// Writes everything; whether it did, and the run was not ended before.
fn write_all(mut stream: &TcpStream, mut bytes: &[u8], run: &Run) -> Result<bool> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("sending"),
        }
        if run.stopped() {
            return Ok(false);
        }
    }
    Ok(true)
}
