// SPDX-License-Identifier: MIT OR Apache-2.0

//! Traffic between the two ends of the wire, and jobs that carry it.

mod common;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use common::{WIRE, address, boot, bring_up, interface, ping};
use protocol::{
    Command, Event, Ns, TcpSink, TcpSource, UdpSink, UdpSource,
    kernel::ReadFile,
    link::{GetLinkStats, WaitCarrier},
};
use vm::{End, Guest};

/// A source that sends from `ns` without pauses, and without an end unless told otherwise.
fn source(ns: Ns, connect: SocketAddr, seed: u64, chunks: &[u32]) -> TcpSource {
    TcpSource {
        ns,
        bind: None,
        connect,
        seed,
        bytes: None,
        chunks: chunks.to_vec(),
        pause_us: 0,
        hop_by_hop: 0,
    }
}

/// Sends `bytes` from the peer to the local end, or the other way, and checks both reports.
fn transfer(guest: &Guest, sink: (Ns, &str), from: (Ns, &str), bytes: u64, chunks: &[u32]) {
    let seed = bytes;
    let listen = address(sink.1);
    let ns = sink.0;
    let receiver = guest.start(TcpSink { ns, listen, seed }).unwrap();
    let sender = TcpSource {
        bind: Some(address(from.1)),
        bytes: Some(bytes),
        ..source(from.0, listen, seed, chunks)
    };
    let sender = guest.start(sender).unwrap();
    let sent = sender.join().unwrap();
    let received = receiver.join().unwrap();
    assert_eq!(
        (sent.bytes, sent.delivered, &sent.error),
        (bytes, true, &None),
        "{sent:?}"
    );
    assert_eq!(received.bytes, bytes, "{received:?}");
    assert_eq!(
        (received.mismatch, &received.error),
        (None, &None),
        "{received:?}"
    );
    assert!(received.end_of_stream, "{received:?}");
}

#[test]
fn traffic_crosses_the_wire_both_ways_over_both_families() {
    let guest = boot("traffic");
    bring_up(&guest, 1500);
    ping(&guest, "192.0.2.2", 56);
    ping(&guest, "2001:db8::2", 1400);
    let (local, peer) = (Ns::Local, Ns::Peer);
    let odd = [1, 7, 1447, 1449, 65_536, 3];
    transfer(
        &guest,
        (local, "192.0.2.1:5000"),
        (peer, "192.0.2.2:4000"),
        8 << 20,
        &[65_536],
    );
    transfer(
        &guest,
        (peer, "192.0.2.2:5001"),
        (local, "192.0.2.1:4001"),
        1_000_003,
        &odd,
    );
    transfer(
        &guest,
        (local, "[2001:db8::1]:5002"),
        (peer, "[2001:db8::2]:4002"),
        1_000_003,
        &odd,
    );
    transfer(
        &guest,
        (peer, "[2001:db8::2]:5003"),
        (local, "[2001:db8::1]:4003"),
        4 << 20,
        &[65_536],
    );

    let interface = interface(&guest, End::Local);
    let stats = guest.call(GetLinkStats::on((local, interface))).unwrap();
    assert!(
        stats.rx_bytes > 9_000_000,
        "the payload did not cross the wire: {stats:?}"
    );
    let pcap = guest.pcap(WIRE);
    guest.finish().unwrap();
    assert!(
        pcap.metadata().unwrap().len() > 100_000,
        "{} is too small",
        pcap.display()
    );
}

/// Datagrams that sockets of the local end have read.
fn datagrams_read(guest: &Guest) -> u64 {
    let text = guest
        .call(ReadFile::new(Ns::Local, "/proc/thread-self/net/snmp"))
        .unwrap();
    protocol::snmp::value(&text, "Udp", "InDatagrams").unwrap()
}

