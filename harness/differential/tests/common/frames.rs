// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames, right ones and damaged ones.

use differential::{Hex, MAC, transmit::Packet};
use i82576::tx::{Context, Data, IpVersion, L4};
use proptest::{array, collection::vec, prelude::*};

const PEER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
/// Protocols of IP.
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// A frame's network layer, and what lies in it.
#[derive(Debug, Clone)]
enum Network {
    Other {
        ether_type: u16,
        bytes: Vec<u8>,
    },
    V4 {
        options: usize,
        fragment: u16,
        damaged: bool,
    },
    V6 {
        extensions: Vec<u8>,
    },
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words.fold(0, |sum, word| {
        let low = word.get(1).copied().unwrap_or(0);
        let sum = sum + u32::from(u16::from_be_bytes([word[0], low]));
        (sum & 0xffff) + (sum >> 16)
    })
}

fn transport(protocol: u8, options: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x10, 0, 0x20, 0];
    if protocol == TCP {
        bytes.extend([
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            2,
            (5 + options as u8) << 4,
            0x18,
            2,
            0,
            0,
            0,
            0,
            0,
        ]);
        bytes.extend(std::iter::repeat_n(1, options * 4));
    } else if protocol == UDP {
        bytes.extend((8 + payload.len() as u16).to_be_bytes());
        bytes.extend([0, 0]);
    }
    if protocol == SCTP {
        bytes.extend([0; 8]);
    }
    [&bytes, payload].concat()
}

fn finish(protocol: u8, pseudo: &[u8], bytes: &mut [u8], damage: u16) {
    let at = if protocol == TCP { 16 } else { 6 };
    if protocol == TCP || protocol == UDP {
        let length = (bytes.len() as u16).to_be_bytes();
        let total = [pseudo, &[0, protocol], &length].concat();
        let folded = sum(&[sum(&total) as u16, sum(bytes) as u16]
            .map(u16::to_be_bytes)
            .concat());
        let right = match !(folded as u16) {
            0 if protocol == UDP => 0xffff,
            value => value,
        };
        bytes[at..at + 2].copy_from_slice(&(right ^ damage).to_be_bytes());
    }
}

fn network(network: Network, protocol: u8, options: usize, payload: &[u8], damage: u16) -> Vec<u8> {
    let mut inner = transport(protocol, options, payload);
    match network {
        Network::Other { ether_type, bytes } => [&ether_type.to_be_bytes()[..], &bytes].concat(),
        Network::V4 {
            options,
            fragment,
            damaged,
        } => {
            let addresses = [10, 0, 0, 2, 10, 0, 0, 1];
            finish(protocol, &addresses, &mut inner, damage);
            let length = 20 + 4 * options + inner.len();
            let mut header = vec![0x45 + options as u8, 0];
            header.extend((length as u16).to_be_bytes());
            header.extend([0x12, 0x34]);
            header.extend(fragment.to_be_bytes());
            header.extend([64, protocol, 0, 0]);
            header.extend(addresses);
            header.extend(std::iter::repeat_n(1, options * 4));
            let right = !(sum(&header) as u16) ^ u16::from(damaged);
            header[10..12].copy_from_slice(&right.to_be_bytes());
            [&[8, 0][..], &header, &inner].concat()
        }
        Network::V6 { extensions } => {
            let addresses = [[0xfd; 16], [0xfe; 16]].concat();
            finish(protocol, &addresses, &mut inner, damage);
            let mut chain = Vec::new();
            for (n, kind) in extensions.iter().enumerate() {
                let next = extensions.get(n + 1).copied().unwrap_or(protocol);
                let rest = if *kind == 44 {
                    [0, 0, 0, 0, 0, 0, 7]
                } else {
                    [0, 1, 4, 0, 0, 0, 0]
                };
                chain.push(next);
                chain.extend(rest);
            }
            let mut header = vec![0x86, 0xdd, 0x60, 0, 0, 0];
            header.extend(((chain.len() + inner.len()) as u16).to_be_bytes());
            header.extend([extensions.first().copied().unwrap_or(protocol), 64]);
            [header, addresses, chain, inner].concat()
        }
    }
}

