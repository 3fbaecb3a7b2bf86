// SPDX-License-Identifier: MIT OR Apache-2.0

//! Offloads, by another implementation of the same protocols.

mod headers;
mod rates;
mod refused;

use etherparse::{
    IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, NetSlice, PacketBuilder, SlicedPacket,
    TcpHeader, TransportSlice, UdpHeader,
};
use i82576::{
    limits::{MAX_PAYLEN, MAX_TSO_HEADER},
    regs::{CTRL, TCTL, VET, ctrl, tctl},
    tx::{Context, Data, IpVersion, L4},
};
use proptest::{collection::vec, prelude::*};

use super::offload::frames;
use crate::nic::{
    checksum::{fold, sum},
    registers::Registers,
    violation::What,
};

const ETHERNET: usize = 14;

fn registers() -> Registers {
    let mut registers = Registers::default();
    registers.set(CTRL, ctrl::VME);
    registers.set(TCTL, tctl::PSP);
    registers.set(VET, 0x8100);
    registers
}

/// A packet as a driver leaves it: with the pseudo header's sum in the checksum field, without a length if it
/// is to be segmented; and its context.
fn packet(version: IpVersion, l4: L4, payload: &[u8], segmented: bool) -> (Vec<u8>, Context) {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]);
    let builder = match version {
        IpVersion::V4 => {
            let mut ip =
                Ipv4Header::new(0, 64, IpNumber::TCP, [192, 0, 2, 1], [192, 0, 2, 2]).unwrap();
            ip.identification = 0xfffe;
            builder.ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
        }
        IpVersion::V6 => {
            let ip = Ipv6Header {
                traffic_class: 0,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: 0,
                next_header: IpNumber::TCP,
                hop_limit: 64,
                source: [1; 16],
                destination: [2; 16],
            };
            builder.ip(etherparse::IpHeaders::Ipv6(ip, Default::default()))
        }
    };
    let mut bytes = Vec::new();
    match l4 {
        L4::Tcp => {
            let mut tcp = TcpHeader::new(1000, 2000, u32::MAX - 100, 500);
            (tcp.fin, tcp.psh, tcp.cwr, tcp.ack) = (true, true, true, true);
            builder.tcp_header(tcp).write(&mut bytes, payload).unwrap();
        }
        _ => builder.udp(1000, 2000).write(&mut bytes, payload).unwrap(),
    }
    let (ip_len, protocol) = match version {
        IpVersion::V4 => (20, 9),
        IpVersion::V6 => (40, 6),
    };
    let at = ETHERNET + ip_len;
    let (l4_len, field) = match l4 {
        L4::Tcp => (20, 16),
        _ => (8, 6),
    };
    let addresses = match version {
        IpVersion::V4 => bytes[ETHERNET + 12..at].to_vec(),
        IpVersion::V6 => bytes[ETHERNET + 8..at].to_vec(),
    };
    let mut pseudo = sum(&addresses);
    pseudo += u64::from(bytes[ETHERNET + protocol]);
    if !segmented {
        pseudo += (bytes.len() - at) as u64;
    }
    bytes[at + field..at + field + 2].copy_from_slice(&fold(pseudo).to_be_bytes());
    if version == IpVersion::V4 {
        // The checksum is the device's to fill in, and where it segments, so is the length.
        bytes[ETHERNET + 10..ETHERNET + 12].fill(0);
    }
    let context = Context {
        vlan: 0x2007,
        mac_len: ETHERNET as u8,
        ip_len: ip_len as u16,
        ip: Some(version),
        l4,
        l4_len,
        ..Context::default()
    };
    (bytes, context)
}

/// Asserts that a frame's checksums are right; returns its payload without padding.
fn verified(frame: &[u8]) -> Vec<u8> {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let (ipv4, ipv6) = match sliced.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            (Some(header), None)
        }
        NetSlice::Ipv6(ip) => (None, Some(ip.header().to_header())),
        other => panic!("{other:?}"),
    };
    match sliced.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let (header, payload) = (tcp.to_header(), tcp.payload());
            let right = match (&ipv4, &ipv6) {
                (Some(ip), _) => header.calc_checksum_ipv4(ip, payload),
                (_, Some(ip)) => header.calc_checksum_ipv6(ip, payload),
                _ => unreachable!(),
            };
            assert_eq!(right.unwrap(), header.checksum);
            payload.to_vec()
        }
        TransportSlice::Udp(udp) => {
            let (header, payload): (UdpHeader, _) = (udp.to_header(), udp.payload());
            let right = match (&ipv4, &ipv6) {
                (Some(ip), _) => header.calc_checksum_ipv4(ip, payload),
                (_, Some(ip)) => header.calc_checksum_ipv6(ip, payload),
                _ => unreachable!(),
            };
            assert_eq!(right.unwrap(), header.checksum);
            payload.to_vec()
        }
        other => panic!("{other:?}"),
    }
}

/// The descriptor of a packet of so many bytes that takes its checksums.
fn whole(len: usize, version: IpVersion) -> Data {
    Data {
        paylen: len as u32,
        ip_checksum: version == IpVersion::V4,
        l4_checksum: true,
        ..Data::default()
    }
}

