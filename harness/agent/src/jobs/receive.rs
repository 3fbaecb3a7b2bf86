// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a stream from a socket until it ends.

use std::{io::Read, net::TcpStream, ops::ControlFlow, time::Duration};

use anyhow::{Context, Result};
use devmem_tcp::{
    rx::{Capacity, Received, Receiver},
    zcrx::{self, End, Event, Fragment},
};

/// Copied by the kernel, up to `read` bytes at a time, which `take` is called with.
pub(super) fn copied(
    mut stream: &TcpStream,
    read: usize,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; read];
    loop {
        match stream.read(&mut buffer).context("receiving")? {
            0 => return Ok(()),
            length => take(&buffer[..length])?,
        }
    }
}

/// Into device memory: `take` is called with what each call received, also the last, which is nothing.
pub(super) fn devmem(
    stream: &TcpStream,
    capacity: Capacity,
    mut take: impl FnMut(&mut Receiver<&TcpStream>, &mut Received) -> Result<()>,
) -> Result<()> {
    let mut receiver = Receiver::with_capacity(stream, capacity);
    let mut received = Received::default();
    loop {
        receiver.receive_into(&mut received).context("receiving")?;
        take(&mut receiver, &mut received)?;
        if received.end_of_stream {
            return Ok(());
        }
    }
}

/// With an io_uring: `take` is called after each wait, with the fragments that it has left before and
/// those that came, and says whether to go on. With a `timeout`, it is called when nothing came, too.
/// Says whether all streams have ended.
pub(super) fn zcrx(
    receiver: &mut zcrx::Receiver,
    streams: &[&TcpStream],
    timeout: Option<Duration>,
    mut take: impl FnMut(&mut zcrx::Receiver, &mut Vec<Fragment>) -> Result<ControlFlow<()>>,
) -> Result<bool> {
    for stream in streams {
        receiver.receive_from(stream)?;
    }
    let mut left = streams.len();
    let (mut events, mut fragments) = (Vec::new(), Vec::new());
    while left > 0 {
        receiver.wait(timeout, &mut events)?;
        let mut failed = None;
        for event in events.drain(..) {
            match event {
                Event::Fragment { fragment, .. } => fragments.push(fragment),
                Event::Ended { end, .. } => {
                    left -= 1;
                    if let End::Failed(error) = end {
                        failed = failed.or(Some(error));
                    }
                }
                _ => {}
            }
        }
        let over = take(receiver, &mut fragments)?.is_break();
        if let Some(error) = failed {
            return Err(error).context("receiving");
        }
        if over {
            return Ok(false);
        }
    }
    Ok(true)
}
