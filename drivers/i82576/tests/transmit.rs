// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Transmit descriptors: the words the kernel's igb driver would write, and round trips.

use i82576::limits::{MAX_IP_LEN, MAX_MAC_LEN, MAX_PAYLEN, MAX_TX_FRAGMENT};
use i82576::tx::{ended, is_done, write_back, Context, Data, IpVersion, L4};
use proptest::prelude::*;

fn words([lo, hi]: [u64; 2]) -> [u32; 4] {
    [lo as u32, (lo >> 32) as u32, hi as u32, (hi >> 32) as u32]
}

fn l4() -> impl Strategy<Value = L4> {
    prop_oneof![Just(L4::Udp), Just(L4::Tcp), Just(L4::Sctp)]
}

/// IP version and header length: a header has at least 20 bytes, none has 0.
fn ip() -> impl Strategy<Value = (Option<IpVersion>, u16)> {
    prop_oneof![
        Just((None, 0)),
        (20..=MAX_IP_LEN).prop_map(|len| (Some(IpVersion::V4), len)),
        (40..=MAX_IP_LEN).prop_map(|len| (Some(IpVersion::V6), len)),
    ]
}

prop_compose! {
    fn context()(
        vlan: u16,
        mac_len in 0..=MAX_MAC_LEN,
        (ip, ip_len) in ip(),
        l4 in l4(),
        l4_len: u8,
        mss: u16,
        queue_index in 0u8..8,
    ) -> Context {
        Context { vlan, mac_len, ip_len, ip, l4, l4_len, mss, queue_index }
    }
}

prop_compose! {
    fn data()(
        address: u64,
        len: u16,
        paylen in 0..=MAX_PAYLEN,
        flags: [bool; 8],
        queue_index in 0u8..8,
    ) -> Data {
        let [end_of_packet, report_status, tso, ip_checksum, l4_checksum, vlan, context, timestamp] =
            flags;
        Data {
            address, len, paylen, end_of_packet, report_status, tso, ip_checksum, l4_checksum,
            vlan, context, timestamp, queue_index,
        }
    }
}

#[test]
fn a_tcp_segmentation_context_is_what_igb_writes() {
    let context = Context {
        vlan: 0,
        mac_len: 14,
        ip_len: 20,
        ip: Some(IpVersion::V4),
        l4: L4::Tcp,
        l4_len: 32,
        mss: 1448,
        queue_index: 0,
    };
    // vlan_macip_lens, seqnum_seed, type_tucmd_mlhl, mss_l4len_idx.
    let expected = [
        14 << 9 | 20,
        0,
        0x2020_0000 | 0x400 | 0x800,
        1448 << 16 | 32 << 8,
    ];
    assert_eq!(words(context.encode()), expected);
}

#[test]
fn a_checksum_context_over_ipv6_with_a_vlan_is_what_igb_writes() {
    let context = Context {
        vlan: 0x6064,
        mac_len: 14,
        ip_len: 40,
        ip: Some(IpVersion::V6),
        l4: L4::Sctp,
        queue_index: 1,
        ..Context::default()
    };
    let expected = [0x6064_0000 | 14 << 9 | 40, 0, 0x2020_0000 | 0x1000, 1 << 4];
    assert_eq!(words(context.encode()), expected);
}

#[test]
fn the_last_descriptor_of_a_segmentation_is_what_igb_writes() {
    let data = Data {
        address: 0x1_2345_6780,
        len: 4096,
        paylen: 65160,
        end_of_packet: true,
        report_status: true,
        tso: true,
        ip_checksum: true,
        l4_checksum: true,
        ..Data::default()
    };
    // cmd_type_len: DEXT, data, IFCS, then EOP, RS and TSE; olinfo_status: PAYLEN, IXSM, TXSM.
    let command = 0x2000_0000 | 0x0030_0000 | 0x0200_0000 | 0x0100_0000 | 0x0800_0000 | 1 << 31;
    let expected = [0x2345_6780, 1, command | 4096, 65160 << 14 | 0x100 | 0x200];
    assert_eq!(words(data.encode()), expected);
}

#[test]
fn a_plain_packet_asks_for_its_frame_check_sequence_and_nothing_else() {
    let data = Data {
        len: 60,
        paylen: 60,
        ..Data::default()
    };
    assert_eq!(words(data.encode()), [0, 0, 0x2230_0000 | 60, 60 << 14]);
}

