// SPDX-License-Identifier: MIT OR Apache-2.0

//! Interfaces and their addresses.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{
    Ns,
    net::{Mac, Prefix, interface_requests},
};

/// All interfaces of a namespace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListInterfaces {
    /// Which namespace.
    pub ns: Ns,
}

/// A network interface as rtnetlink shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Name within its namespace.
    pub name: String,
    /// Index within its namespace.
    pub index: u32,
    /// Ethernet address; zero for devices without one.
    pub mac: Mac,
    /// Largest packet without the Ethernet header, in bytes.
    pub mtu: u32,
    /// Largest MTU that the driver allows; 0 when it names none.
    pub max_mtu: u32,
    /// Administratively up (IFF_UP).
    pub up: bool,
    /// The kernel uses it (IFF_RUNNING): its operational state follows the carrier a little later.
    pub running: bool,
    /// The driver sees a link (IFLA_CARRIER).
    pub carrier: bool,
    /// An XDP program is attached.
    pub xdp: bool,
    /// Name of the bus device, for instance `0000:01:00.0`.
    pub device: Option<String>,
    /// Name of the driver that the bus device is bound to.
    pub driver: Option<String>,
    /// Number of receive queues that the device was allocated with.
    pub rx_queues: u32,
    /// Number of transmit queues that the device was allocated with.
    pub tx_queues: u32,
}

/// Waits until an interface with this Ethernet address exists in `ns`.
///
/// Fails with ETIMEDOUT.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaitInterface {
    /// Which namespace.
    pub ns: Ns,
    /// Address of the NIC.
    pub mac: Mac,
    /// How long, in milliseconds.
    pub timeout_ms: u64,
}

interface_requests! {
    /// Waits until an interface has a carrier and the kernel sends on it, or until it has none.
    ///
    /// Fails with ETIMEDOUT, or ENODEV when there is no such interface.
    WaitCarrier {
        /// What to wait for.
        carrier: bool,
        /// How long, in milliseconds.
        timeout_ms: u64,
    },
    /// Brings an interface up or down.
    SetUp {
        /// Up or down.
        up: bool,
    },
    /// Changes the MTU.
    SetMtu {
        /// Largest packet without the Ethernet header, in bytes.
        mtu: u32,
    },
    /// Changes the Ethernet address.
    SetMac {
        /// The new address.
        mac: Mac,
    },
    /// Makes an interface receive what is not for it. `None` leaves a mode as it is.
    SetReceiveMode {
        /// All frames.
        promiscuous: Option<bool>,
        /// All multicast frames.
        all_multicast: Option<bool>,
    },
    /// Adds an Ethernet address, unicast or multicast, to those that an interface receives, as
    /// `bridge fdb add ... self` does.
    AddFilter {
        /// The address.
        mac: Mac,
    },
    /// Removes an address that [`AddFilter`] added.
    RemoveFilter {
        /// The address.
        mac: Mac,
    },
    /// Adds an address. IPv6 addresses are usable at once: duplicate detection is off.
    AddAddress {
        /// Address and prefix length.
        prefix: Prefix,
    },
    /// Removes an address.
    RemoveAddress {
        /// Address and prefix length.
        prefix: Prefix,
    },
    /// Adds a permanent neighbour, so that nothing has to be resolved.
    AddNeighbour {
        /// The neighbour's address.
        address: IpAddr,
        /// The neighbour's Ethernet address.
        mac: Mac,
    },
    /// Removes an interface that was made.
    RemoveInterface {},
    /// rtnl statistics, `ip -s link`.
    GetLinkStats {},
}

interface_requests! {
    /// Makes a VLAN interface on another one. It is down.
    AddVlan {
        /// Its own name.
        name: String,
        /// VLAN identifier, 0 to 4094.
        id: u16,
    },
}

/// Moves an interface into a namespace, optionally under a new name, or renames it where it is.
///
/// An interface that moves loses its addresses and goes down; one that is renamed must be down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MoveInterface {
    /// Where it is.
    pub from: Ns,
    /// Interface name.
    pub interface: String,
    /// Where it goes.
    pub to: Ns,
    /// Its name there.
    pub rename: Option<String>,
}

/// `struct rtnl_link_stats64`, from include/uapi/linux/if_link.h.
#[expect(
    missing_docs,
    reason = "the names are the kernel's, documented in if_link.h"
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStats {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub multicast: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub rx_nohandler: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
}
