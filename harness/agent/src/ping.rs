// SPDX-License-Identifier: MIT OR Apache-2.0

//! ICMP echo over the kernel's ping sockets (net/ipv4/ping.c): the kernel fills in the identifier
//! and the checksum, and delivers only replies to this socket, without their IP header.

use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use protocol::{Payload, traffic::PingReport};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::failure;

/// Type, code, checksum, identifier, sequence number (RFC 792, RFC 4443).
const HEADER: usize = 8;

/// Largest payload of an ICMP message over IPv4.
const MAX_SIZE: u32 = 65507;

/// Sends `count` requests, each after the reply to the previous one.
pub(crate) fn ping(to: IpAddr, count: u32, size: u32, timeout: Duration) -> Result<PingReport> {
    ensure!(
        size <= MAX_SIZE,
        "size must be at most {MAX_SIZE}, but is {size}"
    );
    let (domain, protocol, echo) = match to {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128),
    };
    let socket =
        Socket::new(domain, Type::DGRAM, Some(protocol)).context("creating a ping socket")?;
    socket
        .connect(&SockAddr::from(SocketAddr::new(to, 0)))
        .with_context(|| format!("finding a route to {to}"))?;

    let mut report = PingReport::default();
    let mut request = vec![0; HEADER + size as usize];
    request[0] = echo;
    for sequence in 0..count {
        request[6..HEADER].copy_from_slice(&(sequence as u16).to_be_bytes());
        Payload::new(sequence.into()).fill(0, &mut request[HEADER..]);
        if let Err(error) = (&socket).write(&request) {
            report.lost += 1;
            report
                .error
                .get_or_insert(failure::from_io("sending a request", &error));
            continue;
        }
        report.sent += 1;
        match wait_for_reply(&socket, &request, timeout)? {
            Answer::Right => report.received += 1,
            Answer::Wrong => report.corrupt += 1,
            Answer::None => report.lost += 1,
        }
    }
    Ok(report)
}

enum Answer {
    Right,
    Wrong,
    None,
}

/// Waits for the reply to `request`; replies to earlier ones are late and skipped.
fn wait_for_reply(mut socket: &Socket, request: &[u8], timeout: Duration) -> Result<Answer> {
    let start = Instant::now();
    let mut reply = vec![0; request.len() + 1];
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(Answer::None);
        }
        socket
            .set_read_timeout(Some(left))
            .context("setting SO_RCVTIMEO")?;
        match socket.read(&mut reply) {
            Ok(length) if length >= HEADER && reply[6..HEADER] == request[6..HEADER] => {
                let right = reply[HEADER..length] == request[HEADER..];
                return Ok(if right { Answer::Right } else { Answer::Wrong });
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Answer::None),
            // An ICMP error about a request, for instance that the host cannot be reached.
            Err(_) => return Ok(Answer::None),
        }
    }
}
