// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names and addresses of the emulated NICs.

use protocol::net::Mac;

/// One wire with a NIC at each end: two `igb` on one hub.
///
/// Frames cross it without host I/O, inside QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wire(pub u8);

/// One of the two ends of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The NIC under test.
    Local,
    /// The NIC that it talks to.
    Peer,
}

impl Wire {
    /// The Ethernet address of a NIC: `52:54:00:00:<wire>:01` locally, `…:02` at the peer.
    #[must_use]
    pub const fn mac(self, end: End) -> Mac {
        Mac([0x52, 0x54, 0, 0, self.0, end.number()])
    }

    /// The NIC's name in QEMU, `nic<wire>-<end>`.
    pub(crate) fn nic(self, end: End) -> String {
        format!("nic{}-{}", self.0, end.number())
    }

    /// The name of its back end in QEMU, `net<wire>-<end>`.
    pub(crate) fn netdev(self, end: End) -> String {
        format!("net{}-{}", self.0, end.number())
    }

    /// The port that it is behind: those of wires come first, in their order.
    pub(crate) fn port(self, end: End) -> String {
        format!("port{}", 2 * self.0 + end.number() - 1)
    }

    /// File name of the capture of what crosses the wire.
    pub(crate) fn pcap(self) -> String {
        format!("wire{}.pcap", self.0)
    }
}

impl End {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::Local, Self::Peer];

    /// Counted from 0.
    pub(crate) const fn index(self) -> u8 {
        match self {
            Self::Local => 0,
            Self::Peer => 1,
        }
    }

    const fn number(self) -> u8 {
        self.index() + 1
    }
}
