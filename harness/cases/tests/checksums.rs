// SPDX-License-Identifier: MIT OR Apache-2.0

//! The driver reports checksums correctly: hand-made frames with right and wrong ones.

use std::net::IpAddr;

use cases::{Ability, CaseError, Datagrams, Family, Frame, Result, Station, Testbed};
use protocol::{Memory, Payload, netdev::QueueKind, rings::TcpDataSplit};

const MIB: u64 = 1 << 20;

/// More than the stack verifies at once (include/linux/skbuff.h, CHECKSUM_BREAK).
const PAYLOAD: &[u8] = &[0x5a; 500];

/// Sums over all queues of the NIC under test: checksums that the device found right, and wrong.
fn verdicts(bed: &Testbed) -> Result<[u64; 2]> {
    let sum = |name| -> Result<u64> {
        Ok(bed
            .queue_stats(bed.local, QueueKind::Rx, name)?
            .iter()
            .sum())
    };
    Ok([sum("rx-csum-unnecessary")?, sum("rx-csum-bad")?])
}

/// Resets that the stack sent: it answers each segment that it accepts with one.
fn believed(bed: &Testbed) -> Result<u64> {
    bed.counter(bed.local.ns, "Tcp", "OutRsts")
}

/// Segments that the stack dropped because of their checksum.
fn disbelieved(bed: &Testbed) -> Result<u64> {
    bed.counter(bed.local.ns, "Tcp", "InCsumErrors")
}

#[test]
fn the_stack_drops_tcp_segments_with_a_wrong_checksum_and_takes_right_ones() -> Result {
    let bed = Testbed::options()
        .needs([Ability::HeaderSplit, Ability::QueueStatistics])
        .boot("checksum-tcp")?;
    for split in [TcpDataSplit::Off, TcpDataSplit::On] {
        bed.set_header_split(bed.local, split)?;
        for family in Family::BOTH {
            let segment = || Frame::tcp(bed.peer, bed.local, family, bed.port(), PAYLOAD);
            let (dropped, taken) = (disbelieved(&bed)?, believed(&bed)?);
            let [right, wrong] = verdicts(&bed)?;

            // Frames stay in order only within a queue, so wait for each.
            segment()?.with_wrong_payload().send(&bed)?;
            bed.wait_until(wrong + 1, || Ok(verdicts(&bed)?[1]))?;
            bed.wait_until(dropped + 1, || disbelieved(&bed))?;
            assert_eq!(believed(&bed)?, taken, "{family:?}, split {split:?}");
            segment()?.send(&bed)?;
            bed.wait_until(taken + 1, || believed(&bed))?;

            assert_eq!(
                (verdicts(&bed)?, disbelieved(&bed)?, believed(&bed)?),
                ([right + 1, wrong + 1], dropped + 1, taken + 1),
                "{family:?}, split {split:?}"
            );
        }
    }
    bed.finish()
}

#[test]
fn the_stack_verifies_what_the_device_is_not_asked_to() -> Result {
    let bed = Testbed::options()
        .needs([Ability::RxChecksum])
        .boot("checksum-off")?;
    bed.set_features(bed.local, &[("rx-checksum", false)])?;
    for family in Family::BOTH {
        let segment = || Frame::tcp(bed.peer, bed.local, family, bed.port(), PAYLOAD);
        let (dropped, taken) = (disbelieved(&bed)?, believed(&bed)?);

        segment()?.with_wrong_payload().send(&bed)?;
        bed.wait_until(dropped + 1, || disbelieved(&bed))?;
        segment()?.send(&bed)?;
        bed.wait_until(taken + 1, || believed(&bed))?;
        assert_eq!(
            (disbelieved(&bed)?, believed(&bed)?),
            (dropped + 1, taken + 1)
        );
    }
    bed.finish()
}

#[test]
fn a_datagram_with_a_wrong_checksum_is_not_delivered() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .boot("checksum-udp")?;
    let (seed, number) = (7, 0u64);
    // As a source of datagrams makes them: a number and the seed's payload.
    let mut datagram = number.to_le_bytes().to_vec();
    datagram.resize(datagram.len() + PAYLOAD.len(), 0);
    Payload::new(seed).fill(0, &mut datagram[8..]);

    for (family, protocol) in [(Family::V4, "Udp"), (Family::V4, "Ip")] {
        let datagrams = Datagrams {
            seed,
            ..bed.datagrams(bed.peer, bed.local, family, datagram.len() as u32)
        };
        let sink = datagrams.sink(&bed)?;
        let frame = || Frame::udp(bed.peer, bed.local, family, datagrams.port, &datagram);
        let (bad, counter) = match protocol {
            "Udp" => (frame()?.with_wrong_payload(), "InCsumErrors"),
            _ => (frame()?.with_wrong_ipv4_header(), "InHdrErrors"),
        };
        let errors = bed.counter(bed.local.ns, protocol, counter)?;
        let delivered = bed.counter(bed.local.ns, "Udp", "InDatagrams")?;
        let [_, wrong] = verdicts(&bed)?;

        bad.send(&bed)?;
        bed.wait_until(wrong + 1, || Ok(verdicts(&bed)?[1]))?;
        bed.wait_until(errors + 1, || bed.counter(bed.local.ns, protocol, counter))?;
        frame()?.send(&bed)?;
        bed.wait_until(delivered + 1, || {
            bed.counter(bed.local.ns, "Udp", "InDatagrams")
        })?;
        let report = sink.stop()?;
        assert_eq!(
            (report.received, report.corrupt, report.missing),
            (1, 0, 0),
            "only the right one was delivered: {report:?}"
        );
    }
    bed.finish()
}

