// SPDX-License-Identifier: GPL-2.0 OR MIT

//! From a frame's headers and lengths to descriptors, against the wire that they must produce.

use i82576::limits::{MAX_IP_LEN, MAX_MAC_LEN, MAX_PAYLEN, MAX_TSO_HEADER, MAX_TX_FRAGMENT};
use i82576::offload::{l4_by_checksum_offset, Headers, Offload, Piece, Pieces, Segmentation};
use i82576::tx::{Context, Data, IpVersion, L4};
use proptest::prelude::*;

const ETHERNET: u32 = 14;

/// TCP with timestamps over IPv4 without options.
const TCP4: Headers = Headers {
    network: ETHERNET,
    transport: ETHERNET + 20,
    l4_len: 32,
    ip: IpVersion::V4,
    l4: L4::Tcp,
};

/// UDP over IPv6.
const UDP6: Headers = Headers {
    network: ETHERNET,
    transport: ETHERNET + 40,
    l4_len: 8,
    ip: IpVersion::V6,
    l4: L4::Udp,
};

fn segmented(mss: u16, segments: u16) -> Option<Segmentation> {
    Some(Segmentation { mss, segments })
}

fn pieces(address: u64, len: u32) -> Vec<Piece> {
    Pieces::new(address, len).collect()
}

prop_compose! {
    /// Headers that the device can segment behind.
    fn tcp()(
        network in ETHERNET..=30,
        ip_len in 20u32..=400,
        l4_len in 20u32..=60,
        v4: bool,
    ) -> Headers {
        Headers {
            network,
            transport: network + ip_len,
            l4_len,
            ip: if v4 { IpVersion::V4 } else { IpVersion::V6 },
            l4: L4::Tcp,
        }
    }
}

prop_compose! {
    /// Any headers, most of them on either side of a bound.
    fn any_headers()(
        network in 0u32..200,
        transport in 0u32..900,
        l4_len in 0u32..300,
        v4: bool,
        tcp: bool,
    ) -> Headers {
        Headers {
            network,
            transport,
            l4_len,
            ip: if v4 { IpVersion::V4 } else { IpVersion::V6 },
            l4: if tcp { L4::Tcp } else { L4::Udp },
        }
    }
}

#[test]
fn the_place_of_the_checksum_tells_the_transport_protocol() {
    for offset in 0..100 {
        let expected = match offset {
            16 => Some(L4::Tcp),
            6 => Some(L4::Udp),
            _ => None,
        };
        assert_eq!(l4_by_checksum_offset(offset), expected, "{offset}");
    }
}

#[test]
fn a_frame_without_offloads_is_sent_as_it_is() {
    let plain = Offload::NONE;
    assert_eq!(plain.context(), None);
    assert_eq!((plain.packets(), plain.wire_len(60)), (1, 60));
    assert_eq!(plain.paylen(60), Some(60));
    let data = plain.data(pieces(0x1000, 60)[0], 60, true);
    let expected = Data {
        address: 0x1000,
        len: 60,
        paylen: 60,
        end_of_packet: true,
        report_status: true,
        ..Data::default()
    };
    assert_eq!(data, expected);
}

#[test]
fn a_vlan_tag_takes_a_context_and_leaves_other_offloads_as_they_are() {
    let tag = 0x6123;
    let alone = Offload::NONE.with_vlan(tag, ETHERNET).expect("it fits");
    let expected = Context {
        vlan: tag,
        mac_len: 14,
        ..Context::default()
    };
    assert_eq!(alone.context(), Some(&expected));
    assert!(!alone.checksums() && !alone.segments());
    let data = alone.data(pieces(0x1000, 60)[0], 60, true);
    assert!(data.vlan && !data.l4_checksum && !data.tso && !data.ip_checksum);

    for (headers, segmentation) in [(&UDP6, None), (&TCP4, segmented(1448, 3))] {
        let plain = Offload::new(headers, segmentation).expect("the device can");
        let tagged = plain.with_vlan(tag, headers.network).expect("it fits");
        let expected = plain.context().map(|context| Context {
            vlan: tag,
            ..*context
        });
        assert_eq!(tagged.context(), expected.as_ref());
        let piece = pieces(0x1000, 60)[0];
        let expected = Data {
            vlan: true,
            ..plain.data(piece, 60, true)
        };
        assert_eq!(tagged.data(piece, 60, true), expected);
    }

    let longest = u32::from(MAX_MAC_LEN);
    assert!(Offload::NONE.with_vlan(tag, longest).is_some());
    assert_eq!(Offload::NONE.with_vlan(tag, longest + 1), None);
}

