// SPDX-License-Identifier: MIT OR Apache-2.0

//! The two ends of the wire.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use protocol::{
    Ns,
    net::{Mac, OnInterface},
};
use vm::{End, Wire};

/// The only wire, unless an XDP program connects two of them, or there is one for control.
pub(crate) const WIRE: Wire = Wire(0);
/// The wire behind that program, or for control.
pub(crate) const FAR_WIRE: Wire = Wire(1);
/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];
}

/// One end of the wire.
#[derive(Debug, Clone, Copy)]
pub struct Station {
    /// Its namespace.
    pub ns: Ns,
    /// Its interface.
    pub interface: &'static str,
    pub(crate) wire: Wire,
    pub(crate) end: End,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

impl Station {
    pub(crate) const LOCAL: Self = Self {
        ns: Ns::Local,
        interface: "nic0",
        wire: WIRE,
        end: End::Local,
        v4: Ipv4Addr::new(192, 0, 2, 1),
        v6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    };
    pub(crate) const PEER: Self = Self {
        ns: Ns::Peer,
        interface: "peer0",
        wire: WIRE,
        end: End::Peer,
        v4: Ipv4Addr::new(192, 0, 2, 2),
        v6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    };

    /// The near end of the control wire ([`crate::Options::control_wire`]).
    pub const CONTROL: Self = Self {
        ns: Ns::Local,
        interface: "ctl0",
        wire: FAR_WIRE,
        end: End::Local,
        v4: Ipv4Addr::new(203, 0, 113, 1),
        v6: Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1),
    };
    /// Its far end.
    pub const CONTROL_PEER: Self = Self {
        ns: Ns::Peer,
        interface: "ctl1",
        wire: FAR_WIRE,
        end: End::Peer,
        v4: Ipv4Addr::new(203, 0, 113, 2),
        v6: Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 2),
    };

    /// The same station on the VLAN that [`crate::Testbed::add_vlan`] makes: its interface there
    /// has addresses of its own.
    #[must_use]
    pub fn on_vlan(self) -> Self {
        let ([.., v4], [.., v6]) = (self.v4.octets(), self.v6.octets());
        Self {
            interface: match self.end {
                End::Local => "vlan0",
                End::Peer => "vlan1",
            },
            v4: Ipv4Addr::new(198, 51, 100, v4),
            v6: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, v6.into()),
            ..self
        }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.v4.into(),
            Family::V6 => self.v6.into(),
        }
    }

    /// Its address with a port.
    #[must_use]
    pub fn socket(&self, family: Family, port: u16) -> SocketAddr {
        (self.address(family), port).into()
    }

    /// Its Ethernet address.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.wire.mac(self.end)
    }

    /// The interface's name, as requests take it.
    #[must_use]
    pub fn name(&self) -> String {
        self.interface.to_owned()
    }
}

impl OnInterface for Station {
    fn ns(&self) -> Ns {
        self.ns
    }

    fn interface(&self) -> &str {
        self.interface
    }
}
