// SPDX-License-Identifier: MIT OR Apache-2.0

//! A guest with two NICs on a wire. The in-tree C driver `igb` carries the traffic, so a failure here
//! is the harness's and not the driver's.

#![allow(dead_code, reason = "no test uses all of it")]

use std::net::SocketAddr;

use protocol::{
    Ns,
    kernel::LoadModule,
    link::{AddAddress, MoveInterface, SetMtu, SetUp, WaitCarrier, WaitInterface},
    traffic::Ping,
};
use vm::{End, Guest, Images, Machine, Wire};

pub(crate) const WIRE: Wire = Wire(0);
const MODULES: [&str; 3] = ["i2c-core", "i2c-algo-bit", "igb"];

/// What to boot. Without it the test fails: it has not shown anything.
pub(crate) fn images() -> Images {
    Images::from_env().expect("something to boot")
}

/// Boots the usual machine.
pub(crate) fn boot(name: &str) -> Guest {
    Machine::new().boot(&images(), name).unwrap()
}

/// Loads igb, puts the peer's NIC into its namespace and gives both ends addresses.
pub(crate) fn bring_up(guest: &Guest, mtu: u32) {
    for name in MODULES {
        let (name, parameters) = (name.to_owned(), String::new());
        guest.call(LoadModule { name, parameters }).unwrap();
    }
    let to_peer = MoveInterface {
        from: Ns::Local,
        interface: interface(guest, End::Peer),
        to: Ns::Peer,
        rename: Some("peer".to_owned()),
    };
    guest.call(to_peer).unwrap();
    let local = interface(guest, End::Local);
    let ends = [(Ns::Local, local.as_str()), (Ns::Peer, "peer")];
    for (end, host) in ends.into_iter().zip(1..) {
        guest.call(SetMtu::on(end, mtu)).unwrap();
        guest.call(SetUp::on(end, true)).unwrap();
        for prefix in [format!("192.0.2.{host}/24"), format!("2001:db8::{host}/64")] {
            let prefix = prefix.parse().unwrap();
            guest.call(AddAddress::on(end, prefix)).unwrap();
        }
    }
    for end in ends {
        guest.call(WaitCarrier::on(end, true, 60_000)).unwrap();
    }
}

pub(crate) fn interface(guest: &Guest, end: End) -> String {
    let wait = WaitInterface {
        ns: Ns::Local,
        mac: WIRE.mac(end),
        timeout_ms: 60_000,
    };
    guest.call(wait).unwrap().name
}

/// Has the local end ping an address.
pub(crate) fn ping(guest: &Guest, to: &str, size: u32) {
    let ping = Ping {
        ns: Ns::Local,
        to: to.parse().unwrap(),
        count: 5,
        size,
        timeout_ms: 60_000,
    };
    let report = guest.call(ping).unwrap();
    let counts = (report.sent, report.received, report.lost);
    assert_eq!(counts, (5, 5, 0), "{report:?}");
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