#[test]
fn a_timestamp_takes_no_context_and_leaves_other_offloads_as_they_are() {
    let piece = pieces(0x1000, 60)[0];
    assert_eq!(Offload::NONE.with_timestamp().context(), None);

    for plain in [
        Offload::NONE,
        Offload::new(&TCP4, segmented(1448, 3)).expect("the device can"),
    ] {
        assert_eq!(plain.with_timestamp().context(), plain.context());
        let expected = Data {
            timestamp: true,
            ..plain.data(piece, 60, true)
        };
        assert_eq!(plain.with_timestamp().data(piece, 60, true), expected);
    }
}

#[test]
fn a_checksum_is_asked_for_with_the_places_of_the_headers() {
    let offload = Offload::new(&UDP6, None).expect("the device can");
    let expected = Context {
        mac_len: 14,
        ip_len: 40,
        ip: Some(IpVersion::V6),
        l4: L4::Udp,
        l4_len: 8,
        ..Context::default()
    };
    assert_eq!(offload.context(), Some(&expected));
    assert!(offload.checksums() && !offload.segments());
    // PAYLEN counts the headers: no segment repeats them.
    assert_eq!(offload.paylen(1062), Some(1062));
    assert_eq!(offload.wire_len(1062), 1062);
    let data = offload.data(pieces(0, 1062)[0], 1062, true);
    assert_eq!(
        (data.l4_checksum, data.ip_checksum, data.tso),
        (true, false, false)
    );
}

#[test]
fn a_checksum_alone_leaves_the_ipv4_header_to_the_core() {
    let offload = Offload::new(&TCP4, None).expect("the device can");
    let data = offload.data(pieces(0, 100)[0], 100, false);
    assert_eq!(
        (data.l4_checksum, data.ip_checksum, data.tso),
        (true, false, false)
    );
    assert_eq!((data.end_of_packet, data.report_status), (false, false));
}

#[test]
fn a_segmentation_is_asked_for_with_its_size_and_both_checksums() {
    let offload = Offload::new(&TCP4, segmented(1448, 45)).expect("the device can");
    let expected = Context {
        mac_len: 14,
        ip_len: 20,
        ip: Some(IpVersion::V4),
        l4: L4::Tcp,
        l4_len: 32,
        mss: 1448,
        queue_index: 1,
        ..Context::default()
    };
    assert_eq!(offload.context(), Some(&expected));
    assert_eq!(offload.packets(), 45);
    // 45 segments carry 65160 bytes; the frame in memory has the headers once, the wire 45 times.
    assert_eq!(offload.paylen(65160 + 66), Some(65160));
    assert_eq!(offload.wire_len(65160 + 66), 65160 + 45 * 66);
    let data = offload.data(pieces(0, 4096)[0], 65160, true);
    assert!(data.tso && data.l4_checksum && data.ip_checksum);
}

#[test]
fn there_is_no_ipv4_checksum_in_segments_over_ipv6() {
    let headers = Headers {
        transport: ETHERNET + 40,
        ip: IpVersion::V6,
        ..TCP4
    };
    let offload = Offload::new(&headers, segmented(1428, 2)).expect("the device can");
    let data = offload.data(pieces(0, 4096)[0], 2000, true);
    assert_eq!(
        (data.tso, data.l4_checksum, data.ip_checksum),
        (true, true, false)
    );
}

