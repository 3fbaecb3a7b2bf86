// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a stream until it ends, in each way that a stream may be received.

use std::{io::Read, net::TcpStream, time::Duration};

use anyhow::{Context, Result};
use devmem::{
    rx::{Received, Receiver},
    zcrx::{self, Completion, Fragment},
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

/// Into device memory: `take` is called with what each call received.
pub(super) fn devmem(
    receiver: &mut Receiver,
    mut take: impl FnMut(&mut Receiver, &Received) -> Result<()>,
) -> Result<()> {
    let mut received = Received::default();
    loop {
        receiver.receive_into(&mut received).context("receiving")?;
        take(receiver, &received)?;
        if received.end_of_stream {
            return Ok(());
        }
    }
}

/// Through an io_uring, until this many streams have ended. After each wait, of `timeout` at most,
/// `take` is called with all fragments that it has left so far, and how many of them are not new; it
/// says whether to go on. Returns whether the streams have ended.
pub(super) fn zcrx(
    receiver: &mut zcrx::Receiver,
    mut streams: usize,
    timeout: Option<Duration>,
    mut take: impl FnMut(&mut zcrx::Receiver, &mut Vec<Fragment>, usize) -> Result<bool>,
) -> Result<bool> {
    let (mut completions, mut fragments) = (Vec::new(), Vec::new());
    while streams > 0 {
        receiver.wait(timeout, &mut completions)?;
        let (old, mut failed) = (fragments.len(), None);
        for completion in completions.drain(..) {
            match completion {
                Completion::Fragment { fragment, .. } => fragments.push(fragment),
                Completion::Ended { error: None, .. } => streams -= 1,
                Completion::Ended { error, .. } => failed = error,
            }
        }
        let go_on = take(receiver, &mut fragments, old)?;
        if let Some(error) = failed {
            return Err(error).context("receiving");
        }
        if !go_on {
            return Ok(false);
        }
    }
    Ok(true)
}