/// The descriptor of a packet with so many bytes of payload that is segmented.
fn segmenting(payload: usize, version: IpVersion) -> Data {
    Data {
        tso: true,
        ..whole(payload, version)
    }
}

fn versions() -> impl Strategy<Value = IpVersion> {
    prop_oneof![Just(IpVersion::V4), Just(IpVersion::V6)]
}

fn protocols() -> impl Strategy<Value = L4> {
    prop_oneof![Just(L4::Tcp), Just(L4::Udp)]
}

proptest! {
    #[test]
    fn checksums_are_filled_in(version in versions(), l4 in protocols(), payload in vec(any::<u8>(), 0..3000)) {
        let (bytes, context) = packet(version, l4, &payload, false);
        let sent = frames(&bytes, &whole(bytes.len(), version), Some(&context), &registers()).unwrap();
        prop_assert_eq!(sent.len(), 1);
        prop_assert_eq!(verified(&sent[0]), payload);
    }

    #[test]
    fn segments_are_whole_packets_with_the_payload_in_order(
        version in versions(), l4 in protocols(), payload in vec(any::<u8>(), 1..9000), mss in 1u16..4000,
    ) {
        let mss = mss.max(payload.len() as u16 / 200 + 1);
        let (bytes, context) = packet(version, l4, &payload, true);
        let context = Context { mss, ..context };
        let data = segmenting(payload.len(), version);
        let sent = frames(&bytes, &data, Some(&context), &registers()).unwrap();
        prop_assert_eq!(sent.len(), payload.len().div_ceil(mss.into()));
        let pieces: Vec<_> = sent.iter().map(|frame| verified(frame)).collect();
        prop_assert!(pieces[..pieces.len() - 1].iter().all(|piece| piece.len() == usize::from(mss)));
        prop_assert_eq!(pieces.concat(), payload);
        for (n, frame) in sent.iter().enumerate() {
            let sliced = SlicedPacket::from_ethernet(frame).unwrap();
            let (is_first, is_last) = (n == 0, n + 1 == sent.len());
            if let Some(NetSlice::Ipv4(ip)) = &sliced.net {
                prop_assert_eq!(ip.header().identification(), 0xfffe_u16.wrapping_add(n as u16));
            }
            if let Some(TransportSlice::Tcp(tcp)) = &sliced.transport {
                let sequence = (u32::MAX - 100).wrapping_add(n as u32 * u32::from(mss));
                prop_assert_eq!(tcp.sequence_number(), sequence);
                prop_assert_eq!((tcp.fin(), tcp.psh(), tcp.cwr()), (is_last, is_last, is_first));
                prop_assert!(tcp.ack());
            }
        }
    }

    #[test]
    fn whatever_descriptors_say_nothing_panics(
        bytes in vec(any::<u8>(), 0..400), context in any::<[u64; 2]>(), data in any::<[u64; 2]>(), none in any::<bool>(),
    ) {
        let hi = 1 << 29 | 2 << 20;
        let context = Context::decode([context[0], context[1] & !(0xf << 20) | hi]);
        let data = Data::decode([data[0], data[1] & !(0xf << 20) | 1 << 29 | 3 << 20]).unwrap();
        let _ = frames(&bytes, &data, context.filter(|_| !none).as_ref(), &registers());
    }
}

#[test]
fn a_tag_is_inserted_and_a_short_frame_is_padded() {
    let (bytes, context) = packet(IpVersion::V4, L4::Udp, b"x", false);
    let tagged = Data {
        vlan: true,
        ..whole(bytes.len(), IpVersion::V4)
    };
    let sent = frames(&bytes, &tagged, Some(&context), &registers()).unwrap();
    assert_eq!(sent[0][12..16], [0x81, 0, 0x20, 7]);
    assert_eq!((sent[0].len(), verified(&sent[0])), (60, b"x".to_vec()));
    // Without CTRL.VME it is not.
    let mut off = registers();
    off.set(CTRL, 0);
    let sent = frames(&bytes, &tagged, Some(&context), &off).unwrap();
    assert_eq!(sent[0][12..14], [0x08, 0]);
}

#[test]
fn what_does_not_fit_the_packet_is_refused() {
    let (bytes, context) = packet(IpVersion::V4, L4::Tcp, &[1; 100], true);
    let context = Context { mss: 50, ..context };
    let right = segmenting(100, IpVersion::V4);
    let refused = |data: &Data, context: Option<&Context>| {
        frames(&bytes, data, context, &registers()) == Err(What::Offload)
    };
    assert!(!refused(&right, Some(&context)));
    assert!(refused(&right, None));
    assert!(refused(&segmenting(99, IpVersion::V4), Some(&context)));
    assert!(refused(
        &segmenting(MAX_PAYLEN as usize, IpVersion::V4),
        Some(&context)
    ));
    for wrong in [
        Context { mss: 0, ..context },
        Context {
            l4_len: 0,
            ..context
        },
        Context {
            ip_len: MAX_TSO_HEADER - 1,
            ..context
        },
        Context {
            l4: L4::Sctp,
            ..context
        },
        Context {
            ip: None,
            ..context
        },
    ] {
        assert!(refused(&right, Some(&wrong)), "{wrong:?}");
    }
}
