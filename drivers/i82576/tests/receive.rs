// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Decoding of receive descriptors, with the split decided by an oracle of its own.

use i82576::rx::{is_done, rx_read, Checksum, Layout, RssType, WriteBack};
use proptest::prelude::*;

// Bits of the status and error word.
const DD: u32 = 1 << 0;
const EOP: u32 = 1 << 1;
const IXSM: u32 = 1 << 2;
const VP: u32 = 1 << 3;
const TS: u32 = 1 << 16;
const UDPCS: u32 = 1 << 4;
const L4CS: u32 = 1 << 5;
const IPCS: u32 = 1 << 6;
const HBO: u32 = 1 << 23;
const L4E: u32 = 1 << 29;
const IPE: u32 = 1 << 30;
const RXE: u32 = 1 << 31;

/// A write-back descriptor, field by field as the kernel's `union e1000_adv_rx_desc` has them.
#[derive(Copy, Clone, Debug, Default)]
struct Fields {
    /// RSS type, packet type.
    pkt_info: u16,
    /// Split header, header length.
    hdr_info: u16,
    rss: u32,
    status_error: u32,
    length: u16,
    vlan: u16,
}

impl Fields {
    fn write_back(self) -> WriteBack {
        let mut bytes = [0; 16];
        bytes[0..2].copy_from_slice(&self.pkt_info.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.hdr_info.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.rss.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.status_error.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.length.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.vlan.to_le_bytes());
        let quadword = |at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        WriteBack::from_raw(quadword(0), quadword(8))
    }
}

fn hdr_info(split: bool, header: u16) -> u16 {
    u16::from(split) << 15 | header << 5
}

prop_compose! {
    fn fields()(
        pkt_info: u16, hdr_info: u16, rss: u32, status_error: u32, length: u16, vlan: u16,
    ) -> Fields {
        Fields { pkt_info, hdr_info, rss, status_error, length, vlan }
    }
}

/// Header lengths: none, TCP over IPv4 and IPv6 with and without timestamps, the header buffer's
/// usual and largest size, the field's largest.
const HEADERS: [u16; 9] = [0, 1, 54, 66, 74, 86, 256, 960, 1023];

/// Payload lengths: none, padding of a short acknowledgement, a shortest frame, a page and its
/// neighbours, the longest frame, the field's largest.
const LENGTHS: [u16; 10] = [0, 1, 6, 60, 708, 4095, 4096, 4097, 9728, 65535];

#[test]
fn every_status_of_a_split_descriptor_is_decoded() {
    let mut seen = [0; 4];
    for bits in 0..16 {
        let split = bits & 1 != 0;
        let overflow = bits & 2 != 0;
        let done = bits & 4 != 0;
        let last = bits & 8 != 0;
        for header in HEADERS {
            for length in LENGTHS {
                let fields = Fields {
                    hdr_info: hdr_info(split, header),
                    status_error: [(overflow, HBO), (done, DD), (last, EOP)]
                        .iter()
                        .fold(0, |word, &(set, bit)| if set { word | bit } else { word }),
                    length,
                    ..Fields::default()
                };
                let (expected, class) = match (split, overflow) {
                    (true, false) => (
                        Layout::Split {
                            header,
                            payload: length,
                        },
                        0,
                    ),
                    (true, true) => (Layout::HeaderOverflow { len: length }, 1),
                    (false, _) if length == 0 && header > 0 => (Layout::HeaderOnly { header }, 2),
                    (false, _) => (Layout::Unsplit { len: length }, 3),
                };
                seen[class] += 1;
                let descriptor = fields.write_back();
                assert_eq!(descriptor.layout(), expected, "{fields:x?}");
                assert_eq!(descriptor.split_header(), split, "{fields:x?}");
                assert_eq!(descriptor.header_buffer_overflow(), overflow, "{fields:x?}");
                assert_eq!(descriptor.done(), done, "{fields:x?}");
                assert_eq!(descriptor.end_of_packet(), last, "{fields:x?}");
            }
        }
    }
    // Every layout was met: 16 statuses by the lengths above.
    assert_eq!(seen, [360, 360, 64, 656]);
}

#[test]
fn a_jumbo_frame_over_three_descriptors_has_one_header_and_all_its_payload() {
    // Seen on the model: 8900 bytes of payload into 4 KiB buffers. The split repeats on every
    // descriptor; only the first one's counts.
    let lengths = [4096, 4096, 708];
    let packet = lengths.map(|length| {
        let last = if length == 708 { EOP } else { 0 };
        Fields {
            hdr_info: hdr_info(true, 66),
            status_error: DD | last,
            length,
            ..Fields::default()
        }
        .write_back()
    });
    assert_eq!(
        packet[0].layout(),
        Layout::Split {
            header: 66,
            payload: 4096
        }
    );
    assert_eq!(packet.map(|d| d.packet_len()), lengths);
    assert_eq!(packet.map(|d| d.end_of_packet()), [false, false, true]);
}