#[test]
fn each_flag_of_a_data_descriptor_has_its_bit() {
    let plain = Data::default().encode()[1];
    for (name, data, bit) in [
        (
            "EOP",
            Data {
                end_of_packet: true,
                ..Data::default()
            },
            24,
        ),
        (
            "RS",
            Data {
                report_status: true,
                ..Data::default()
            },
            27,
        ),
        (
            "VLE",
            Data {
                vlan: true,
                ..Data::default()
            },
            30,
        ),
        (
            "MAC.TSTAMP",
            Data {
                timestamp: true,
                ..Data::default()
            },
            19,
        ),
        (
            "TSE",
            Data {
                tso: true,
                ..Data::default()
            },
            31,
        ),
        (
            "IDX",
            Data {
                queue_index: 1,
                ..Data::default()
            },
            36,
        ),
        (
            "CC",
            Data {
                context: true,
                ..Data::default()
            },
            39,
        ),
        (
            "IXSM",
            Data {
                ip_checksum: true,
                ..Data::default()
            },
            40,
        ),
        (
            "TXSM",
            Data {
                l4_checksum: true,
                ..Data::default()
            },
            41,
        ),
    ] {
        assert_eq!(data.encode()[1] ^ plain, 1u64 << bit, "{name}");
    }
}

#[test]
fn the_largest_fragment_fits_the_length_field() {
    let len = u16::try_from(MAX_TX_FRAGMENT).expect("MAX_TX_FRAGMENT exceeds 16 bits");
    let data = Data {
        len,
        ..Data::default()
    };
    assert_eq!(data.encode()[1] & 0xffff, u64::from(MAX_TX_FRAGMENT));
}

#[test]
fn a_written_back_descriptor_is_done() {
    assert!(is_done(write_back()));
    // Legacy or advanced, the status word is the upper half of the second quadword.
    assert_eq!(write_back(), 1 << 32);
}

proptest! {
    #[test]
    fn a_context_survives_encoding(context in context()) {
        prop_assert_eq!(Context::decode(context.encode()), Some(context));
    }

    #[test]
    fn a_data_descriptor_survives_encoding(data in data()) {
        prop_assert_eq!(Data::decode(data.encode()), Some(data));
    }

    #[test]
    fn a_descriptor_is_never_taken_for_the_other_kind(context in context(), data in data()) {
        prop_assert_eq!(Context::decode(data.encode()), None);
        prop_assert_eq!(Data::decode(context.encode()), None);
    }

    #[test]
    fn a_data_descriptor_handed_to_the_device_is_not_done(data in data()) {
        prop_assert!(!is_done(data.encode()[1]));
    }

    #[test]
    fn a_context_handed_to_the_device_is_not_done(context in context()) {
        prop_assert!(!is_done(context.encode()[1]));
    }

    #[test]
    fn values_beyond_their_fields_never_spill_into_others(
        context in context(), data in data(), mac_len: u8, ip_len: u16, paylen: u32, index: u8,
    ) {
        let wide = Context {
            mac_len, ip_len, ip: Some(IpVersion::V4), queue_index: index, ..context
        };
        let cut = Context {
            mac_len: mac_len & 0x7f, ip_len: ip_len & 0x1ff, queue_index: index & 7, ..wide
        };
        prop_assert_eq!(Context::decode(wide.encode()), Some(cut));

        let wide = Data { paylen, queue_index: index, ..data };
        let cut = Data { paylen: paylen & 0x3ffff, queue_index: index & 7, ..data };
        prop_assert_eq!(Data::decode(wide.encode()), Some(cut));
    }

    #[test]
    fn a_descriptor_made_the_last_says_so_and_is_the_same_otherwise(data in data()) {
        let last = Data { end_of_packet: true, report_status: true, ..data };
        prop_assert_eq!(ended(data.encode()), last.encode());
    }

    #[test]
    fn decoding_and_encoding_again_gives_the_same_words(lo: u64, hi: u64) {
        // Reserved bits are not kept, so compare from the first decoding on.
        if let Some(context) = Context::decode([lo, hi]) {
            prop_assert_eq!(Context::decode(context.encode()), Some(context));
        }
        // Random words are seldom of a kind; make them data, advanced.
        let hi = hi & !(0xf << 20) | 3 << 20 | 1 << 29;
        let data = Data::decode([lo, hi]);
        prop_assert!(data.is_some());
        prop_assert_eq!(data.and_then(|d| Data::decode(d.encode())), data);
    }
}
