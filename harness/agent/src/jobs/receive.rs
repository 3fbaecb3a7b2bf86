// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a stream from a socket until it ends.

use std::{io::Read, net::TcpStream};

use anyhow::{Context, Result};
use devmem::rx::{Received, Receiver};

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
