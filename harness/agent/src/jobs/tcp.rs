// SPDX-License-Identifier: MIT OR Apache-2.0

//! TCP connections for all TCP jobs.

use std::{
    io::{self, Read},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use protocol::{Event, Failure, JobId};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::switch::Switch;
use crate::{failure, outbox::send_event};

/// After 5 s without a segment, probe every 5 s; give up after five probes. A receiver without
/// memory for packets gets no answers either, so this must outlast a stall.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(5))
    .with_interval(Duration::from_secs(5))
    .with_retries(5);

/// A listening socket. Its address may be in use by a connection that is closing.
///
/// `receive_buffer` is the SO_RCVBUF of its connections in bytes, which the kernel doubles; without
/// one the buffer grows as needed.
pub(super) fn listen(address: SocketAddr, receive_buffer: Option<usize>) -> Result<TcpListener> {
    let socket = socket(address)?;
    if let Some(bytes) = receive_buffer {
        socket
            .set_recv_buffer_size(bytes)
            .context("setting SO_RCVBUF")?;
    }
    socket
        .bind(&SockAddr::from(address))
        .and_then(|()| socket.listen(8))
        .with_context(|| format!("listening on {address}"))?;
    Ok(socket.into())
}

/// Accepts one connection and stops listening. `None` when the job was stopped meanwhile.
pub(super) fn accept(
    listener: Arc<TcpListener>,
    switch: &Switch,
    job: JobId,
) -> Result<Option<Arc<TcpStream>>, Failure> {
    match listener.accept() {
        Ok((stream, peer)) => {
            // A receiver whose NIC is gone would wait forever: nothing arrives, and it sends
            // nothing.
            SockRef::from(&stream)
                .set_tcp_keepalive(&KEEPALIVE)
                .map_err(|error| failure::from_io("setting SO_KEEPALIVE", &error))?;
            let stream = Arc::new(stream);
            switch.watch(&stream);
            send_event(job, Event::Connected { peer });
            Ok(Some(stream))
        }
        Err(_) if switch.stopped() => Ok(None),
        Err(error) => Err(failure::from_io("accepting a connection", &error)),
    }
}

/// A connection without Nagle's algorithm.
pub(super) fn connect(bind: Option<SocketAddr>, address: SocketAddr) -> Result<TcpStream> {
    let socket = socket(address)?;
    if let Some(bind) = bind {
        socket
            .bind(&SockAddr::from(bind))
            .with_context(|| format!("binding to {bind}"))?;
    }
    socket
        .set_tcp_nodelay(true)
        .context("setting TCP_NODELAY")?;
    socket
        .connect(&SockAddr::from(address))
        .with_context(|| format!("connecting to {address}"))?;
    Ok(socket.into())
}

/// Adds an IPv6 hop-by-hop header of `length` bytes to all further packets.
///
/// It holds one option of an experimental type that receivers skip (RFC 4727, section 4).
pub(super) fn set_hop_by_hop(stream: &TcpStream, length: u16) -> Result<()> {
    const OPTION: u8 = 0x1e;
    /// Next header, header length, option type, option length.
    const BEFORE: u16 = 4;
    let units = length / 8;
    ensure!(
        length % 8 == 0 && (1..=32).contains(&units),
        "a hop-by-hop header has 8 to 256 bytes in steps of 8, not {length}"
    );
    let mut header = vec![0u8; length.into()];
    // The length field counts units of 8 bytes beyond the first; the kernel fills in what follows.
    header[1] = (units - 1) as u8;
    header[2] = OPTION;
    header[3] = (length - BEFORE) as u8;
    // SAFETY: The kernel reads `header`, which has the given length and outlives the call.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_IPV6,
            libc::IPV6_HOPOPTS,
            header.as_ptr().cast(),
            libc::socklen_t::from(length),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error()).context("setting IPV6_HOPOPTS");
    }
    Ok(())
}

/// Closes the direction to the peer and waits until the peer, having read everything, closes too.
///
/// `Ok(false)` when the job was stopped.
pub(super) fn deliver(stream: &TcpStream, switch: &Switch) -> Result<bool, Failure> {
    let result = stream.shutdown(Shutdown::Write).and_then(|()| {
        let mut reader = stream;
        io::copy(&mut Read::by_ref(&mut reader), &mut io::sink())
    });
    match result {
        _ if switch.stopped() => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(failure::from_io("waiting for the peer to close", &error)),
    }
}

/// Closing the connection drops what is in flight, without waiting for the peer.
pub(super) fn give_up(stream: &TcpStream) {
    // A socket that is no longer connected has nothing in flight.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Segments of this connection that were sent more than once.
pub(super) fn retransmits(stream: &TcpStream) -> u32 {
    // SAFETY: `tcp_info` consists of integers, for which zero is a valid value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: The kernel writes at most `length` bytes into `info`, which is that large, and the
    // new length into `length`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        info.tcpi_total_retrans
    } else {
        0
    }
}

fn socket(address: SocketAddr) -> Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )
    .context("creating a TCP socket")?;
    socket
        .set_reuse_address(true)
        .context("setting SO_REUSEADDR")?;
    Ok(socket)
}
