// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives numbered datagrams and counts what is missing.

use std::{net::UdpSocket, sync::Arc};

use anyhow::{Context, Result};
use protocol::{JobId, Payload, UdpSink, udp::UdpSinkReport};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{job::Ready, report::Meter, switch::Switch, udp_source::NUMBER};
use crate::{failure, netns};

/// Receive buffer of the socket in bytes: large enough that only the NIC loses datagrams.
const SOCKET_BUFFER: usize = 32 << 20;

pub(super) fn set_up(id: JobId, spec: &UdpSink) -> Result<Ready> {
    let socket = netns::within(spec.ns, || {
        let domain = Domain::for_address(spec.listen);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .context("creating a UDP socket")?;
        socket
            .set_recv_buffer_size(SOCKET_BUFFER)
            .context("setting SO_RCVBUF")?;
        socket
            .bind(&SockAddr::from(spec.listen))
            .with_context(|| format!("binding to {}", spec.listen))?;
        Ok(UdpSocket::from(socket))
    })?;
    let socket = Arc::new(socket);
    let switch = Switch::new("UdpSink");
    switch.watch(&socket);
    let control = Arc::clone(&switch);
    let seed = spec.seed;
    Ok(Ready::new::<UdpSink>(control, move || {
        run(id, seed, &socket, &switch)
    }))
}

fn run(id: JobId, seed: u64, socket: &UdpSocket, switch: &Switch) -> UdpSinkReport {
    let payload = Payload::new(seed);
    let mut tally = Tally::default();
    let mut corrupt = 0;
    let mut error = None;
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
                    None => corrupt += 1,
                }
            }
            Err(_) if switch.stopped() => break,
            Err(failed) => {
                error = Some(failure::from_io("receiving", &failed));
                break;
            }
        }
    }
    UdpSinkReport {
        received: tally.received,
        missing: tally.seen.len() as u64 - tally.received,
        reordered: tally.reordered,
        duplicates: tally.duplicates,
        corrupt,
        error,
    }
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
    received: u64,
    reordered: u64,
    duplicates: u64,
}

impl Tally {
    fn note(&mut self, number: u64) {
        let number = number as usize;
        if number >= self.seen.len() {
            self.seen.resize(number + 1, false);
        } else if self.seen[number] {
            self.duplicates += 1;
            return;
        } else {
            self.reordered += 1;
        }
        self.seen[number] = true;
        self.received += 1;
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
        assert_eq!(tally.received, 5);
        assert_eq!(tally.reordered, 1);
        assert_eq!(tally.duplicates, 1);
        assert_eq!(tally.seen.len() as u64 - tally.received, 2);
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
