// SPDX-License-Identifier: MIT OR Apache-2.0

//! What ethtool shows and sets, beside [rings and channels](crate::rings) and [RSS](crate::rss).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// How interrupts are coalesced, `ethtool -c`, or `--per-queue` for one queue.
    GetCoalesce {
        /// Which queue; `None` is the interface as a whole.
        queue: Option<u32>,
    },
    /// Changes how interrupts are coalesced, `ethtool -C`.
    SetCoalesce {
        /// Which queue; `None` is all.
        queue: Option<u32>,
        /// What to change.
        coalesce: Coalesce,
    },
    /// Pause settings and counts, `ethtool -a -I`.
    GetPause {},
    /// Changes pause settings, `ethtool -A`.
    SetPause {
        /// What to change; counts are not.
        pause: Pause,
    },
    /// Speed, duplex and modes of the link, `ethtool <interface>`.
    GetLinkModes {},
    /// Changes those, `ethtool -s`.
    SetLinkModes {
        /// What to change.
        change: LinkModeChange,
    },
    /// Standard statistics, `ethtool -S <interface> --all-groups`.
    GetStandardStats {},
    /// Who drives the interface, `ethtool -i`.
    GetDriverInfo {},
    /// A register dump, `ethtool -d`.
    DumpRegisters {},
    /// Has the device test itself, `ethtool -t`.
    TestSelf {
        /// Also what interrupts traffic.
        offline: bool,
    },
    /// Makes the device blink, `ethtool -p`; the reply comes after that time.
    Identify {
        /// For how long.
        seconds: u32,
    },
    /// Wake-on-LAN.
    GetWakeOnLan {},
    /// Changes wake-on-LAN, `ethtool -s <interface> wol`.
    SetWakeOnLan {
        /// `WAKE_*`, as a set.
        options: u32,
    },
    /// The driver's message level, `NETIF_MSG_*` as a set.
    GetMessageLevel {},
    /// Changes it, `ethtool -s <interface> msglvl`.
    SetMessageLevel {
        /// `NETIF_MSG_*`, as a set.
        level: u32,
    },
    /// Timestamps, `ethtool -T`.
    GetTimestamping {},
    /// Device features, `ethtool -k`.
    GetFeatures {},
    /// Turns features on and off, `ethtool -K`. Fails without an errno when the device did
    /// not follow.
    SetFeatures {
        /// Wanted state by kernel name, for instance `tx-tcp-segmentation`.
        features: BTreeMap<String, bool>,
    },
    /// The driver's own statistics by name, `ethtool -S`.
    GetDriverStats {},
}

/// How interrupts are coalesced. `None`: the driver does not say, or it stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalesce {
    /// Microseconds from a packet's arrival to its interrupt.
    pub rx_usecs: Option<u32>,
    /// Microseconds from a packet's departure to its interrupt.
    pub tx_usecs: Option<u32>,
    /// `rx_usecs` adapts to what is received.
    pub adaptive_rx: Option<bool>,
}

/// Pause settings and counts. `None`: the driver does not say, or it stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Whether the link partner is asked.
    pub autoneg: Option<bool>,
    /// Pause frames that come are obeyed.
    pub rx: Option<bool>,
    /// Pause frames are sent.
    pub tx: Option<bool>,
    /// How many came.
    pub rx_frames: Option<u64>,
    /// How many were sent.
    pub tx_frames: Option<u64>,
}

/// Speed, duplex and modes of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkModes {
    /// Speed and duplex are negotiated.
    pub autoneg: Option<bool>,
    /// Mb/s; unknown without a link.
    pub speed: Option<u32>,
    /// Full duplex; unknown without a link.
    pub full_duplex: Option<bool>,
    /// What is supported, as in `1000baseT/Full`, and whether it is advertised.
    pub modes: BTreeMap<String, bool>,
}

/// What to change about a link; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkModeChange {
    /// Negotiate.
    pub autoneg: Option<bool>,
    /// Mb/s.
    pub speed: Option<u32>,
    /// Full duplex.
    pub full_duplex: Option<bool>,
    /// Modes to advertise, and no others.
    pub advertise: Option<Vec<String>>,
}

/// Answer to [`GetStandardStats`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandardStats {
    /// The group (`eth-mac`, `eth-ctrl`, `rmon`), the number within it (`ETHTOOL_A_STATS_*`), and
    /// the count.
    pub counters: Vec<(String, u16, u64)>,
    /// Packets received by size: from, to, and the count.
    pub rx_sizes: Vec<(u32, u32, u64)>,
    /// Packets sent by size.
    pub tx_sizes: Vec<(u32, u32, u64)>,
}

/// Answer to [`GetDriverInfo`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverInfo {
    /// The driver's name.
    pub driver: String,
    /// Where the device is.
    pub bus_info: String,
}

/// Answer to [`DumpRegisters`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterDump {
    /// What the driver says of the layout.
    pub version: u32,
    /// The registers.
    pub words: Vec<u32>,
}

/// Answer to [`TestSelf`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Something is wrong.
    pub failed: bool,
    /// Each test's name and result: 0 is good.
    pub results: BTreeMap<String, u64>,
}

/// Answer to [`GetWakeOnLan`]: `WAKE_*`, as sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeOnLan {
    /// What the device can.
    pub supported: u32,
    /// What is on.
    pub on: u32,
}

/// Answer to [`GetTimestamping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamping {
    /// `SOF_TIMESTAMPING_*`, as a set.
    pub sources: u32,
    /// The device's clock, if it has one.
    pub clock: Option<u32>,
}

/// Device features by their kernel names (`ethtool -k`), for instance `tx-tcp-segmentation`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// Features that are on.
    pub active: Vec<String>,
    /// Features that can be changed.
    pub changeable: Vec<String>,
}
