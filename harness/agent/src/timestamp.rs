// SPDX-License-Identifier: MIT OR Apache-2.0

//! TX and RX timestamps (the kernel's Documentation/networking/timestamping.rst).

use std::{
    io,
    net::SocketAddr,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use protocol::timestamp::{Hwtstamp, TimestampDatagrams, TimestampFrames, TimestampSource};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::{netns, packet, sockopt};

const SIOCSHWTSTAMP: libc::Ioctl = 0x89b0;
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;

/// `struct hwtstamp_config` (include/uapi/linux/net_tstamp.h).
#[repr(C)]
struct HwtstampConfig {
    flags: libc::c_int,
    tx_type: libc::c_int,
    rx_filter: libc::c_int,
}

/// Gets which frames an interface timestamps.
pub(crate) fn hwtstamp(interface: &str) -> Result<Hwtstamp> {
    configure(
        interface,
        SIOCGHWTSTAMP,
        Hwtstamp {
            tx: false,
            rx_filter: 0,
        },
    )
    .with_context(|| format!("reading the timestamp settings of {interface}"))
}

/// Sets which frames an interface timestamps.
pub(crate) fn set_hwtstamp(interface: &str, hwtstamp: Hwtstamp) -> Result<Hwtstamp> {
    configure(interface, SIOCSHWTSTAMP, hwtstamp)
        .with_context(|| format!("setting {hwtstamp:?} on {interface}"))
}

fn configure(interface: &str, command: libc::Ioctl, hwtstamp: Hwtstamp) -> io::Result<Hwtstamp> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let mut config = HwtstampConfig {
        flags: 0,
        tx_type: hwtstamp.tx.into(),
        rx_filter: hwtstamp.rx_filter as libc::c_int,
    };
    // SAFETY: `ifreq` is plain old data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0.
    let name = request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1);
    for (to, from) in name.zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    // SAFETY: `request` names the interface and points to `config`, which the kernel reads and
    // writes and which outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Hwtstamp {
        tx: config.tx_type != 0,
        rx_filter: config.rx_filter as u32,
    })
}

/// Sends datagrams, and waits for their TX timestamps.
pub(crate) fn send(request: &TimestampDatagrams) -> Result<Vec<u64>> {
    let domain = Domain::for_address(request.to);
    let socket = Socket::new(domain, Type::DGRAM, None).context("creating a UDP socket")?;
    ask_for_timestamps(
        &socket,
        match request.by {
            TimestampSource::Software => {
                libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE
            }
            TimestampSource::Hardware => {
                libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE
            }
        },
    )?;
    send_all(&socket, request.to, request.count, request.size)?;
    let mut timestamps = Vec::new();
    while timestamps.len() < request.count {
        match next(
            &socket,
            Duration::from_millis(request.timeout_ms),
            request.by,
        )? {
            Some(timestamp) => timestamps.push(timestamp),
            None => break,
        }
    }
    Ok(timestamps)
}

fn send_all(socket: &Socket, to: SocketAddr, count: usize, size: usize) -> Result<()> {
    let datagram = vec![0x5a; size];
    for _ in 0..count {
        // An unconnected socket gets no error for a closed port, so that its error queue has
        // nothing but timestamps.
        socket
            .send_to(&datagram, &to.into())
            .with_context(|| format!("sending to {to}"))?;
    }
    Ok(())
}

/// The next TX timestamp.
fn next(socket: &Socket, timeout: Duration, by: TimestampSource) -> Result<Option<u64>> {
    let end = Instant::now() + timeout;
    loop {
        if let Some(timestamps) = receive(socket, libc::MSG_ERRQUEUE)? {
            return Ok(match by {
                TimestampSource::Software => timestamps.software,
                TimestampSource::Hardware => timestamps.hardware,
            });
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let left = Timespec::try_from(left)?;
        // POLLERR is reported without being requested.
        let mut polled = [PollFd::new(socket, PollFlags::empty())];
        poll(&mut polled, Some(&left)).context("waiting for a timestamp")?;
    }
}

/// Exchanges frames, one after the other; returns their RX timestamps.
pub(crate) fn exchange(request: &TimestampFrames) -> Result<Vec<Option<u64>>> {
    let exchange = &request.exchange;
    let socket = netns::within(exchange.to, || {
        packet::listen(&exchange.at, exchange.ethertype)
    })?;
    ask_for_timestamps(
        &socket,
        libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE,
    )?;
    socket.set_read_timeout(Some(Duration::from_millis(exchange.timeout_ms)))?;
    let mut timestamps = Vec::new();
    for frame in &exchange.frames {
        netns::within(exchange.from, || packet::send(&exchange.through, frame))?;
        let received = receive(&socket, 0)?.with_context(|| {
            format!("frame {} did not come to {}", timestamps.len(), exchange.at)
        })?;
        timestamps.push(received.hardware);
    }
    Ok(timestamps)
}

fn ask_for_timestamps(socket: &Socket, timestamps: libc::c_uint) -> Result<()> {
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &timestamps)
        .context("asking for timestamps")
}

/// The timestamps of a message, in nanoseconds.
#[derive(Default)]
struct Timestamps {
    software: Option<u64>,
    hardware: Option<u64>,
}

/// Receives a message and its timestamps; `None` if none arrives in time.
fn receive(socket: &Socket, flags: libc::c_int) -> Result<Option<Timestamps>> {
    let mut data = [0u8; 2048];
    let mut control = [0u64; 64];
    let mut part = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    // SAFETY: `msghdr` is plain old data, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: The message describes buffers that outlive the call.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) } < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::WouldBlock => Ok(None),
            _ => Err(error).context("receiving a timestamp"),
        };
    }
    let mut timestamps = Timestamps::default();
    // SAFETY: The kernel has filled the message's control buffer, which is aligned and still live.
    let mut head = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: Null, or a header within the buffer.
    while let Some(header) = unsafe { head.as_ref() } {
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            // SAFETY: This header is followed by three times (struct scm_timestamping), aligned or
            // not: software's, an unused one, and the device's.
            let [software, _, hardware] = unsafe {
                libc::CMSG_DATA(head)
                    .cast::<[libc::timespec; 3]>()
                    .read_unaligned()
            };
            timestamps.software = timestamps.software.or(nanoseconds(software));
            timestamps.hardware = timestamps.hardware.or(nanoseconds(hardware));
        }
        // SAFETY: As above.
        head = unsafe { libc::CMSG_NXTHDR(&raw const message, head) };
    }
    Ok(Some(timestamps))
}

/// A timestamp, which is absent where it is zero.
fn nanoseconds(time: libc::timespec) -> Option<u64> {
    match time.tv_sec * 1_000_000_000 + time.tv_nsec {
        0 => None,
        time => u64::try_from(time).ok(),
    }
}
