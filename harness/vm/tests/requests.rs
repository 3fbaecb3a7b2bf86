// SPDX-License-Identifier: MIT OR Apache-2.0

//! What a guest does when asked, and how it says no.

mod common;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use common::{WIRE, address, boot, bring_up, images};
use protocol::{
    Ns, TcpSink,
    agent::Hello,
    ethtool::{GetFeatures, SetFeatures},
    kernel::{ListModules, ReadFile, UnloadModule},
    link::{AddNeighbour, ListInterfaces, SetUp, WaitInterface},
};
use vm::{End, Error, Machine, Wire};

#[test]
fn a_guest_boots_answers_and_powers_off() {
    let guest = boot("boots");
    let info = guest.call(Hello {}).unwrap();
    assert_eq!(&info, guest.info());
    assert_eq!(info.cpus, 2);
    let path = "/proc/sys/net/ipv4/ping_group_range".to_owned();
    for ns in [Ns::Local, Ns::Peer] {
        let text = guest.call(ReadFile::new(ns, &path)).unwrap();
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
fn the_kernel_says_why_it_refuses() {
    let guest = boot("refusals");
    let errno = |error: Error| error.errno();
    let path = "/proc/no-such-file".to_owned();
    let missing = guest.call(ReadFile::new(Ns::Local, path)).unwrap_err();
    assert!(
        missing.to_string().contains("/proc/no-such-file"),
        "{missing}"
    );
    assert_eq!(errno(missing), Some(2));
    let (ns, interface) = (Ns::Peer, "eth7".to_owned());
    let missing = guest.call(SetUp::on((ns, &interface), true)).unwrap_err();
    assert_eq!(errno(missing), Some(19));
    // Before there is an address, a kernel with routing rules takes any for one to broadcast to.
    let lo = SetUp::on((Ns::Local, "lo"), true);
    guest.call(lo).unwrap();
    let listen = address("192.0.2.1:5000");
    let sink = |listen| TcpSink {
        ns: Ns::Local,
        listen,
        seed: 0,
    };
    let no_address = guest.start(sink(listen)).unwrap_err();
    assert_eq!(errno(no_address), Some(99));
    let port_taken = sink(address("0.0.0.0:5000"));
    let holder = guest.start(port_taken.clone()).unwrap();
    assert_eq!(errno(guest.start(port_taken).unwrap_err()), Some(98));
    holder.stop().unwrap();
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
    let machine = Machine::new().wire_count(2);
    let guest = machine.boot(&images(), "modules").unwrap();
    bring_up(&guest, 1500);
    let unload = |name: &str| guest.call(UnloadModule::new(name));
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
            .call(GetFeatures::on((Ns::Local, &interface)))
            .unwrap()
    };
    assert!(get().active.iter().any(|name| name == feature));
    let features = BTreeMap::from([(feature.to_owned(), false)]);
    let set = SetFeatures::on((Ns::Local, &interface), features);
    guest.call(set).unwrap();
    assert!(!get().active.iter().any(|name| name == feature));

    let neighbour = AddNeighbour::on(
        (Ns::Local, interface),
        "192.0.2.9".parse().unwrap(),
        Wire(7).mac(End::Peer),
    );
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
fn the_guests_clock_keeps_the_hosts_pace_while_the_host_is_busy() {
    let busy = Arc::new(AtomicBool::new(true));
    let processors = thread::available_parallelism().map_or(2, usize::from);
    // While it boots, the kernel decides how fast its clock is.
    let load: Vec<_> = (0..3 * processors)
        .map(|_| {
            let busy = Arc::clone(&busy);
            thread::spawn(move || while busy.load(Ordering::Relaxed) {})
        })
        .collect();
    let guest = boot("clock");
    busy.store(false, Ordering::Relaxed);
    for thread in load {
        thread.join().unwrap();
    }
    // Seconds since boot: whole and two digits.
    let uptime = || {
        let before = Instant::now();
        let path = "/proc/uptime".to_owned();
        let text = guest.call(ReadFile::new(Ns::Local, path)).unwrap();
        let seconds: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
        (before, seconds, Instant::now())
    };
    let (first, start, _) = uptime();
    thread::sleep(Duration::from_secs(3));
    let (_, end, last) = uptime();
    let host = last.duration_since(first).as_secs_f64();
    let guests = end - start;
    // The guest's reading is between the host's two, so it can seem slower on a busy host, and
    // never faster.
    assert!(guests <= host * 1.02 + 0.02, "{guests} s in {host} s");
    assert!(guests >= 3.0 * 0.98 - 0.02, "{guests} s in {host} s");
    guest.finish().unwrap();
}
