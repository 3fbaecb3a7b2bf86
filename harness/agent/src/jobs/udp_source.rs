// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends numbered datagrams.

use std::{net::UdpSocket, os::fd::AsRawFd, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use protocol::{JobId, Payload, UdpSource, udp::UdpSourceReport};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{job::Ready, report::Meter, switch::Switch};
use crate::{failure, netns};

/// Bytes of the number at the start of each datagram.
pub(super) const NUMBER: usize = 8;

/// Largest payload of a UDP datagram over IPv4.
const MAX_SIZE: u32 = 65507;

/// The socket option that splits a send into datagrams (include/uapi/linux/udp.h).
const UDP_SEGMENT: libc::c_int = 103;

pub(super) fn set_up(id: JobId, spec: UdpSource) -> Result<Ready> {
    ensure!(
        (NUMBER as u32..=MAX_SIZE).contains(&spec.size),
        "size must be from {NUMBER} to {MAX_SIZE}, but is {}",
        spec.size
    );
    let batch = spec.batch.unwrap_or(1);
    ensure!(
        (1..=MAX_SIZE / spec.size).contains(&batch),
        "{batch} datagrams of {} bytes don't fit one send",
        spec.size
    );
    let socket = netns::within(spec.ns, || {
        let domain = Domain::for_address(spec.connect);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .context("creating a UDP socket")?;
        if let Some(bind) = spec.bind {
            socket
                .bind(&SockAddr::from(bind))
                .with_context(|| format!("binding to {bind}"))?;
        }
        socket
            .connect(&SockAddr::from(spec.connect))
            .with_context(|| format!("connecting to {}", spec.connect))?;
        if spec.batch.is_some() {
            segment(&socket, spec.size).context("setting UDP_SEGMENT")?;
        }
        Ok(UdpSocket::from(socket))
    })?;
    let socket = Arc::new(socket);
    let switch = Switch::new("UdpSource");
    switch.watch(&socket);
    let control = Arc::clone(&switch);
    Ok(Ready::new::<UdpSource>(control, move || {
        run(id, &spec, &socket, &switch)
    }))
}

fn run(id: JobId, spec: &UdpSource, socket: &UdpSocket, switch: &Switch) -> UdpSourceReport {
    let payload = Payload::new(spec.seed);
    let mut report = UdpSourceReport {
        sent: 0,
        error: None,
    };
    let mut meter = Meter::new(id);
    let size = spec.size as usize;
    let mut buffer = vec![0; size * spec.batch.unwrap_or(1) as usize];
    while report.sent < spec.datagrams.unwrap_or(u64::MAX) && !switch.finishing() {
        let mut next = report.sent;
        for datagram in buffer.chunks_exact_mut(size) {
            let (number, rest) = datagram.split_at_mut(NUMBER);
            number.copy_from_slice(&next.to_le_bytes());
            payload.fill(next * rest.len() as u64, rest);
            next += 1;
        }
        match socket.send(&buffer) {
            Ok(_) => report.sent = next,
            Err(_) if switch.stopped() => break,
            Err(error) => {
                report.error = Some(failure::from_io("sending", &error));
                break;
            }
        }
        meter.passed(report.sent * u64::from(spec.size));
        if spec.pause_us != 0 {
            thread::sleep(Duration::from_micros(spec.pause_us));
        }
    }
    report
}

/// Makes the kernel split each send into datagrams of `size` bytes.
fn segment(socket: &Socket, size: u32) -> std::io::Result<()> {
    let size = size as libc::c_int;
    let length = size_of_val(&size) as libc::socklen_t;
    // SAFETY: the option's value is an int, whose pointer and length are passed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_UDP,
            UDP_SEGMENT,
            (&raw const size).cast(),
            length,
        )
    };
    if result != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
