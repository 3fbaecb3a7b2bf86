// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends numbered datagrams.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use protocol::{JobId, Ns, Payload, UdpSource, udp::UdpSourceReport};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{job::Ready, report::Meter, switch::Switch};
use crate::{failure, netns, sockopt};

/// Bytes of the number at the start of each datagram.
pub(super) const NUMBER: usize = 8;

/// Largest payload of a UDP datagram over IPv4.
const MAX_SIZE: u32 = 65507;

/// The socket option that splits each send into datagrams of so many bytes (include/uapi/linux/udp.h).
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
    let socket = socket(spec.ns, spec.connect)?;
    if let Some(bind) = spec.bind {
        socket
            .bind(&SockAddr::from(bind))
            .with_context(|| format!("binding to {bind}"))?;
    }
    socket
        .connect(&SockAddr::from(spec.connect))
        .with_context(|| format!("connecting to {}", spec.connect))?;
    if spec.batch.is_some() {
        let size = spec.size as libc::c_int;
        sockopt::set(&socket, libc::IPPROTO_UDP, UDP_SEGMENT, &size)
            .context("setting UDP_SEGMENT")?;
    }
    let socket = Arc::new(UdpSocket::from(socket));
    let switch = Switch::watching("UdpSource", &socket);
    Ok(Ready::new::<UdpSource, _>(switch, move |switch| {
        run(id, &spec, &socket, switch)
    }))
}

/// A socket for addresses of this one's family.
pub(super) fn socket(ns: Ns, address: SocketAddr) -> Result<Socket> {
    let domain = Domain::for_address(address);
    netns::within(ns, || {
        Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).context("creating a UDP socket")
    })
}

fn run(id: JobId, spec: &UdpSource, socket: &UdpSocket, switch: &Switch) -> UdpSourceReport {
    let payload = Payload::new(spec.seed);
    let mut report = UdpSourceReport::default();
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
