// SPDX-License-Identifier: MIT OR Apache-2.0

//! Headers of all shapes: tags in the frame, options, extension headers, SCTP.

use super::*;

/// [`packet`] with `tag` in the frame, as when the kernel has put it there itself.
fn tagged(version: IpVersion, l4: L4, payload: &[u8], segmented: bool) -> (Vec<u8>, Context) {
    let (mut bytes, context) = packet(version, l4, payload, segmented);
    bytes.splice(12..12, [0x81, 0, 0x30, 5]);
    let mac_len = context.mac_len + 4;
    (bytes, Context { mac_len, ..context })
}

/// A packet whose IP header is followed by `extra`: options of IPv4, an extension header of IPv6. That
/// the latter comes first is said by its number, and the former are counted in the header's length.
fn extended(version: IpVersion, payload: &[u8]) -> (Vec<u8>, Context) {
    let (mut bytes, context) = packet(version, L4::Tcp, payload, true);
    let at = ETHERNET + usize::from(context.ip_len);
    match version {
        IpVersion::V4 => {
            bytes.splice(at..at, [1; 8]);
            bytes[ETHERNET] += 2;
        }
        IpVersion::V6 => {
            // Destination options: TCP follows, eight bytes, padded (PadN).
            bytes.splice(at..at, [6, 0, 1, 4, 0, 0, 0, 0]);
            bytes[ETHERNET + 6] = 60;
        }
    }
    let ip_len = context.ip_len + 8;
    (bytes, Context { ip_len, ..context })
}

fn all() -> impl Iterator<Item = (IpVersion, L4)> {
    [IpVersion::V4, IpVersion::V6]
        .into_iter()
        .flat_map(|version| [L4::Tcp, L4::Udp].map(|l4| (version, l4)))
}

#[test]
fn a_tag_in_the_frame_is_repeated_and_another_goes_before_it() {
    for (version, l4) in all() {
        let (bytes, context) = tagged(version, l4, &[7; 250], true);
        let context = Context {
            mss: 100,
            ..context
        };
        for vlan in [false, true] {
            let data = Data {
                vlan,
                ..segmenting(250, version)
            };
            let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
            let lens: Vec<_> = sent.iter().map(|frame| verified(frame).len()).collect();
            assert_eq!(lens, [100, 100, 50], "{version:?} {l4:?}");
            for frame in &sent {
                let inner = if vlan {
                    assert_eq!(frame[12..16], [0x81, 0, 0x20, 7]);
                    16
                } else {
                    12
                };
                assert_eq!(frame[inner..inner + 4], [0x81, 0, 0x30, 5]);
            }
        }
        let (bytes, context) = tagged(version, l4, &[7; 33], false);
        let data = whole(bytes.len(), version);
        let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
        assert_eq!(verified(&sent[0]), [7; 33]);
    }
}

#[test]
fn options_and_extension_headers_are_repeated_and_counted() {
    for version in [IpVersion::V4, IpVersion::V6] {
        let (bytes, context) = extended(version, &[9; 201]);
        let context = Context {
            mss: 100,
            ..context
        };
        let data = segmenting(201, version);
        let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
        let lens: Vec<_> = sent.iter().map(|frame| verified(frame).len()).collect();
        assert_eq!(lens, [100, 100, 1], "{version:?}");
    }
}

#[test]
fn lengths_and_an_ipv4_checksum_that_a_driver_leaves_do_not_count() {
    for (version, l4) in all() {
        for leftover in [0, 0xde] {
            let (mut bytes, context) = packet(version, l4, &[5; 150], true);
            let context = Context {
                mss: 100,
                ..context
            };
            match version {
                IpVersion::V4 => {
                    bytes[ETHERNET + 2..ETHERNET + 4].fill(leftover);
                    bytes[ETHERNET + 10..ETHERNET + 12].fill(leftover);
                }
                IpVersion::V6 => bytes[ETHERNET + 4..ETHERNET + 6].fill(leftover),
            }
            if l4 == L4::Udp {
                let at = ETHERNET + usize::from(context.ip_len);
                bytes[at + 4..at + 6].fill(leftover);
            }
            let data = segmenting(150, version);
            let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
            let lens: Vec<_> = sent.iter().map(|frame| verified(frame).len()).collect();
            assert_eq!(lens, [100, 50], "{version:?} {l4:?}");
        }
    }
}

#[test]
fn a_packet_that_is_one_segment_keeps_its_flags() {
    let (bytes, context) = packet(IpVersion::V4, L4::Tcp, &[1; 100], true);
    let context = Context {
        mss: 100,
        ..context
    };
    let data = segmenting(100, IpVersion::V4);
    let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
    let sliced = SlicedPacket::from_ethernet(&sent[0]).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        panic!("{sliced:?}");
    };
    assert_eq!(
        (sent.len(), tcp.fin(), tcp.psh(), tcp.cwr()),
        (1, true, true, true)
    );
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    for version in [IpVersion::V4, IpVersion::V6] {
        let (mut bytes, context) = packet(version, L4::Udp, &[0; 2], false);
        let data = whole(bytes.len(), version);
        let at = ETHERNET + usize::from(context.ip_len) + 6;
        let plain = frames(&bytes, &data, Some(&context), &registers()).unwrap();
        // With the payload being the checksum, what is summed up becomes all ones.
        let end = bytes.len();
        let (checksum, payload) = (&plain[0][at..at + 2], &mut bytes[end - 2..]);
        payload.copy_from_slice(checksum);
        let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
        assert_eq!(sent[0][at..at + 2], [0xff; 2], "{version:?}");
    }
}

#[test]
fn the_checksum_of_sctp_is_over_all_of_its_packet() {
    let (mut bytes, context) = packet(IpVersion::V6, L4::Udp, b"", false);
    bytes.truncate(ETHERNET + 40);
    bytes[ETHERNET + 6] = 132;
    // Ports, tag, checksum: what it holds does not count. Then a COOKIE ACK chunk.
    let sctp = [
        0x03, 0xe8, 0x07, 0xd0, 0, 0, 0, 1, 0xaa, 0xbb, 0xcc, 0xdd, 11, 0, 0, 4,
    ];
    bytes.extend(sctp);
    let context = Context {
        l4: L4::Sctp,
        ..context
    };
    let data = whole(bytes.len(), IpVersion::V6);
    let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
    // By another program: CRC32c unreflected, in Python.
    assert_eq!(
        sent[0][ETHERNET + 48..ETHERNET + 52],
        [0x18, 0xf4, 0xfb, 0x0e]
    );
    assert_eq!(sent[0][ETHERNET + 52..], sctp[12..]);
}
