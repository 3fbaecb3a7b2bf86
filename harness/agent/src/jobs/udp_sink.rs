// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives numbered datagrams and counts what is missing.

use std::{net::UdpSocket, sync::Arc};

use anyhow::{Context, Result};
use protocol::{JobId, Payload, UdpSink, udp::UdpSinkReport};
use socket2::SockAddr;

use super::{
    job::Ready,
    report::Meter,
    switch::Switch,
    udp_source::{NUMBER, socket},
};
use crate::failure;

/// Receive buffer of the socket in bytes: large enough that only the NIC loses datagrams.
const SOCKET_BUFFER: usize = 32 << 20;

pub(super) fn set_up(id: JobId, spec: &UdpSink) -> Result<Ready> {
    let socket = socket(spec.ns, spec.listen)?;
    socket
        .set_recv_buffer_size(SOCKET_BUFFER)
        .context("setting SO_RCVBUF")?;
    socket
        .bind(&SockAddr::from(spec.listen))
        .with_context(|| format!("binding to {}", spec.listen))?;
    let socket = Arc::new(UdpSocket::from(socket));
    let switch = Switch::watching("UdpSink", &socket);
    let seed = spec.seed;
    Ok(Ready::new::<UdpSink, _>(switch, move |switch| {
        run(id, seed, &socket, switch)
    }))
}

fn run(id: JobId, seed: u64, socket: &UdpSocket, switch: &Switch) -> UdpSinkReport {
    let payload = Payload::new(seed);
    let mut tally = Tally::default();
    let mut meter = Meter::new(id);
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match socket.recv(&mut buffer) {
            // Our datagrams are never empty; this is the shut-down socket.
            Ok(0) if switch.stopped() => break,
            Ok(length) => {
                bytes += length as u64;
                meter.passed(bytes);
                match parse(payload, &buffer[..length]) {
                    Some(number) => tally.note(number),
                    None => tally.report.corrupt += 1,
                }
            }
            Err(_) if switch.stopped() => break,
            Err(failed) => {
                tally.report.error = Some(failure::from_io("receiving", &failed));
                break;
            }
        }
    }
    tally.report()
}

/// The number of a datagram whose payload is right.
fn parse(payload: Payload, datagram: &[u8]) -> Option<u64> {
    let (number, rest) = datagram.split_first_chunk::<NUMBER>()?;
    let number = u64::from_le_bytes(*number);
    // A number far from any that was sent is corrupt.
    let offset = number.checked_mul(rest.len() as u64)?;
    payload
        .check(offset, rest)
        .ok()
        .filter(|()| number < MAX_NUMBER)?;
    Some(number)
}

/// Numbers above this are taken for corruption.
const MAX_NUMBER: u64 = 1 << 28;

/// Which numbers have arrived.
#[derive(Default)]
struct Tally {
    /// Up to the highest number that has arrived.
    seen: Vec<bool>,
    /// What came so far; `missing` is counted at the end.
    report: UdpSinkReport,
}

impl Tally {
    fn note(&mut self, number: u64) {
        let number = number as usize;
        if number >= self.seen.len() {
            self.seen.resize(number + 1, false);
        } else if self.seen[number] {
            self.report.duplicates += 1;
            return;
        } else {
            self.report.reordered += 1;
        }
        self.seen[number] = true;
        self.report.received += 1;
    }

    fn report(self) -> UdpSinkReport {
        UdpSinkReport {
            missing: self.seen.len() as u64 - self.report.received,
            ..self.report
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_reordering_and_duplicates_are_told_apart() {
        let mut tally = Tally::default();
        for number in [0, 1, 3, 2, 3, 6] {
            tally.note(number);
        }
        let report = UdpSinkReport {
            received: 5,
            missing: 2,
            reordered: 1,
            duplicates: 1,
            ..UdpSinkReport::default()
        };
        assert_eq!(tally.report(), report);
    }

    #[test]
    fn a_datagram_with_a_wrong_byte_has_no_number() {
        let payload = Payload::new(9);
        let mut datagram = 5u64.to_le_bytes().to_vec();
        datagram.resize(NUMBER + 100, 0);
        payload.fill(500, &mut datagram[NUMBER..]);
        assert_eq!(parse(payload, &datagram), Some(5));
        datagram[50] ^= 1;
        assert_eq!(parse(payload, &datagram), None);
        assert_eq!(parse(payload, &[1, 2]), None);
    }
}
