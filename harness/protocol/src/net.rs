// SPDX-License-Identifier: MIT OR Apache-2.0

//! Network terms that requests and replies share.

use std::{collections::BTreeMap, fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

/// One of the guest's two network namespaces.
///
/// The NIC under test lives in `Local`, the NIC at the other end of its wire in `Peer`, so that
/// traffic between them crosses the wire and not the loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ns {
    /// The initial namespace; every device appears here first.
    Local,
    /// The peer's namespace, made by the agent at boot.
    Peer,
}

/// An address with the length of its network's prefix, written `192.0.2.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// The address of the interface.
    pub address: IpAddr,
    /// Bits of the network part: at most 32 or 128.
    pub length: u8,
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The text is not `address/length`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an address with a prefix length, like 192.0.2.1/24 or 2001:db8::1/64")]
pub struct PrefixError(String);

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || PrefixError(text.to_owned());
        let (address, length) = text.split_once('/').ok_or_else(error)?;
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let length: u8 = length.parse().map_err(|_| error())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if length > most {
            return Err(error());
        }
        Ok(Self { address, length })
    }
}

/// An Ethernet address, written `52:54:00:00:00:01`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
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
    /// The driver sees a link (IFLA_CARRIER).
    pub carrier: bool,
    /// Name of the bus device, for instance `0000:01:00.0`.
    pub device: Option<String>,
    /// Name of the driver that the bus device is bound to.
    pub driver: Option<String>,
    /// Number of receive queues that the device was allocated with.
    pub rx_queues: u32,
    /// Number of transmit queues that the device was allocated with.
    pub tx_queues: u32,
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

/// What `ethtool -g` shows for TCP data split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DataSplit {
    /// The driver decides (`auto`, `ETHTOOL_TCP_DATA_SPLIT_UNKNOWN`).
    Auto,
    /// Off.
    Off,
    /// On.
    On,
}

/// Ring parameters, `ethtool -g`. `None`: the driver does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Receive descriptors of each ring.
    pub rx: Option<u32>,
    /// Most receive descriptors that the driver allows.
    pub rx_max: Option<u32>,
    /// Transmit descriptors of each ring.
    pub tx: Option<u32>,
    /// Most transmit descriptors that the driver allows.
    pub tx_max: Option<u32>,
    /// Header split.
    pub data_split: Option<DataSplit>,
    /// Packets up to this many bytes are not split.
    pub hds_thresh: Option<u32>,
    /// Largest `hds_thresh`.
    pub hds_thresh_max: Option<u32>,
}

/// Receive-side scaling, `ethtool -x`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rss {
    /// The indirection table: a queue for each value of the hash's low bits.
    pub table: Vec<u32>,
    /// The hash key, in bytes.
    pub key: Vec<u8>,
    /// What of each kind of flow is hashed, where the driver says so.
    pub hash_fields: BTreeMap<FlowKind, HashFields>,
}

/// A kind of flow, `ethtool -n <interface> rx-flow-hash`.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FlowKind {
    Tcp4,
    Tcp6,
    Udp4,
    Udp6,
}

impl FlowKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tcp4, Self::Tcp6, Self::Udp4, Self::Udp6];
}

/// Header fields that a hash covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashFields {
    /// Source address.
    pub ip_src: bool,
    /// Destination address.
    pub ip_dst: bool,
    /// Source port.
    pub l4_src: bool,
    /// Destination port.
    pub l4_dst: bool,
}

impl HashFields {
    /// None: such a flow is not hashed.
    pub const NONE: Self = Self {
        ip_src: false,
        ip_dst: false,
        l4_src: false,
        l4_dst: false,
    };
    /// Both addresses.
    pub const ADDRESSES: Self = Self {
        ip_src: true,
        ip_dst: true,
        ..Self::NONE
    };
    /// Both addresses and both ports.
    pub const PORTS: Self = Self {
        l4_src: true,
        l4_dst: true,
        ..Self::ADDRESSES
    };
}

/// Channel counts, `ethtool -l`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// Receive-only queues.
    pub rx: u32,
    /// Transmit-only queues.
    pub tx: u32,
    /// Queue pairs.
    pub combined: u32,
    /// Most queue pairs.
    pub combined_max: u32,
}

/// Device features by their kernel names (`ethtool -k`), for instance `tx-tcp-segmentation`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// Features that are on.
    pub active: Vec<String>,
    /// Features that can be changed.
    pub changeable: Vec<String>,
}

/// Direction of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueKind {
    /// Receive.
    Rx,
    /// Transmit.
    Tx,
}

/// One queue as the netdev family shows it (queue-get).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Number within its kind.
    pub id: u32,
    /// Receive or transmit.
    pub kind: QueueKind,
    /// The NAPI that serves it, while the interface is up.
    pub napi: Option<u32>,
    /// The dma-buf that is bound to it, by the number that bind-rx returned.
    pub dmabuf: Option<u32>,
    /// An io_uring provides its memory.
    pub io_uring: bool,
}

/// Statistics of one queue (qstats-get) by their names in the YNL specification, for instance
/// `rx-packets`. Only those that the driver tracks are present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStats {
    /// Number within its kind.
    pub id: u32,
    /// Receive or transmit.
    pub kind: QueueKind,
    /// Values by name.
    pub stats: BTreeMap<String, u64>,
}

/// One page pool (page-pool-get).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagePool {
    /// Number, unique in the guest.
    pub id: u64,
    /// The NAPI that recycles directly into it.
    pub napi: Option<u32>,
    /// Pages or net_iovs that are out with the driver, the stack or the user.
    pub inflight: Option<u64>,
    /// The same in bytes.
    pub inflight_mem: Option<u64>,
    /// The pool was destroyed and waits for its pages; seconds since boot.
    pub detach_time: Option<u64>,
    /// The dma-buf that it hands out pieces of, by the number that bind-rx returned.
    pub dmabuf: Option<u32>,
    /// It hands out pieces of an io_uring's area.
    pub io_uring: bool,
}

/// One NAPI (napi-get).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Napi {
    /// Number, unique in the guest.
    pub id: u32,
    /// Its interrupt line.
    pub irq: Option<u32>,
    /// Where it polls.
    pub threading: Option<Threading>,
    /// Its thread.
    pub pid: Option<u32>,
    /// Empty polls before interrupts are enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// GRO flush timeout in nanoseconds.
    pub gro_flush_timeout: Option<u64>,
}

/// Where a NAPI polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Threading {
    /// In the softirq that its interrupt raises.
    Softirq,
    /// In a thread that its interrupt wakes.
    Thread,
    /// In a thread that polls all the time.
    BusyThread,
}

/// A loaded kernel module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Name, with underscores.
    pub name: String,
    /// Who holds it, from /proc/modules; a module with references cannot be unloaded.
    pub references: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_read_as_it_is_written() {
        for text in ["192.0.2.1/24", "2001:db8::1/64", "10.0.0.1/32", "::1/128"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_prefix_is_named_in_the_error() {
        for text in ["192.0.2.1", "192.0.2.1/33", "2001:db8::1/129", "x/8", ""] {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(error.contains(&format!("\"{text}\"")), "{error}");
        }
    }
}
