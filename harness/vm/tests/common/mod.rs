// SPDX-License-Identifier: MIT OR Apache-2.0

//! A guest with two NICs on a wire. The in-tree C driver `igb` carries the traffic, so a failure here
//! is the harness's and not the driver's.

#![allow(dead_code, reason = "no test uses all of it")]

use std::net::SocketAddr;

use protocol::{
    Ns,
    kernel::LoadModule,
    link::{AddAddress, MoveInterface, SetMtu, SetUp, WaitCarrier, WaitInterface},
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
        guest.call(SetMtu::on((ns, name()), mtu)).unwrap();
        guest.call(SetUp::on((ns, name()), true)).unwrap();
        for prefix in [format!("192.0.2.{host}/24"), format!("2001:db8::{host}/64")] {
            let prefix = prefix.parse().unwrap();
            guest.call(AddAddress::on((ns, name()), prefix)).unwrap();
        }
    }
    for (ns, interface) in [(Ns::Local, local.as_str()), (Ns::Peer, "peer")] {
        let interface = interface.to_owned();
        let timeout_ms = 60_000;
        guest
            .call(WaitCarrier::on((ns, interface), true, timeout_ms))
            .unwrap();
    }
}

pub(crate) fn interface(guest: &Guest, end: End) -> String {
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

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