#[test]
fn an_unsplittable_packet_is_unsplit_though_its_header_length_names_the_buffer() {
    // What the model writes for ARP with DESCTYPE 2 and a header buffer of 256 bytes.
    let arp = Fields {
        hdr_info: hdr_info(false, 256),
        status_error: DD | EOP,
        length: 60,
        ..Fields::default()
    };
    assert_eq!(arp.write_back().layout(), Layout::Unsplit { len: 60 });
}

#[test]
fn a_bare_acknowledgement_is_split_with_nothing_in_the_payload_buffer() {
    let ack = Fields {
        hdr_info: hdr_info(true, 66),
        status_error: DD | EOP,
        length: 0,
        ..Fields::default()
    };
    assert_eq!(
        ack.write_back().layout(),
        Layout::Split {
            header: 66,
            payload: 0
        }
    );
}

#[test]
fn every_combination_of_checksum_status_is_judged() {
    let bits = [EOP, IXSM, UDPCS, L4CS, IPCS, L4E, IPE];
    for combination in 0..1u32 << bits.len() {
        let status_error = (0..bits.len())
            .filter(|i| combination >> i & 1 != 0)
            .fold(DD, |word, i| word | bits[i]);
        let has = |bit| status_error & bit != 0;
        let l4 = has(L4CS) || has(UDPCS);
        let expected = if !has(EOP) || has(IXSM) {
            Checksum::None
        } else if (l4 && has(L4E)) || (has(IPCS) && has(IPE)) {
            Checksum::Bad
        } else if l4 && !has(IPE) {
            Checksum::Verified
        } else {
            Checksum::None
        };
        let descriptor = Fields {
            status_error,
            ..Fields::default()
        }
        .write_back();
        assert_eq!(
            descriptor.checksum(),
            expected,
            "status {status_error:#010x}"
        );
    }
}

#[test]
fn checksums_of_the_usual_packets_are_judged() {
    for (packet, status_error, expected) in [
        ("TCP over IPv4", IPCS | L4CS, Checksum::Verified),
        ("TCP over IPv6", L4CS, Checksum::Verified),
        ("UDP over IPv4", IPCS | L4CS | UDPCS, Checksum::Verified),
        ("ICMP over IPv4", IPCS, Checksum::None),
        ("ARP", 0, Checksum::None),
        (
            "TCP with a bad TCP checksum",
            IPCS | L4CS | L4E,
            Checksum::Bad,
        ),
        (
            "TCP with a bad IPv4 checksum",
            IPCS | L4CS | IPE,
            Checksum::Bad,
        ),
        ("ICMP with a bad IPv4 checksum", IPCS | IPE, Checksum::Bad),
    ] {
        let fields = Fields {
            status_error: DD | EOP | status_error,
            ..Fields::default()
        };
        assert_eq!(fields.write_back().checksum(), expected, "{packet}");
    }
}

#[test]
fn damage_to_a_frame_is_seen_and_nothing_else_is_taken_for_it() {
    // CE, SE, SEQ, CXE and RXE of the kernel's igb headers.
    let damage = [1 << 24, 1 << 25, 1 << 26, 1 << 28, RXE];
    for bit in (0..32).map(|n| 1u32 << n) {
        let descriptor = Fields {
            status_error: bit,
            ..Fields::default()
        }
        .write_back();
        assert_eq!(
            descriptor.frame_error(),
            damage.contains(&bit),
            "bit {bit:#010x}"
        );
    }
}

#[test]
fn every_packet_type_is_the_set_of_its_headers() {
    for bits in 0..0x1000u16 {
        let packet = Fields {
            pkt_info: bits << 4 | 0xf,
            ..Fields::default()
        }
        .write_back()
        .packet_type();
        let filter = bits & 0x800 != 0;
        let has = |mask: u16| !filter && bits & mask != 0;
        assert_eq!(packet.bits(), bits);
        assert_eq!(packet.ipv4(), has(0x003), "{bits:#05x}");
        assert_eq!(packet.ipv4_options(), has(0x002), "{bits:#05x}");
        assert_eq!(packet.ipv6(), has(0x00c), "{bits:#05x}");
        assert_eq!(packet.ipv6_extensions(), has(0x008), "{bits:#05x}");
        assert_eq!(packet.tcp(), has(0x010), "{bits:#05x}");
        assert_eq!(packet.udp(), has(0x020), "{bits:#05x}");
        assert_eq!(packet.sctp(), has(0x040), "{bits:#05x}");
        assert_eq!(packet.nfs(), has(0x080), "{bits:#05x}");
        let number = filter.then_some((bits & 7) as u8);
        assert_eq!(packet.ethertype_filter(), number, "{bits:#05x}");
    }
}

