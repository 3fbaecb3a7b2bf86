// SPDX-License-Identifier: MIT OR Apache-2.0

//! What descriptors ask for that makes no sense.

use super::*;
use i82576::limits::{MAX_FRAME, MIN_TX_FRAME};

const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn refusal(bytes: &[u8], data: &Data, context: &Context) -> Option<What> {
    frames(bytes, data, Some(context), &registers()).err()
}

#[test]
fn segments_without_the_checksums_that_they_need_are_refused() {
    for version in BOTH {
        let (bytes, context) = packet(version, L4::Tcp, &[1; 100], true);
        let context = Context { mss: 50, ..context };
        let right = segmenting(100, version);
        assert_eq!(refusal(&bytes, &right, &context), None);
        let no_l4 = Data {
            l4_checksum: false,
            ..right
        };
        assert_eq!(refusal(&bytes, &no_l4, &context), Some(What::Offload));
        let no_ip = Data {
            ip_checksum: !right.ip_checksum,
            ..right
        };
        assert_eq!(refusal(&bytes, &no_ip, &context), Some(What::Offload));
    }
}

#[test]
fn segments_of_nothing_are_refused() {
    let (bytes, context) = packet(IpVersion::V4, L4::Tcp, b"", true);
    let context = Context { mss: 50, ..context };
    let data = segmenting(0, IpVersion::V4);
    assert_eq!(refusal(&bytes, &data, &context), Some(What::Offload));
}

#[test]
fn a_length_that_is_not_that_of_the_packet_is_refused() {
    let (bytes, context) = packet(IpVersion::V4, L4::Udp, &[1; 100], false);
    for (off, wrong) in [(0, false), (1, true), (-1, true), (-42, true)] {
        let len = bytes.len().checked_add_signed(off).unwrap();
        let plain = Data {
            paylen: len as u32,
            ..Data::default()
        };
        for data in [plain, whole(len, IpVersion::V4)] {
            let expected = wrong.then_some(What::Offload);
            assert_eq!(refusal(&bytes, &data, &context), expected, "{off}");
        }
    }
}

#[test]
fn headers_too_short_for_what_is_written_into_them_are_refused() {
    for version in BOTH {
        for (l4, shortest) in [(L4::Tcp, 20), (L4::Udp, 8)] {
            let (bytes, context) = packet(version, l4, b"", false);
            let data = whole(bytes.len(), version);
            assert_eq!(refusal(&bytes, &data, &context), None);
            let wrong = [
                Context {
                    mac_len: 13,
                    ..context
                },
                Context {
                    ip_len: 19,
                    ..context
                },
                Context {
                    ip: None,
                    ..context
                },
            ];
            for context in &wrong {
                let refused = refusal(&bytes, &data, context);
                assert_eq!(refused, Some(What::Offload), "{context:?}");
            }
            // The transport header is cut short, or not there.
            for missing in 1..=shortest {
                let cut = &bytes[..bytes.len() - missing];
                let data = whole(cut.len(), version);
                let refused = refusal(cut, &data, &context);
                assert_eq!(refused, Some(What::Offload), "{missing}");
            }
        }
    }
}

#[test]
fn an_ipv4_checksum_in_an_ipv6_packet_is_refused() {
    let (bytes, context) = packet(IpVersion::V6, L4::Udp, &[1; 100], false);
    let data = Data {
        ip_checksum: true,
        ..whole(bytes.len(), IpVersion::V6)
    };
    assert_eq!(refusal(&bytes, &data, &context), Some(What::Offload));
}

#[test]
fn frames_shorter_than_the_device_pads_and_longer_than_it_sends_are_refused() {
    let (min, max) = (MIN_TX_FRAME as usize, MAX_FRAME as usize);
    for (len, expected) in [
        (min - 1, Some(What::Offload)),
        (min, None),
        (max, None),
        (max + 1, Some(What::TooLong)),
    ] {
        let data = Data {
            paylen: len as u32,
            ..Data::default()
        };
        let refused = refusal(&vec![2; len], &data, &Context::default());
        assert_eq!(refused, expected, "{len}");
    }
    let (bytes, context) = packet(IpVersion::V4, L4::Tcp, &[1; 20_000], true);
    let data = segmenting(20_000, IpVersion::V4);
    for (mss, expected) in [(9000, None), (9700, Some(What::TooLong))] {
        let context = Context { mss, ..context };
        assert_eq!(refusal(&bytes, &data, &context), expected, "{mss}");
    }
}

#[test]
fn headers_longer_than_the_device_keeps_are_refused() {
    for (ip_len, expected) in [(478, None), (479, Some(What::Offload))] {
        let context = Context {
            mac_len: ETHERNET as u8,
            ip_len,
            ip: Some(IpVersion::V6),
            l4: L4::Tcp,
            l4_len: 20,
            mss: 10,
            ..Context::default()
        };
        let bytes = vec![0; ETHERNET + usize::from(ip_len) + 20 + 30];
        let data = segmenting(30, IpVersion::V6);
        assert_eq!(refusal(&bytes, &data, &context), expected, "{ip_len}");
    }
}

#[test]
fn a_tag_without_a_context_is_refused() {
    let data = Data {
        paylen: 100,
        vlan: true,
        ..Data::default()
    };
    let sent = frames(&[0; 100], &data, None, &registers());
    assert_eq!(sent, Err(What::Offload));
}

prop_compose! {
    /// Lengths around those that headers have: arbitrary bits are hardly ever segmented.
    fn contexts()(
        mac_len in 12u8..20, ip_len in 18u16..44, l4_len in 6u8..30, mss in 0u16..60, v4: bool,
        l4 in prop_oneof![protocols(), Just(L4::Sctp)], vlan: u16,
    ) -> Context {
        let version = if v4 { IpVersion::V4 } else { IpVersion::V6 };
        Context { vlan, mac_len, ip_len, ip: Some(version), l4, l4_len, mss, queue_index: 0 }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_nearly_makes_sense_does_not_panic_either_and_its_payload_is_all_sent(
        bytes in vec(any::<u8>(), 40..300), context in contexts(), tso: bool, vlan: bool,
        l4_checksum in prop::bool::weighted(0.9), wrong_ip_checksum in prop::bool::weighted(0.1),
        too_much in prop_oneof![9 => Just(0), 1 => Just(1)],
    ) {
        let headers = usize::from(context.mac_len) + usize::from(context.ip_len) + usize::from(context.l4_len);
        let behind = if tso { headers } else { 0 };
        let data = Data {
            paylen: (bytes.len().saturating_sub(behind) + too_much) as u32,
            tso,
            ip_checksum: (context.ip == Some(IpVersion::V4)) != wrong_ip_checksum,
            l4_checksum,
            vlan,
            ..Data::default()
        };
        // Without padding, to see the payload's end.
        let mut unpadded = registers();
        unpadded.set(TCTL, 0);
        let sent = frames(&bytes, &data, Some(&context), &unpadded);
        if let (Ok(sent), true) = (&sent, tso) {
            let skip = headers + if data.vlan { 4 } else { 0 };
            let payload: Vec<u8> = sent.iter().flat_map(|frame| frame[skip..].to_vec()).collect();
            prop_assert_eq!(payload, &bytes[headers..]);
            prop_assert!(sent.iter().all(|frame| frame.len() > skip));
        }
        if let (Ok(sent), false) = (&sent, tso) {
            prop_assert_eq!(sent.len(), 1);
        }
    }
}
