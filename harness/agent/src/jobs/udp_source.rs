// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sends numbered datagrams.

use std::{net::UdpSocket, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use protocol::{JobId, Payload, UdpSource, job::UdpSourceReport};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{Ready, report::Meter, switch::Switch};
use crate::{failure, netns};

/// Bytes of the number at the start of each datagram.
pub(super) const NUMBER: usize = 8;

/// Largest payload of a UDP datagram over IPv4.
const MAX_SIZE: u32 = 65507;

pub(super) fn set_up(id: JobId, spec: UdpSource) -> Result<Ready> {
    ensure!(
        (NUMBER as u32..=MAX_SIZE).contains(&spec.size),
        "size must be from {NUMBER} to {MAX_SIZE}, but is {}",
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
    let mut datagram = vec![0; spec.size as usize];
    while report.sent != spec.datagrams.unwrap_or(u64::MAX) && !switch.finishing() {
        let (number, rest) = datagram.split_at_mut(NUMBER);
        number.copy_from_slice(&report.sent.to_le_bytes());
        payload.fill(report.sent * rest.len() as u64, rest);
        match socket.send(&datagram) {
            Ok(_) => report.sent += 1,
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
