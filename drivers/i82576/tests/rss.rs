// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The Toeplitz hash against Microsoft's published verification suite ("Verifying the RSS Hash
//! Calculation"), and the packing of key and table.

use std::net::{Ipv4Addr, Ipv6Addr};

use i82576::rss::{
    ipv4_pair, ipv4_tuple, ipv6_pair, ipv6_tuple, toeplitz, Flow, HashFields, Hashed,
    IndirectionTable, Key, TABLE_SIZE,
};
use proptest::prelude::*;

/// The suite's key.
const KEY: Key = Key::new([
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
]);

/// Destination and source as address and port, hash without and with TCP ports.
type Row = ((&'static str, u16), (&'static str, u16), u32, u32);

const IPV4: [Row; 5] = [
    (
        ("161.142.100.80", 1766),
        ("66.9.149.187", 2794),
        0x323e8fc2,
        0x51ccc178,
    ),
    (
        ("65.69.140.83", 4739),
        ("199.92.111.2", 14230),
        0xd718262a,
        0xc626b0ea,
    ),
    (
        ("12.22.207.184", 38024),
        ("24.19.198.95", 12898),
        0xd2d0a5de,
        0x5c2b394a,
    ),
    (
        ("209.142.163.6", 2217),
        ("38.27.205.30", 48228),
        0x82989176,
        0xafc7327f,
    ),
    (
        ("202.188.127.2", 1303),
        ("153.39.163.191", 44251),
        0x5d1809c5,
        0x10e828a2,
    ),
];

const IPV6: [Row; 3] = [
    (
        ("3ffe:2501:200:3::1", 1766),
        ("3ffe:2501:200:1fff::7", 2794),
        0x2cc18cd5,
        0x40207d3d,
    ),
    (
        ("ff02::1", 4739),
        ("3ffe:501:8::260:97ff:fe40:efab", 14230),
        0x0f0c461c,
        0xdde51bbf,
    ),
    (
        ("fe80::200:f8ff:fe21:67cf", 38024),
        ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251),
        0x4b61e985,
        0x02d1feef,
    ),
];

/// The hash from its definition: for each bit of the input that is set, the 32 bits of the key
/// that start there.
fn by_definition(key: &Key, input: &[u8]) -> u32 {
    let bit = |bytes: &[u8], n: usize| bytes.get(n / 8).map_or(0, |b| b >> (7 - n % 8) & 1);
    (0..input.len() * 8)
        .filter(|&n| bit(input, n) == 1)
        .map(|n| (n..n + 32).fold(0, |word, n| word << 1 | u32::from(bit(key.bytes(), n))))
        .fold(0, |hash, word| hash ^ word)
}

#[test]
fn ipv4_hashes_are_those_of_the_verification_suite() {
    for ((destination, to), (source, from), pair, tuple) in IPV4 {
        let parse = |a: &str| a.parse::<Ipv4Addr>().expect("an IPv4 address").octets();
        let (source, destination) = (parse(source), parse(destination));
        let hash = toeplitz(&KEY, &ipv4_pair(source, destination));
        assert_eq!(hash, pair, "{source:?} to {destination:?}: {hash:#010x}");
        let hash = toeplitz(&KEY, &ipv4_tuple(source, destination, (from, to)));
        assert_eq!(
            hash, tuple,
            "{source:?}:{from} to {destination:?}:{to}: {hash:#010x}"
        );
    }
}

#[test]
fn ipv6_hashes_are_those_of_the_verification_suite() {
    for ((destination, to), (source, from), pair, tuple) in IPV6 {
        let parse = |a: &str| a.parse::<Ipv6Addr>().expect("an IPv6 address").octets();
        let (source, destination) = (parse(source), parse(destination));
        let hash = toeplitz(&KEY, &ipv6_pair(source, destination));
        assert_eq!(hash, pair, "{source:?} to {destination:?}: {hash:#010x}");
        let hash = toeplitz(&KEY, &ipv6_tuple(source, destination, (from, to)));
        assert_eq!(
            hash, tuple,
            "{source:?}:{from} to {destination:?}:{to}: {hash:#010x}"
        );
    }
}

#[test]
fn the_first_key_byte_is_the_lowest_of_the_first_register() {
    let registers = KEY.registers();
    assert_eq!(registers[0], 0xda56_5a6d);
    assert_eq!(registers[9], 0xfa01_acbe);
}

#[test]
fn a_spread_table_takes_the_queues_in_turn() {
    let registers = IndirectionTable::spread(4).registers();
    assert_eq!(registers, [0x0302_0100; 32]);
    let table = IndirectionTable::spread(3);
    for hash in 0..TABLE_SIZE {
        assert_eq!(table.queue(hash as u32), (hash % 3) as u8, "hash {hash}");
    }
}