/// The source port for which a datagram's computed checksum is 0, so that the device must send its
/// complement: 0 means "none" (RFC 768, RFC 8200 section 8.1).
fn port_of_checksum_zero(
    from: Station,
    to: Station,
    family: Family,
    port: u16,
    datagram: &[u8],
) -> Option<u16> {
    let octets = |station: Station| match station.address(family) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let length = datagram.len() as u32 + 8;
    let words = [octets(from), octets(to), datagram.to_vec()].concat();
    let sum: u32 = words
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)])))
        .sum();
    // Protocol 17, and the length twice: in the pseudo header and in UDP's own.
    let sum = sum + 17 + 2 * length + u32::from(port);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    u16::try_from(0xffff - folded)
        .ok()
        .filter(|&port| port != 0)
}

#[test]
fn a_checksum_that_comes_out_as_zero_is_sent_as_its_complement() -> Result {
    let bed = Testbed::options()
        .needs([Ability::QueueStatistics])
        .needs_counters(["tx_csum"])
        .boot("checksum-zero")?;
    bed.set_features(bed.peer, &[("rx-checksum", false)])?;

    let seed = 7;
    let mut datagram = vec![0; PAYLOAD.len()];
    // As a source of datagrams makes the first: number 0 and the seed's payload.
    Payload::new(seed).fill(0, &mut datagram[8..]);

    for family in Family::BOTH {
        let ports = (0..20).map(|_| bed.port());
        let mut found = ports.filter_map(|port| {
            let source = port_of_checksum_zero(bed.local, bed.peer, family, port, &datagram)?;
            (source > 1024).then_some((port, source))
        });
        let (port, source) = found
            .next()
            .ok_or_else(|| CaseError::new("no port makes the checksum 0"))?;
        let checksums = bed.statistic(bed.local, "tx_csum")?;
        let datagrams = Datagrams {
            port,
            seed,
            bind: Some(bed.local.socket(family, source)),
            ..bed.datagrams(bed.local, bed.peer, family, datagram.len() as u32)
        };
        let mut sink = datagrams.sink(&bed)?;
        let sent = datagrams.source(&bed, Some(1))?;
        assert_eq!(sent.join()?.error, None);
        // Over IPv6 the kernel drops a datagram whose checksum is 0.
        sink.wait_bytes(1)?;
        let report = sink.stop()?;
        assert_eq!(
            (report.received, report.corrupt),
            (1, 0),
            "{family:?} {report:?}"
        );
        assert!(bed.statistic(bed.local, "tx_csum")? > checksums);
    }
    bed.finish()
}

#[test]
fn what_the_device_did_not_verify_is_dropped_and_counted_on_a_bound_queue() -> Result {
    let bed = Testbed::devmem("checksum-bound")?;
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?;
    let unverified = || bed.statistic(bed.local, "rx_unverified_dropped");
    let (dropped, refused) = (unverified()?, disbelieved(&bed)?);
    let rx_dropped = bed.link_stats(bed.local)?.rx_dropped;
    let mut taken = believed(&bed)?;
    let mut bad = 0;

    for family in Family::BOTH {
        let segment = || Frame::tcp(bed.peer, bed.local, family, bed.port(), PAYLOAD);
        let mut wrong = vec![segment()?.with_wrong_payload()];
        if family == Family::V4 {
            wrong.push(segment()?.with_wrong_ipv4_header());
        }
        for frame in wrong {
            bad += 1;
            frame.send(&bed)?;
            bed.wait_until(dropped + bad, unverified)?;
            assert_eq!(believed(&bed)?, taken, "{family:?}");
        }
        taken += 1;
        segment()?.send(&bed)?;
        bed.wait_until(taken, || believed(&bed))?;
    }
    assert_eq!(
        (unverified()?, believed(&bed)?, disbelieved(&bed)?),
        (dropped + bad, taken, refused),
        "the driver dropped the wrong ones, the stack none"
    );
    assert_eq!(bed.link_stats(bed.local)?.rx_dropped, rx_dropped + bad);
    bound.stop()?;
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);
    bed.finish()
}

#[test]
fn the_padding_of_short_frames_is_no_payload_on_a_bound_queue() -> Result {
    let bed = Testbed::devmem("checksum-padding")?;
    let bound = bed.bind(bed.local, 1, Memory::Udmabuf, 4 * MIB)?;
    let bytes = || -> Result<u64> { Ok(bed.queue_stats(bed.local, QueueKind::Rx, "rx-bytes")?[1]) };

    // Headers of 54 bytes, frames of at least 60.
    for payload in [0, 1, 5, 6, 7] {
        let frame = Frame::tcp(
            bed.peer,
            bed.local,
            Family::V4,
            bed.port(),
            &PAYLOAD[..payload],
        )?;
        let (size, before, taken) = (frame.size() as u64, bytes()?, believed(&bed)?);
        assert_eq!(size, 54 + payload as u64);
        frame.send(&bed)?;
        bed.wait_until(taken + 1, || believed(&bed))?;
        bed.wait_until(before + 1, bytes)?;
        assert_eq!(bytes()? - before, size, "{payload} bytes of payload");
    }
    bound.stop()?;
    assert_eq!(bed.net_iovs_left(bed.local)?, 0);
    bed.finish()
}
