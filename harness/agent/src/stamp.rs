// SPDX-License-Identifier: MIT OR Apache-2.0

//! Time stamps of what is sent (Documentation/networking/timestamping.rst of the kernel).

use std::{io, net::SocketAddr, os::fd::AsRawFd};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

/// Sends a datagram; whether the kernel stamped it.
pub(crate) fn send(to: SocketAddr, timeout_ms: u32) -> Result<bool> {
    let domain = Domain::for_address(to);
    let socket = Socket::new(domain, Type::DGRAM, None).context("creating a UDP socket")?;
    ask_for_stamps(&socket).context("asking for time stamps")?;
    // Not connected: that nobody listens is no error of this socket's, so that all that can be on
    // its error queue is the stamp.
    socket
        .send_to(b"stamp", &to.into())
        .with_context(|| format!("sending to {to}"))?;
    let timeout = Timespec {
        tv_sec: i64::from(timeout_ms / 1000),
        tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
    };
    // Errors need not be asked for.
    let mut polled = [PollFd::new(&socket, PollFlags::empty())];
    poll(&mut polled, Some(&timeout)).context("waiting for a time stamp")?;
    Ok(polled[0].revents().contains(PollFlags::ERR))
}

fn ask_for_stamps(socket: &Socket) -> io::Result<()> {
    let stamps = libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the option's value is an int, of which pointer and length are given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const stamps).cast(),
            size_of_val(&stamps) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