#[test]
fn headers_up_to_the_bounds_are_for_the_device_and_longer_ones_are_not() {
    let at = |network: u32, ip_len: u32| Headers {
        network,
        transport: network + ip_len,
        ..UDP6
    };
    let (mac, ip) = (u32::from(MAX_MAC_LEN), u32::from(MAX_IP_LEN));
    assert_eq!((mac, ip), (127, 511), "MACLEN has 7 bits, IPLEN 9");
    for (headers, can) in [
        (at(mac, ip), true),
        (at(mac + 1, ip), false),
        (at(mac, ip + 1), false),
        // A hop-by-hop header of 472 bytes would make 512.
        (at(ETHERNET, 40 + 464), true),
        (at(ETHERNET, 40 + 472), false),
        // The field would hold what is left over.
        (at(ETHERNET, 512 + 40), false),
        (at(ETHERNET, 0), false),
        (
            Headers {
                transport: ETHERNET - 1,
                ..UDP6
            },
            false,
        ),
        (
            Headers {
                l4_len: 256,
                ..UDP6
            },
            false,
        ),
    ] {
        assert_eq!(headers.can_checksum(), can, "{headers:?}");
        assert_eq!(Offload::new(&headers, None).is_some(), can, "{headers:?}");
    }
}

#[test]
fn a_transport_header_is_not_shorter_than_its_protocol_has_it() {
    for (l4, shortest) in [(L4::Udp, 8), (L4::Tcp, 20), (L4::Sctp, 12)] {
        assert_eq!(u32::from(l4.shortest_header()), shortest);
        for (l4_len, can) in [
            (0, false),
            (shortest - 1, false),
            (shortest, true),
            (shortest + 1, true),
        ] {
            let headers = Headers { l4_len, l4, ..TCP4 };
            assert_eq!(Offload::new(&headers, None).is_some(), can, "{headers:?}");
            let segments = Offload::new(&headers, segmented(1000, 2)).is_some();
            assert_eq!(segments, can && l4 != L4::Sctp, "{headers:?}");
        }
    }
}

#[test]
fn headers_too_long_to_repeat_can_still_be_checksummed() {
    let at = |len: u32| Headers {
        transport: len - TCP4.l4_len,
        ..TCP4
    };
    let longest = u32::from(MAX_TSO_HEADER);
    assert!(at(longest).can_segment());
    assert!(Offload::new(&at(longest), segmented(1000, 2)).is_some());

    let longer = at(longest + 1);
    assert!(longer.can_checksum() && !longer.can_segment());
    assert!(Offload::new(&longer, None).is_some());
    assert_eq!(Offload::new(&longer, segmented(1000, 2)), None);
}

#[test]
fn tcp_and_udp_are_segmented_and_into_segments_with_something_in_them() {
    let sctp = Headers {
        l4: L4::Sctp,
        ..UDP6
    };
    assert_eq!(Offload::new(&sctp, segmented(1000, 2)), None);
    let datagrams = Offload::new(&UDP6, segmented(1000, 2)).expect("the device can");
    assert_eq!(datagrams.wire_len(62 + 1500), 2 * 62 + 1500);
    assert_eq!(Offload::new(&TCP4, segmented(0, 2)), None);
    let uncounted = Offload::new(&TCP4, segmented(1000, 0)).expect("the device counts itself");
    assert_eq!((uncounted.packets(), uncounted.wire_len(500)), (1, 500));
}

#[test]
fn a_length_that_paylen_cannot_say_is_refused() {
    let plain = Offload::NONE;
    assert_eq!(plain.paylen(MAX_PAYLEN), Some(MAX_PAYLEN));
    assert_eq!(plain.paylen(MAX_PAYLEN + 1), None);
    let tso = Offload::new(&TCP4, segmented(1448, 2)).expect("the device can");
    assert_eq!(tso.paylen(MAX_PAYLEN + 66), Some(MAX_PAYLEN));
    assert_eq!(tso.paylen(MAX_PAYLEN + 67), None);
    assert_eq!(tso.paylen(66), Some(0));
    assert_eq!(tso.paylen(65), None, "shorter than its own headers");
}

