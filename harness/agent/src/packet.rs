// SPDX-License-Identifier: MIT OR Apache-2.0

//! Raw frames, bypassing the stack (packet(7)).

use std::{
    io::{self, Read},
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use protocol::traffic::ExchangeFrames;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, SockFilter, Socket, Type};

use crate::{netns, rtnetlink::index_of, sockopt};

/// Sends one frame, which starts with its Ethernet header and lacks the frame check sequence.
pub(crate) fn send(interface: &str, frame: &[u8]) -> Result<()> {
    send_all(interface, [frame])
}

/// Sends frames through one socket: closing one takes the kernel a while.
fn send_all<'f>(interface: &str, frames: impl IntoIterator<Item = &'f [u8]>) -> Result<()> {
    let to = link(index_of(interface)?)?;
    // Without a protocol the socket receives nothing.
    let socket =
        Socket::new(Domain::PACKET, Type::RAW, None).context("creating a packet socket")?;
    for frame in frames {
        let sent = socket
            .send_to(frame, &to)
            .with_context(|| format!("sending a frame through {interface}"))?;
        ensure!(
            sent == frame.len(),
            "{interface} took {sent} of {} bytes",
            frame.len()
        );
    }
    Ok(())
}

/// Sends frames, and waits for some to arrive.
pub(crate) fn exchange(request: &ExchangeFrames) -> Result<Vec<Vec<u8>>> {
    let socket = netns::within(request.to, || listen(&request.at, request.ethertype))?;
    if let Some(hash) = request.hash {
        take_only(&socket, hash).context("filtering by hash")?;
    }
    netns::within(request.from, || {
        send_all(&request.through, request.frames.iter().map(Vec::as_slice))
    })?;
    let end = Instant::now() + Duration::from_millis(request.timeout_ms);
    let mut received = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while received.len() < request.count {
        // A timeout of 0 would mean none.
        let left = end
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        socket.set_read_timeout(Some(left))?;
        match (&socket).read(&mut buffer) {
            Ok(length) => received.push(buffer[..length].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)).with_context(|| {
                    format!(
                        "{} of {} frames came to {}",
                        received.len(),
                        request.count,
                        request.at
                    )
                });
            }
            Err(error) => return Err(error).context("receiving a frame"),
        }
    }
    Ok(received)
}

/// A socket that receives frames of one type on an interface.
pub(crate) fn listen(interface: &str, ethertype: u16) -> Result<Socket> {
    // Without a protocol it receives nothing until it is bound.
    let socket =
        Socket::new(Domain::PACKET, Type::RAW, None).context("creating a packet socket")?;
    socket
        .bind(&address(index_of(interface)?, ethertype)?)
        .with_context(|| format!("binding to {interface}"))?;
    Ok(socket)
}

/// Makes a socket receive only packets for which the kernel has this hash (classic BPF;
/// `SKF_AD_RXHASH` in include/uapi/linux/filter.h).
fn take_only(socket: &Socket, hash: u32) -> io::Result<()> {
    const RXHASH: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_RXHASH) as u32;
    let instruction =
        |code: u32, jump_if_not: u8, k: u32| SockFilter::new(code as u16, 0, jump_if_not, k);
    socket.attach_filter(&[
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, RXHASH),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, hash),
        instruction(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
    ])
}

/// A socket that receives every frame that an interface sees, and sends through it.
///
/// `room` is how many bytes may wait in the receive buffer, as the kernel counts them.
pub(crate) fn tap(interface: &str, room: usize) -> Result<Socket> {
    let index = index_of(interface)?;
    let all = libc::ETH_P_ALL as u16;
    let socket = Socket::new(
        Domain::PACKET,
        Type::RAW,
        Some(Protocol::from(i32::from(all.to_be()))),
    )
    .context("creating a packet socket")?;
    set_socket_recv_buffer_size_force(&socket, room).context("setting SO_RCVBUFFORCE")?;
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index.try_into().context("an interface's index")?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    sockopt::set(
        &socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &promiscuous,
    )
    .context("setting PACKET_ADD_MEMBERSHIP")?;
    // Until it is bound, it receives from all interfaces.
    socket
        .bind(&link(index)?)
        .with_context(|| format!("binding to {interface}"))?;
    socket.set_nonblocking(true)?;
    let mut none = [];
    while socket.recv(&mut none).is_ok() {}
    socket.set_nonblocking(false)?;
    Ok(socket)
}

/// When the last received frame arrived, in nanoseconds of the guest's wall clock.
pub(crate) fn arrival(socket: &Socket) -> Result<u64> {
    const SIOCGSTAMPNS_OLD: libc::Ioctl = 0x8907;
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: The kernel writes a `timespec` to `at`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS_OLD, &raw mut at) };
    if result != 0 {
        return Err(io::Error::last_os_error()).context("reading a frame's timestamp");
    }
    Ok(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

/// Frames that found no room since the last call.
pub(crate) fn dropped(socket: &Socket) -> Result<u64> {
    // SAFETY: `tpacket_stats` consists of integers.
    let stats: io::Result<libc::tpacket_stats> =
        unsafe { sockopt::get(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS) };
    Ok(stats.context("reading packet statistics")?.tp_drops.into())
}

/// The address of an interface. A raw frame itself contains its destination.
fn link(index: u32) -> Result<SockAddr> {
    address(index, libc::ETH_P_ALL as u16)
}

/// The address for frames of one EtherType on an interface.
fn address(index: u32, ethertype: u16) -> Result<SockAddr> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_ll` is one of the structures that a `sockaddr_storage` has room for.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index.try_into().context("an interface's index")?;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: The storage holds an address of that family and length, all of it initialized.
    Ok(unsafe { SockAddr::new(storage, length) })
}
