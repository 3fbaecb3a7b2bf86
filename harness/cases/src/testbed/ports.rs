// SPDX-License-Identifier: MIT OR Apache-2.0

//! A program between two wires: its interfaces.

use protocol::{
    Ns,
    ethtool::SetFeatures,
    link::{MoveInterface, SetMtu, SetUp, WaitCarrier, WaitInterface},
};
use vm::End;

use super::{PATIENCE_MS, Testbed};
use crate::{
    Result,
    station::{FAR_WIRE, WIRE},
};

/// The interfaces of the program that connects two wires, at their other ends.
pub const PORTS: [&str; 2] = ["port0", "port1"];

impl Testbed {
    /// Brings up the NICs of a program between two wires.
    pub(crate) fn set_up_ports(&self) -> Result {
        let macs = [WIRE.mac(End::Peer), FAR_WIRE.mac(End::Local)];
        for (name, mac) in PORTS.into_iter().zip(macs) {
            let found = self.guest.call(WaitInterface {
                ns: Ns::Local,
                mac,
                timeout_ms: PATIENCE_MS,
            })?;
            let interface = || found.name.clone();
            // Do not answer for the namespace's addresses here.
            let sysctl = |family: &str| format!("/proc/sys/net/{family}/conf/{}", found.name);
            self.write_file(sysctl("ipv4") + "/arp_ignore", "8")?;
            self.write_file(sysctl("ipv6") + "/disable_ipv6", "1")?;
            self.guest.call(SetFeatures::on(
                (Ns::Local, interface()),
                [("rx-gro".to_owned(), false)].into(),
            ))?;
            self.guest
                .call(SetMtu::on((Ns::Local, interface()), self.mtu))?;
            self.guest.call(MoveInterface {
                from: Ns::Local,
                interface: interface(),
                to: Ns::Local,
                rename: Some(name.to_owned()),
            })?;
            self.guest.call(SetUp::on((Ns::Local, name), true))?;
            self.guest
                .call(WaitCarrier::on((Ns::Local, name), true, PATIENCE_MS))?;
        }
        Ok(())
    }
}