#[test]
fn a_buffer_is_cut_where_a_descriptor_ends() {
    let max = u64::from(MAX_TX_FRAGMENT);
    let lens = |len| -> Vec<u32> {
        let cut = pieces(0, len);
        assert_eq!(
            cut.len() as u32,
            Pieces::count(len),
            "as many as are counted for {len} bytes"
        );
        cut.iter().map(|piece| piece.len.into()).collect()
    };
    assert_eq!(lens(0), [0u32; 0]);
    assert_eq!(lens(1), [1]);
    assert_eq!(lens(MAX_TX_FRAGMENT), [MAX_TX_FRAGMENT]);
    assert_eq!(lens(MAX_TX_FRAGMENT + 1), [MAX_TX_FRAGMENT, 1]);
    assert_eq!(lens(2 * MAX_TX_FRAGMENT), [MAX_TX_FRAGMENT; 2]);
    let cut = pieces(0x10_0000, 2 * MAX_TX_FRAGMENT + 5);
    let places: Vec<_> = cut.iter().map(|piece| piece.address).collect();
    assert_eq!(places, [0x10_0000, 0x10_0000 + max, 0x10_0000 + 2 * max]);
}

proptest! {
    #[test]
    fn pieces_are_the_buffer_from_its_start_to_its_end(
        address in 0..u64::MAX / 2, len in 0u32..=1 << 20,
    ) {
        let cut = pieces(address, len);
        let mut at = address;
        for piece in &cut {
            prop_assert_eq!(piece.address, at, "no gap, no overlap");
            prop_assert!(piece.len > 0 && u32::from(piece.len) <= MAX_TX_FRAGMENT);
            at += u64::from(piece.len);
        }
        prop_assert_eq!(at, address + u64::from(len));
        prop_assert_eq!(cut.len() as u32, Pieces::count(len), "as many as were counted");
    }

    #[test]
    fn the_lengths_of_a_segmented_frame_are_those_of_its_segments(
        headers in tcp(), mss in 1u16..=9000, payload in 1u32..=65536,
    ) {
        let segments = payload.div_ceil(mss.into());
        prop_assume!(segments <= u16::MAX.into());
        let offload = Offload::new(&headers, segmented(mss, segments as u16));
        prop_assert!(offload.is_some(), "{:?}", headers);
        let Some(offload) = offload else { return Ok(()) };
        let frame = headers.len() + payload;

        // What the device sends, segment by segment.
        let mut left = payload;
        let mut wire = 0;
        for _ in 0..offload.packets() {
            let carried = left.min(mss.into());
            prop_assert!(carried > 0, "an empty segment");
            wire += headers.len() + carried;
            left -= carried;
        }
        prop_assert_eq!(left, 0);
        prop_assert_eq!(offload.wire_len(frame), wire);
        prop_assert_eq!(offload.paylen(frame), Some(payload));
    }

    #[test]
    fn paylen_of_a_frame_that_is_not_segmented_is_its_length(headers in tcp(), len in 0u32..=9216) {
        let offload = Offload::new(&headers, None);
        prop_assert_eq!(offload.and_then(|offload| offload.paylen(len)), Some(len));
        prop_assert_eq!(offload.map(|offload| offload.wire_len(len)), Some(len));
    }

    #[test]
    fn what_the_device_takes_fits_its_descriptors_and_says_where_the_headers_are(
        headers in any_headers(), mss in 1u16..=9000,
    ) {
        for segmentation in [None, segmented(mss, 2)] {
            let Some(offload) = Offload::new(&headers, segmentation) else {
                continue;
            };
            let context = offload.context().copied();
            // Nothing was cut to a field's bits.
            prop_assert_eq!(context.and_then(|c| Context::decode(c.encode())), context);
            let Some(context) = context else { continue };
            let transport = u32::from(context.mac_len) + u32::from(context.ip_len);
            prop_assert_eq!(u32::from(context.mac_len), headers.network);
            prop_assert_eq!(transport, headers.transport);
            prop_assert_eq!(u32::from(context.l4_len), headers.l4_len);
            prop_assert_eq!((context.ip, context.l4), (Some(headers.ip), headers.l4));
        }
    }

    #[test]
    fn what_can_be_segmented_can_be_checksummed(headers in any_headers()) {
        prop_assert!(headers.can_checksum() || !headers.can_segment());
        prop_assert_eq!(headers.can_checksum(), Offload::new(&headers, None).is_some());
        prop_assert_eq!(
            headers.can_segment(), Offload::new(&headers, segmented(1000, 2)).is_some(),
        );
    }
}