#[test]
fn a_spread_over_no_or_too_many_queues_stays_within_the_device() {
    assert_eq!(IndirectionTable::spread(0), IndirectionTable::spread(1));
    assert_eq!(
        IndirectionTable::spread(u16::MAX),
        IndirectionTable::spread(16)
    );
    assert_eq!(
        IndirectionTable::spread(16).entries().iter().max(),
        Some(&15)
    );
}

#[test]
fn entries_and_queues_that_do_not_exist_are_refused() {
    let mut table = IndirectionTable::spread(2);
    let before = table;
    assert!(!table.set(TABLE_SIZE, 0));
    assert!(!table.set(usize::MAX, 0));
    assert!(!table.set(0, 16));
    assert!(!table.set(0, 255));
    assert_eq!(table, before);
    assert_eq!(table.get(TABLE_SIZE), None);
    assert_eq!(IndirectionTable::new([16; TABLE_SIZE]), None);
}

proptest! {
    #[test]
    fn the_hash_is_its_definition(
        key: [u8; 32],
        tail: [u8; 8],
        input in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = [0; 40];
        bytes[..32].copy_from_slice(&key);
        bytes[32..].copy_from_slice(&tail);
        let key = Key::new(bytes);
        prop_assert_eq!(toeplitz(&key, &input), by_definition(&key, &input));
    }

    #[test]
    fn key_registers_hold_the_key_in_order(key: [u8; 32], tail: [u8; 8]) {
        let mut bytes = [0; 40];
        bytes[..32].copy_from_slice(&key);
        bytes[32..].copy_from_slice(&tail);
        let packed = Key::new(bytes).registers().map(u32::to_le_bytes).concat();
        prop_assert_eq!(packed, bytes.to_vec());
    }

    #[test]
    fn table_registers_hold_the_entries_in_order(
        entries in prop::collection::vec(0u8..16, TABLE_SIZE),
    ) {
        let table = IndirectionTable::new(entries.clone().try_into().unwrap());
        let packed = table.map(|t| t.registers().map(u32::to_le_bytes).concat());
        prop_assert_eq!(packed, Some(entries));
    }

    #[test]
    fn steering_one_entry_moves_its_hashes_and_no_others(
        index in 0..TABLE_SIZE, queue in 0u8..16, high: u32, other in 1..TABLE_SIZE,
    ) {
        let before = IndirectionTable::spread(16);
        let mut after = before;
        prop_assert!(after.set(index, queue));
        prop_assert_eq!(after.get(index), Some(queue));
        let hash = |low: usize| high << 7 | (low % TABLE_SIZE) as u32;
        prop_assert_eq!(after.queue(hash(index)), queue);
        let untouched = hash(index + other);
        prop_assert_eq!(after.queue(untouched), before.queue(untouched));
    }
}

const FLOWS: [Flow; 5] = [Flow::Tcp4, Flow::Tcp6, Flow::Udp4, Flow::Udp6, Flow::Other];

const HASHED: [Hashed; 3] = [
    Hashed::Nothing,
    Hashed::Addresses,
    Hashed::AddressesAndPorts,
];

#[test]
fn hash_fields_are_the_bits_that_the_datasheet_gives_them() {
    assert_eq!(HashFields::TCP.mrqc(), 2 | 1 << 16 | 1 << 18 | 1 << 21);
    assert_eq!(HashFields::ALL.mrqc(), 2 | 0x1ff << 16);
    let no_udp = HashFields {
        udp4: false,
        udp6: false,
        ..HashFields::ALL
    };
    assert_eq!(no_udp.mrqc(), 2 | 0x3f << 16);
}

#[test]
fn a_flow_without_its_ports_is_hashed_as_other_packets_are() {
    for flow in FLOWS {
        for hashed in HASHED {
            for fields in [HashFields::ALL, HashFields::TCP] {
                let others = fields.of(Flow::Other);
                let possible =
                    hashed == others || hashed == Hashed::AddressesAndPorts && flow != Flow::Other;
                let changed = fields.with(flow, hashed);
                assert_eq!(
                    changed.is_some(),
                    possible,
                    "{flow:?} {hashed:?} {fields:?}"
                );
                let Some(changed) = changed else { continue };
                for other in FLOWS {
                    let wanted = if other == flow {
                        hashed
                    } else {
                        fields.of(other)
                    };
                    assert_eq!(changed.of(other), wanted);
                }
            }
        }
    }
}
