// SPDX-License-Identifier: MIT OR Apache-2.0

//! Hand-made frames that no stack would send.

use std::net::IpAddr;

use etherparse::{IpHeaders, PacketBuilder, PacketBuilderStep};

use crate::{Family, Result, Station, Testbed};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Offset of the time to live in an IPv4 header. No other checksum covers it.
const TIME_TO_LIVE: usize = 8;

/// A frame from one station to the other, with right checksums until it is damaged.
#[derive(Debug, Clone)]
pub struct Frame {
    from: Station,
    bytes: Vec<u8>,
}

impl Frame {
    /// A TCP segment without options, of a connection that does not exist: a receiver that accepts
    /// it answers with a reset.
    pub fn tcp(
        from: Station,
        to: Station,
        family: Family,
        port: u16,
        payload: &[u8],
    ) -> Result<Self> {
        Self::segment(from, to, family, port, 1, payload)
    }

    /// The same, of this sequence number.
    pub fn segment(
        from: Station,
        to: Station,
        family: Family,
        port: u16,
        sequence: u32,
        payload: &[u8],
    ) -> Result<Self> {
        let ports = ip(from, to, family).tcp(port, port, sequence, 65_535);
        let packet = ports.ack(1);
        let mut bytes = Vec::with_capacity(packet.size(payload.len()));
        packet.write(&mut bytes, payload)?;
        Ok(Self { from, bytes })
    }

    /// A UDP datagram.
    pub fn udp(
        from: Station,
        to: Station,
        family: Family,
        port: u16,
        payload: &[u8],
    ) -> Result<Self> {
        let packet = ip(from, to, family).udp(port, port);
        let mut bytes = Vec::with_capacity(packet.size(payload.len()));
        packet.write(&mut bytes, payload)?;
        Ok(Self { from, bytes })
    }

    /// The same with a wrong last byte of payload: the TCP or UDP checksum is wrong.
    #[must_use]
    pub fn with_wrong_payload(mut self) -> Self {
        if let Some(byte) = self.bytes.last_mut() {
            *byte ^= 0x55;
        }
        self
    }

    /// The same with another time to live: the IPv4 header's checksum, and only that, is wrong.
    #[must_use]
    pub fn with_wrong_ipv4_header(mut self) -> Self {
        self.bytes[ETHERNET + TIME_TO_LIVE] ^= 1;
        self
    }

    /// Bytes without padding and frame check sequence.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Those bytes, from the Ethernet header on.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Puts it on the wire.
    pub fn send(self, bed: &Testbed) -> Result {
        bed.send_frame(self.from, self.bytes)
    }
}

/// The headers up to and including IP.
fn ip(from: Station, to: Station, family: Family) -> PacketBuilderStep<IpHeaders> {
    const HOPS: u8 = 64;
    let ethernet = PacketBuilder::ethernet2(from.mac().0, to.mac().0);
    match (from.address(family), to.address(family)) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), HOPS),
        (IpAddr::V6(from), IpAddr::V6(to)) => ethernet.ipv6(from.octets(), to.octets(), HOPS),
        _ => unreachable!("a station's address is of the family that was asked for"),
    }
}