#[test]
fn numbered_datagrams_arrive_once_each() {
    /// Three descriptors each: they fit the NIC's 256, whenever the guest comes to take them out.
    const PORTION: u64 = 50;

    let guest = boot("datagrams");
    bring_up(&guest, 9000);
    // Only a few datagrams can wait until the neighbour is known.
    ping(&guest, "192.0.2.2", 56);
    for port in 6000..6010 {
        let listen = SocketAddr::new("192.0.2.1".parse().unwrap(), port);
        let seed = port.into();
        let ns = Ns::Local;
        let sink = guest.start(UdpSink { ns, listen, seed }).unwrap();
        let before = datagrams_read(&guest);
        let source = UdpSource {
            ns: Ns::Peer,
            bind: None,
            connect: listen,
            seed,
            datagrams: Some(PORTION),
            size: 8000,
            batch: None,
            pause_us: 1000,
        };
        let sent = guest.start(source).unwrap().join().unwrap();
        assert_eq!((sent.sent, &sent.error), (PORTION, &None));
        // The last was sent, not necessarily received.
        let deadline = Instant::now() + Duration::from_secs(60);
        while datagrams_read(&guest) < before + PORTION && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let received = sink.stop().unwrap();
        assert_eq!(
            (
                received.received,
                received.missing,
                received.corrupt,
                received.duplicates
            ),
            (PORTION, 0, 0, 0)
        );
    }
    guest.finish().unwrap();
}

#[test]
fn a_pulled_cable_is_seen_and_endless_traffic_goes_on_after_it() {
    let guest = boot("cable");
    bring_up(&guest, 1500);
    let listen = address("192.0.2.2:5000");
    let (ns, seed) = (Ns::Peer, 1);
    let sink = guest.start(TcpSink { ns, listen, seed }).unwrap();
    let source = source(Ns::Local, listen, seed, &[10_000]);
    let mut source = guest.start(source).unwrap();
    let before = source.wait_bytes(1).unwrap();
    let carrier = |carrier| {
        guest.set_link(WIRE, End::Local, carrier).unwrap();
        let interface = interface(&guest, End::Local);
        let wait = WaitCarrier::on((Ns::Local, interface), carrier, 60_000);
        guest.call(wait).unwrap();
    };
    carrier(false);
    carrier(true);
    // More than what fits into buffers.
    source.wait_bytes(before + (80 << 20)).unwrap();
    let sent = source.finish().unwrap();
    let received = sink.join().unwrap();
    assert_eq!((received.bytes, received.mismatch), (sent.bytes, None));
    assert!(sent.delivered && received.end_of_stream);
    guest.finish().unwrap();
}

#[test]
fn a_stopped_job_says_how_far_it_came() {
    let guest = boot("stop");
    bring_up(&guest, 1500);
    let listen = address("192.0.2.2:5000");
    let (ns, seed) = (Ns::Peer, 1);
    let idle = guest.start(TcpSink { ns, listen, seed }).unwrap();
    let report = idle.stop().unwrap();
    assert_eq!(
        (report.bytes, report.end_of_stream, report.error),
        (0, false, None)
    );

    let mut sink = guest.start(TcpSink { ns, listen, seed }).unwrap();
    let other = source(Ns::Local, listen, 2, &[1000]);
    let source = guest.start(other).unwrap();
    let connected = sink.wait_event(|event| match event {
        Event::Connected { peer } => Some(peer),
        _ => None,
    });
    assert_eq!(connected.unwrap().ip(), address("192.0.2.1:0").ip());
    sink.wait_bytes(1).unwrap();
    let refused = sink.tell(Command::CloseBinding).unwrap_err();
    assert!(refused.to_string().contains("CloseBinding"), "{refused}");
    let received = sink.stop().unwrap();
    let mismatch = received.mismatch.expect("another seed must not verify");
    assert_eq!(mismatch.offset, 0);
    let sent = source.stop().unwrap();
    assert!(!sent.delivered, "{sent:?}");
    guest.finish().unwrap();
}