#[test]
fn every_rss_type_tells_whether_it_hashed_and_whether_with_ports() {
    let types = [
        (RssType::None, false, false),
        (RssType::Ipv4Tcp, true, true),
        (RssType::Ipv4, true, false),
        (RssType::Ipv6Tcp, true, true),
        (RssType::Ipv6Ex, true, false),
        (RssType::Ipv6, true, false),
        (RssType::Ipv6TcpEx, true, true),
        (RssType::Ipv4Udp, true, true),
        (RssType::Ipv6Udp, true, true),
        (RssType::Ipv6UdpEx, true, true),
    ];
    for value in 0..16u16 {
        let rss_type = Fields {
            pkt_info: 0xfff0 | value,
            ..Fields::default()
        }
        .write_back()
        .rss_type();
        let reserved = (RssType::Reserved, false, false);
        let (expected, hashed, ports) = *types.get(usize::from(value)).unwrap_or(&reserved);
        assert_eq!(rss_type, expected, "type {value}");
        assert_eq!(rss_type.is_hashed(), hashed, "type {value}");
        assert_eq!(rss_type.has_ports(), ports, "type {value}");
    }
}

proptest! {
    #[test]
    fn every_field_is_read_from_its_own_bits(fields in fields()) {
        let descriptor = fields.write_back();
        let status = |bit| fields.status_error & bit != 0;
        prop_assert_eq!(descriptor.packet_type().bits(), fields.pkt_info >> 4);
        prop_assert_eq!(descriptor.header_len(), fields.hdr_info >> 5 & 0x3ff);
        prop_assert_eq!(descriptor.split_header(), fields.hdr_info >> 15 != 0);
        prop_assert_eq!(descriptor.rss_hash(), fields.rss);
        prop_assert_eq!(descriptor.done(), status(DD));
        prop_assert_eq!(descriptor.end_of_packet(), status(EOP));
        prop_assert_eq!(descriptor.header_buffer_overflow(), status(HBO));
        prop_assert_eq!(descriptor.vlan_packet(), status(VP));
        prop_assert_eq!(descriptor.has_timestamp(), status(TS));
        prop_assert_eq!(descriptor.ip_checksum_checked(), status(IPCS) && !status(IXSM));
        prop_assert_eq!(descriptor.l4_checksum_checked(), status(L4CS | UDPCS) && !status(IXSM));
        prop_assert_eq!(descriptor.ip_checksum_error(), status(IPE));
        prop_assert_eq!(descriptor.l4_checksum_error(), status(L4E));
        prop_assert_eq!(descriptor.packet_len(), fields.length);
        prop_assert_eq!(descriptor.vlan_tag(), fields.vlan);
    }

    #[test]
    fn the_layout_depends_on_nothing_but_split_overflow_and_lengths(
        a in fields(), b in fields(),
    ) {
        let b = Fields {
            hdr_info: a.hdr_info & !0x1f | b.hdr_info & 0x1f,
            status_error: a.status_error & HBO | b.status_error & !HBO,
            length: a.length,
            ..b
        };
        prop_assert_eq!(a.write_back().layout(), b.write_back().layout());
    }

    #[test]
    fn a_layout_never_names_more_bytes_than_the_device_wrote(fields in fields()) {
        let descriptor = fields.write_back();
        let (header, payload) = match descriptor.layout() {
            Layout::Split { header, payload } => (header, payload),
            Layout::HeaderOnly { header } => (header, 0),
            Layout::Unsplit { len } | Layout::HeaderOverflow { len } => (0, len),
        };
        prop_assert_eq!(payload, descriptor.packet_len());
        prop_assert!(header == 0 || header == descriptor.header_len());
    }

    #[test]
    fn a_descriptor_handed_to_the_device_is_not_done(payload: u64, header: u64) {
        let [lo, hi] = rx_read(payload, header);
        prop_assert!(!is_done(hi));
        prop_assert_eq!(lo, payload);
        prop_assert_eq!(hi, header & !1);
    }
}
