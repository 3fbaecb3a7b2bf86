// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a guest promises, on real boots. The in-tree C driver `igb` carries the traffic, so a
//! failure here is the harness's and not the driver's.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use protocol::{
    Command, Event, Ns, TcpSink, TcpSource, UdpSink, UdpSource,
    request::{
        AddAddress, AddNeighbour, GetFeatures, GetLinkStats, Hello, ListInterfaces, ListModules,
        LoadModule, LogLine, MoveInterface, Panic, Ping, ReadFile, SetFeatures, SetMtu, SetUp,
        UnloadModule, WaitCarrier, WaitInterface, WriteFile,
    },
};
use vm::{End, Error, Guest, Images, Machine, Wire};

const WIRE: Wire = Wire(0);
const MODULES: [&str; 3] = ["i2c-core", "i2c-algo-bit", "igb"];

/// A machine, or `None` with a message when there is nothing to boot.
fn machine(name: &str) -> Option<Machine> {
    match Images::from_env() {
        Ok(images) => Some(Machine::new(images, name)),
        Err(error @ Error::NoManifest) => {
            eprintln!("SKIPPED {name}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Loads igb, puts the peer's NIC into its namespace and gives both ends addresses.
fn bring_up(guest: &Guest, mtu: u32) {
    for name in MODULES {
        let parameters = String::new();
        guest
            .call(LoadModule {
                name: name.into(),
                parameters,
            })
            .unwrap();
    }
    let peer = interface(guest, End::Peer);
    let rename = Some("peer".to_owned());
    guest
        .call(MoveInterface {
            from: Ns::Local,
            interface: peer,
            to: Ns::Peer,
            rename,
        })
        .unwrap();
    let local = interface(guest, End::Local);
    for (ns, interface, host) in [(Ns::Local, local.as_str(), 1), (Ns::Peer, "peer", 2)] {
        let name = || interface.to_owned();
        guest
            .call(SetMtu {
                ns,
                interface: name(),
                mtu,
            })
            .unwrap();
        guest
            .call(SetUp {
                ns,
                interface: name(),
                up: true,
            })
            .unwrap();
        for prefix in [format!("192.0.2.{host}/24"), format!("2001:db8::{host}/64")] {
            let prefix = prefix.parse().unwrap();
            guest
                .call(AddAddress {
                    ns,
                    interface: name(),
                    prefix,
                })
                .unwrap();
        }
    }
    for (ns, interface) in [(Ns::Local, local.as_str()), (Ns::Peer, "peer")] {
        let interface = interface.to_owned();
        let timeout_ms = 60_000;
        guest
            .call(WaitCarrier {
                ns,
                interface,
                carrier: true,
                timeout_ms,
            })
            .unwrap();
    }
}

fn interface(guest: &Guest, end: End) -> String {
    let (ns, mac) = (Ns::Local, WIRE.mac(end));
    guest
        .call(WaitInterface {
            ns,
            mac,
            timeout_ms: 60_000,
        })
        .unwrap()
        .name
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ping(guest: &Guest, to: &str, size: u32) {
    let to = to.parse().unwrap();
    let report = guest
        .call(Ping {
            ns: Ns::Local,
            to,
            count: 5,
            size,
            timeout_ms: 10_000,
        })
        .unwrap();
    assert_eq!(
        (report.sent, report.received, report.lost),
        (5, 5, 0),
        "{report:?}"
    );
}

/// Sends `bytes` from the peer to the local end, or the other way, and checks both reports.
fn transfer(guest: &Guest, sink: (Ns, &str), source: (Ns, &str), bytes: u64, chunks: &[u32]) {
    let seed = bytes;
    let listen = address(sink.1);
    let receiver = guest
        .start(TcpSink {
            ns: sink.0,
            listen,
            seed,
        })
        .unwrap();
    let sender = guest
        .start(TcpSource {
            ns: source.0,
            bind: Some(address(source.1)),
            connect: listen,
            seed,
            bytes: Some(bytes),
            chunks: chunks.to_vec(),
            pause_us: 0,
            hop_by_hop: 0,
        })
        .unwrap();
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
fn a_guest_boots_answers_and_powers_off() {
    let Some(machine) = machine("boots") else {
        return;
    };
    let guest = machine.cpus(2).boot().unwrap();
    let info = guest.call(Hello {}).unwrap();
    assert_eq!(&info, guest.info());
    assert_eq!(info.cpus, 2);
    let path = "/proc/sys/net/ipv4/ping_group_range".to_owned();
    for ns in [Ns::Local, Ns::Peer] {
        let text = guest
            .call(ReadFile {
                ns,
                path: path.clone(),
            })
            .unwrap();
        assert_eq!(text.split_whitespace().last(), Some("2147483647"));
    }
    let verdict = guest.finish().unwrap();
    for file in [&verdict.console, &verdict.transcript] {
        assert!(
            file.metadata().unwrap().len() > 0,
            "{} is empty",
            file.display()
        );
    }
}

#[test]
fn traffic_crosses_the_wire_both_ways_over_both_families() {
    let Some(machine) = machine("traffic") else {
        return;
    };
    let guest = machine.boot().unwrap();
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
    let stats = guest
        .call(GetLinkStats {
            ns: local,
            interface,
        })
        .unwrap();
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

#[test]
fn numbered_datagrams_arrive_once_each() {
    let Some(machine) = machine("datagrams") else {
        return;
    };
    let guest = machine.boot().unwrap();
    bring_up(&guest, 9000);
    let listen = address("192.0.2.1:6000");
    let sink = guest
        .start(UdpSink {
            ns: Ns::Local,
            listen,
            seed: 5,
        })
        .unwrap();
    let source = UdpSource {
        ns: Ns::Peer,
        bind: None,
        connect: listen,
        seed: 5,
        datagrams: Some(500),
        size: 8000,
        pause_us: 1000,
    };
    let sent = guest.start(source).unwrap().join().unwrap();
    assert_eq!((sent.sent, &sent.error), (500, &None));
    // The last datagram was sent, not necessarily received.
    std::thread::sleep(Duration::from_millis(500));
    let received = sink.stop().unwrap();
    assert_eq!(received.received + received.missing, 500, "{received:?}");
    assert_eq!(
        (received.missing, received.corrupt, received.duplicates),
        (0, 0, 0)
    );
    guest.finish().unwrap();
}

#[test]
fn a_pulled_cable_is_seen_and_endless_traffic_goes_on_after_it() {
    let Some(machine) = machine("cable") else {
        return;
    };
    let guest = machine.boot().unwrap();
    bring_up(&guest, 1500);
    let listen = address("192.0.2.2:5000");
    let sink = guest
        .start(TcpSink {
            ns: Ns::Peer,
            listen,
            seed: 1,
        })
        .unwrap();
    let mut source = guest
        .start(TcpSource {
            ns: Ns::Local,
            bind: None,
            connect: listen,
            seed: 1,
            bytes: None,
            chunks: vec![10_000],
            pause_us: 0,
            hop_by_hop: 0,
        })
        .unwrap();
    let before = source.wait_bytes(1).unwrap();
    let carrier = |carrier| {
        guest.set_link(WIRE, End::Local, carrier).unwrap();
        let interface = interface(&guest, End::Local);
        let wait = WaitCarrier {
            ns: Ns::Local,
            interface,
            carrier,
            timeout_ms: 60_000,
        };
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
    let Some(machine) = machine("stop") else {
        return;
    };
    let guest = machine.boot().unwrap();
    bring_up(&guest, 1500);
    let listen = address("192.0.2.2:5000");
    let idle = guest
        .start(TcpSink {
            ns: Ns::Peer,
            listen,
            seed: 1,
        })
        .unwrap();
    let report = idle.stop().unwrap();
    assert_eq!(
        (report.bytes, report.end_of_stream, report.error),
        (0, false, None)
    );

    let mut sink = guest
        .start(TcpSink {
            ns: Ns::Peer,
            listen,
            seed: 1,
        })
        .unwrap();
    let source = TcpSource {
        ns: Ns::Local,
        bind: None,
        connect: listen,
        seed: 2,
        bytes: None,
        chunks: vec![1000],
        pause_us: 0,
        hop_by_hop: 0,
    };
    let source = guest.start(source).unwrap();
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

#[test]
fn the_kernel_says_why_it_refuses() {
    let Some(machine) = machine("refusals") else {
        return;
    };
    let guest = machine.boot().unwrap();
    let errno = |error: Error| error.errno();
    let path = "/proc/no-such-file".to_owned();
    let missing = guest
        .call(ReadFile {
            ns: Ns::Local,
            path,
        })
        .unwrap_err();
    assert!(
        missing.to_string().contains("/proc/no-such-file"),
        "{missing}"
    );
    assert_eq!(errno(missing), Some(2));
    let (ns, interface) = (Ns::Peer, "eth7".to_owned());
    let missing = guest
        .call(SetUp {
            ns,
            interface: interface.clone(),
            up: true,
        })
        .unwrap_err();
    assert_eq!(errno(missing), Some(19));
    let listen = address("192.0.2.1:5000");
    let no_address = guest
        .start(TcpSink {
            ns: Ns::Local,
            listen,
            seed: 0,
        })
        .unwrap_err();
    assert_eq!(errno(no_address), Some(99));
    let timeout_ms = 10;
    let waited = guest.call(WaitInterface {
        ns: Ns::Local,
        mac: WIRE.mac(End::Local),
        timeout_ms,
    });
    assert_eq!(errno(waited.unwrap_err()), Some(110));
    guest.finish().unwrap();
}

#[test]
fn modules_load_and_unload_and_devices_follow() {
    let Some(machine) = machine("modules") else {
        return;
    };
    let guest = machine.wire_count(2).boot().unwrap();
    bring_up(&guest, 1500);
    let unload = |name: &str| {
        guest.call(UnloadModule {
            name: name.to_owned(),
        })
    };
    let busy = unload("i2c-core").unwrap_err();
    assert_eq!(busy.errno(), Some(11), "{busy}");
    let modules = guest.call(ListModules {}).unwrap();
    assert_eq!(modules.len(), 3);

    let all = guest.call(ListInterfaces { ns: Ns::Local }).unwrap();
    let igb: Vec<_> = all
        .iter()
        .filter(|i| i.driver.as_deref() == Some("igb"))
        .collect();
    assert_eq!(igb.len(), 3, "four NICs, of which one was moved: {all:?}");
    let interface = igb[0].name.clone();
    let feature = "tx-tcp-segmentation";
    let get = || {
        guest
            .call(GetFeatures {
                ns: Ns::Local,
                interface: interface.clone(),
            })
            .unwrap()
    };
    assert!(get().active.iter().any(|name| name == feature));
    let features = BTreeMap::from([(feature.to_owned(), false)]);
    let set = SetFeatures {
        ns: Ns::Local,
        interface: interface.clone(),
        features,
    };
    guest.call(set).unwrap();
    assert!(!get().active.iter().any(|name| name == feature));

    let neighbour = AddNeighbour {
        ns: Ns::Local,
        interface,
        address: "192.0.2.9".parse().unwrap(),
        mac: Wire(7).mac(End::Peer),
    };
    guest.call(neighbour).unwrap();
    unload("igb").unwrap();
    let left = guest.call(ListInterfaces { ns: Ns::Local }).unwrap();
    assert!(
        left.iter().all(|interface| interface.driver.is_none()),
        "{left:?}"
    );
    guest.finish().unwrap();
}

#[test]
fn a_complaint_of_the_kernel_fails_the_run_unless_it_was_expected() {
    let Some(machine) = machine("complaint") else {
        return;
    };
    let complain = |guest: &Guest| {
        let text = "WARNING: this is only a test".to_owned();
        guest.call(LogLine { text }).unwrap();
    };
    let guest = machine.clone().boot().unwrap();
    complain(&guest);
    let error = guest.finish().unwrap_err();
    assert!(matches!(error, Error::KernelComplained { .. }), "{error}");
    assert!(error.to_string().contains("only a test"), "{error}");

    let guest = machine.clone().boot().unwrap();
    guest.expect_log("only a test");
    complain(&guest);
    assert_eq!(guest.finish().unwrap().allowed.len(), 1);

    let guest = machine.boot().unwrap();
    guest.expect_log("something that never comes");
    let error = guest.finish().unwrap_err();
    assert!(matches!(error, Error::LogLineMissing { .. }), "{error}");
}

#[test]
fn a_kernel_panic_is_called_one() {
    let Some(machine) = machine("panic") else {
        return;
    };
    let guest = machine.boot().unwrap();
    let path = "/proc/sysrq-trigger".to_owned();
    let crash = WriteFile {
        ns: Ns::Local,
        path,
        contents: "c".to_owned(),
    };
    let error = guest.call(crash).unwrap_err();
    assert!(matches!(error, Error::KernelPanic { .. }), "{error}");
    assert!(error.to_string().contains("sysrq"), "{error}");
}

#[test]
fn a_panic_of_the_agent_is_called_one_and_leaves_a_line_in_the_log() {
    let Some(machine) = machine("agent-panic") else {
        return;
    };
    let guest = machine.boot().unwrap();
    let message = "on request".to_owned();
    let error = guest.call(Panic { message }).unwrap_err();
    assert!(matches!(error, Error::AgentPanicked { .. }), "{error}");
    assert!(error.to_string().contains("on request"), "{error}");
    let log = guest.console_text();
    assert!(log.contains("agent panicked"), "{log}");
}

#[test]
fn a_qemu_that_does_not_start_is_quoted() {
    let Some(machine) = machine("bad-argument") else {
        return;
    };
    let error = machine.qemu_argument("-no-such-option").boot().unwrap_err();
    assert!(matches!(error, Error::QemuEnded { .. }), "{error}");
    assert!(error.to_string().contains("no-such-option"), "{error}");
}

#[test]
fn a_guest_that_does_not_answer_is_a_timeout_that_names_the_call() {
    let Some(machine) = machine("silence") else {
        return;
    };
    let guest = machine.boot().unwrap();
    guest.monitor("stop", serde_json::json!({})).unwrap();
    let error = guest
        .call_within(Hello {}, Duration::from_secs(1))
        .unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("Hello"), "{error}");
}
