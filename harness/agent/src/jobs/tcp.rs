// SPDX-License-Identifier: MIT OR Apache-2.0

//! TCP connections for all TCP jobs.

use std::{
    io::{self, Read},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use devmem_tcp::{netdev::TxBinding, tx::Sender};
use protocol::{Event, JobId, Ns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::switch::Switch;
use crate::{netns, outbox::send_event, sockopt};

/// After 5 s without a segment, probe every 5 s; give up after five probes. A receiver without
/// memory for packets gets no answers either, so this must outlast a stall.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(5))
    .with_interval(Duration::from_secs(5))
    .with_retries(5);

/// How long to wait for completions or frames at a time, so that a stopped job notices.
pub(super) const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// A listening socket. Its address may be in use by a connection that is closing.
///
/// `receive_buffer` is the SO_RCVBUF of its connections in bytes, which the kernel doubles; without
/// one the buffer grows as needed.
pub(super) fn listen(
    ns: Ns,
    address: SocketAddr,
    receive_buffer: Option<usize>,
) -> Result<Arc<TcpListener>> {
    let socket = socket(ns, address)?;
    if let Some(bytes) = receive_buffer {
        socket
            .set_recv_buffer_size(bytes)
            .context("setting SO_RCVBUF")?;
    }
    socket
        .bind(&SockAddr::from(address))
        .and_then(|()| socket.listen(8))
        .with_context(|| format!("listening on {address}"))?;
    Ok(Arc::new(socket.into()))
}

/// Accepts one connection and stops listening. Fails, too, when the job is stopped meanwhile.
pub(super) fn accept(
    listener: Arc<TcpListener>,
    switch: &Switch,
    job: JobId,
) -> Result<Arc<TcpStream>> {
    let (stream, peer) = listener.accept().context("accepting a connection")?;
    // A receiver whose NIC is gone would wait forever: nothing arrives, and it sends nothing.
    SockRef::from(&stream)
        .set_tcp_keepalive(&KEEPALIVE)
        .context("setting SO_KEEPALIVE")?;
    let stream = Arc::new(stream);
    switch.watch(&stream);
    send_event(job, Event::Connected { peer });
    Ok(stream)
}

/// A connection without Nagle's algorithm.
pub(super) fn connect(
    ns: Ns,
    bind: Option<SocketAddr>,
    address: SocketAddr,
) -> Result<Arc<TcpStream>> {
    let socket = socket(ns, address)?;
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
    Ok(Arc::new(socket.into()))
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
    sockopt::set(stream, libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS, &header[..])
        .context("setting IPV6_HOPOPTS")
}

/// Closes the direction to the peer and waits until the peer, having read everything, closes too.
///
/// `Ok(false)` when the job was stopped.
pub(super) fn deliver(stream: &TcpStream, switch: &Switch) -> Result<bool> {
    let result = stream.shutdown(Shutdown::Write).and_then(|()| {
        let mut reader = stream;
        io::copy(&mut Read::by_ref(&mut reader), &mut io::sink())
    });
    match result {
        _ if switch.stopped() => Ok(false),
        result => result
            .map(|_| true)
            .context("waiting for the peer to close"),
    }
}

/// Closing the connection drops what is in flight, without waiting for the peer.
pub(super) fn give_up(stream: &TcpStream) {
    // A socket that is no longer connected has nothing in flight.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Segments of this connection that were sent more than once.
pub(super) fn retransmits(stream: &TcpStream) -> u32 {
    // SAFETY: `tcp_info` consists of integers.
    let info: io::Result<libc::tcp_info> =
        unsafe { sockopt::get(stream, libc::IPPROTO_TCP, libc::TCP_INFO) };
    info.map_or(0, |info| info.tcpi_total_retrans)
}

/// What sends from a bound dma-buf on a connection.
pub(super) fn sender(
    stream: &TcpStream,
    binding: impl Into<Arc<TxBinding>>,
) -> Result<Sender<TcpStream>> {
    let own = stream.try_clone().context("duplicating the socket")?;
    Ok(Sender::new(own, binding)?)
}

/// Waits for completions of what was sent, and for no longer than `timeout`.
pub(super) fn wait_for_completions(
    sender: &Sender<TcpStream>,
    timeout: Option<&Timespec>,
) -> Result<()> {
    // A non-empty error queue is reported as POLLERR, whatever events are requested.
    let mut sockets = [PollFd::new(sender.socket(), PollFlags::empty())];
    poll(&mut sockets, timeout).context("waiting for completions")?;
    Ok(())
}

fn socket(ns: Ns, address: SocketAddr) -> Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = netns::within(ns, || {
        Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).context("creating a TCP socket")
    })?;
    socket
        .set_reuse_address(true)
        .context("setting SO_REUSEADDR")?;
    Ok(socket)
}
