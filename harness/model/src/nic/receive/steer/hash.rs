// SPDX-License-Identifier: MIT OR Apache-2.0

//! The RSS hash of a packet (82576 datasheet, chapter "RSS Hash Function").
//!
//! Of a tunnel the outer addresses are hashed.

use i82576::{
    five_tuple::Protocol,
    regs::{MRQC, mrqc, rssrk},
    rss::{KEY_SIZE, Key, ipv4_pair, ipv4_tuple, ipv6_pair, ipv6_tuple, toeplitz},
    rx::RssType,
};

use crate::nic::{
    receive::packet::{Addresses, Ip, Packet},
    registers::Registers,
};

/// The hash by the fields that MRQC has on, and what it is of; `None` if none of them fits.
pub(super) fn hash(packet: &Packet, registers: &Registers) -> Option<(RssType, u32)> {
    let ip = packet.ip.as_ref()?;
    let key = key(registers);
    let transport = packet.transport.as_ref().filter(|_| packet.inner.is_none());
    let ports = transport.map(|transport| {
        let ports = (transport.source_port, transport.destination_port);
        (transport.protocol, ports)
    });
    match ip.addresses {
        Addresses::V4 {
            source,
            destination,
        } => {
            let kind = kind_v4(ports.map(|(protocol, _)| protocol), registers)?;
            let hash = match ports {
                Some((_, ports)) if kind.has_ports() => {
                    toeplitz(&key, &ipv4_tuple(source, destination, ports))
                }
                _ => toeplitz(&key, &ipv4_pair(source, destination)),
            };
            Some((kind, hash))
        }
        Addresses::V6 {
            mut source,
            mut destination,
            home_source,
            home_destination,
        } => {
            let kind = kind_v6(ip, ports.map(|(protocol, _)| protocol), registers)?;
            if matches!(
                kind,
                RssType::Ipv6Ex | RssType::Ipv6TcpEx | RssType::Ipv6UdpEx
            ) {
                source = home_source.unwrap_or(source);
                destination = home_destination.unwrap_or(destination);
            }
            let hash = match ports {
                Some((_, ports)) if kind.has_ports() => {
                    toeplitz(&key, &ipv6_tuple(source, destination, ports))
                }
                _ => toeplitz(&key, &ipv6_pair(source, destination)),
            };
            Some((kind, hash))
        }
    }
}

fn kind_v4(protocol: Option<Protocol>, registers: &Registers) -> Option<RssType> {
    let has = |bit| registers.has(MRQC, bit);
    match protocol {
        Some(Protocol::Tcp) if has(mrqc::RSS_FIELD_IPV4_TCP) => Some(RssType::Ipv4Tcp),
        Some(Protocol::Udp) if has(mrqc::RSS_FIELD_IPV4_UDP) => Some(RssType::Ipv4Udp),
        _ => has(mrqc::RSS_FIELD_IPV4).then_some(RssType::Ipv4),
    }
}

/// What is hashed of IPv6. The kinds with "Ex" are for packets with extension headers and come first
/// there; IPv6Ex takes packets without them too, as IPv6. (QEMU's model hashes TCP without
/// extension headers by TcpIPv6Ex, which the datasheet has not.)
///
/// Nothing is hashed if there are extension headers that RFCTL.IPV6_EX_DIS has the device not parse.
fn kind_v6(ip: &Ip, protocol: Option<Protocol>, registers: &Registers) -> Option<RssType> {
    let has = |bit| registers.has(MRQC, bit);
    if ip.unparsed {
        return None;
    }
    let (plain, with_extensions) = match protocol {
        Some(Protocol::Tcp) => (
            (mrqc::RSS_FIELD_IPV6_TCP, RssType::Ipv6Tcp),
            (mrqc::RSS_FIELD_IPV6_TCP_EX, RssType::Ipv6TcpEx),
        ),
        Some(Protocol::Udp) => (
            (mrqc::RSS_FIELD_IPV6_UDP, RssType::Ipv6Udp),
            (mrqc::RSS_FIELD_IPV6_UDP_EX, RssType::Ipv6UdpEx),
        ),
        Some(Protocol::Sctp) | None => return kind_v6_addresses(ip, registers),
    };
    if ip.extended && has(with_extensions.0) {
        Some(with_extensions.1)
    } else if has(plain.0) {
        Some(plain.1)
    } else {
        kind_v6_addresses(ip, registers)
    }
}

fn kind_v6_addresses(ip: &Ip, registers: &Registers) -> Option<RssType> {
    let has = |bit| registers.has(MRQC, bit);
    if ip.extended && has(mrqc::RSS_FIELD_IPV6_EX) {
        Some(RssType::Ipv6Ex)
    } else if has(mrqc::RSS_FIELD_IPV6) || has(mrqc::RSS_FIELD_IPV6_EX) {
        Some(RssType::Ipv6)
    } else {
        None
    }
}

/// The key in RSSRK.
fn key(registers: &Registers) -> Key {
    let mut key = [0; KEY_SIZE];
    for (bytes, n) in key.chunks_exact_mut(4).zip(0..) {
        bytes.copy_from_slice(&registers.get(rssrk(n)).to_le_bytes());
    }
    Key::new(key)
}