fn networks() -> impl Strategy<Value = Network> {
    let other = prop_oneof![Just(0x0806), Just(0x88cc), Just(0x0040), Just(0xffff)];
    prop_oneof![
        2 => (other, vec(any::<u8>(), 0..80))
            .prop_map(|(ether_type, bytes)| Network::Other { ether_type, bytes }),
        5 => (
            prop_oneof![3 => Just(0usize), 1 => 1usize..=10],
            prop_oneof![4 => Just(0u16), 2 => Just(0x4000), 1 => Just(0x2000), 1 => Just(0x10), 1 => Just(0x2010)],
            prop::bool::weighted(0.1),
        )
            .prop_map(|(options, fragment, damaged)| Network::V4 { options, fragment, damaged }),
        5 => prop_oneof![
            3 => Just(Vec::new()),
            1 => vec(prop_oneof![Just(0u8), Just(60), Just(43), Just(44)], 1..3),
        ]
            .prop_map(|extensions| Network::V6 { extensions }),
    ]
}

/// A frame of at least the shortest length, as a peer sends them.
pub(crate) fn frames(longest: usize) -> impl Strategy<Value = Hex<Vec<u8>>> {
    let destination = prop_oneof![
        8 => Just(MAC),
        1 => Just([0xff; 6]),
        1 => Just([1, 0, 0x5e, 0, 0, 1]),
        1 => Just([2, 9, 9, 9, 9, 9]),
    ];
    let vlan = prop_oneof![3 => Just(None), 1 => (0u16..8).prop_map(Some)];
    let protocol = prop_oneof![4 => Just(TCP), 4 => Just(UDP), 1 => Just(1), 1 => Just(SCTP)];
    let damage = prop_oneof![4 => Just(0u16), 1 => any::<u16>()];
    let payload = prop_oneof![3 => 0usize..100, 1 => 0..longest];
    (
        destination,
        vlan,
        networks(),
        protocol,
        0usize..=10,
        payload,
        damage,
    )
        .prop_map(
            move |(destination, vlan, layer, protocol, options, payload, damage)| {
                let payload: Vec<u8> = (0..payload).map(|n| (n * 7) as u8 & 0x7f).collect();
                let tag = vlan.map_or(Vec::new(), |tag| [[0x81, 0], tag.to_be_bytes()].concat());
                let layer = network(layer, protocol, options, &payload, damage);
                let mut frame = [&destination[..], &PEER, &tag, &layer].concat();
                frame.resize(frame.len().clamp(60, longest), 0);
                Hex(frame)
            },
        )
}

/// A packet to be sent: as it is, with its checksums to be filled in, or to be cut into segments.
pub(crate) fn packets() -> impl Strategy<Value = Packet> {
    let kinds = array::uniform5(any::<bool>());
    let sizes = (0usize..=10, 1usize..1400, 1usize..4000, 1usize..4);
    (kinds, sizes, 100u16..1400).prop_map(
        |([v6, udp, offload, tso, vlan], (options, short, long, parts), mss)| {
            let tso = tso && offload && !udp;
            let protocol = if udp { UDP } else { TCP };
            let len = if tso { long } else { short };
            let payload: Vec<u8> = (0..len).map(|n| (n * 11) as u8).collect();
            let layer = match v6 {
                true => Network::V6 {
                    extensions: Vec::new(),
                },
                false => Network::V4 {
                    options: 0,
                    fragment: 0,
                    damaged: false,
                },
            };
            let layer = network(layer, protocol, options, &payload, 0);
            let mut bytes = [&[2; 6][..], &MAC, &layer].concat();
            let ip_len = if v6 { 40u16 } else { 20 };
            let l4 = 14 + usize::from(ip_len);
            let l4_len = if udp { 8 } else { 20 + 4 * options };
            if offload {
                let addresses = if v6 { 22..54 } else { 26..34 };
                let length = if tso {
                    0
                } else {
                    (l4_len + payload.len()) as u16
                };
                let pseudo = [&bytes[addresses], &[0, protocol], &length.to_be_bytes()].concat();
                let at = l4 + if udp { 6 } else { 16 };
                bytes[at..at + 2].copy_from_slice(&(sum(&pseudo) as u16).to_be_bytes());
            }
            let paylen = if tso { payload.len() } else { bytes.len() };
            Packet {
                bytes: Hex(bytes),
                parts,
                data: Data {
                    paylen: paylen as u32,
                    tso,
                    ip_checksum: offload && !v6,
                    l4_checksum: offload,
                    vlan,
                    ..Data::default()
                },
                context: (offload || vlan).then_some(Context {
                    vlan: 0x6005,
                    mac_len: 14,
                    ip_len,
                    ip: Some(if v6 { IpVersion::V6 } else { IpVersion::V4 }),
                    l4: if udp { L4::Udp } else { L4::Tcp },
                    l4_len: l4_len as u8,
                    mss: if tso { mss } else { 0 },
                    ..Context::default()
                }),
            }
        },
    )
}
