// SPDX-License-Identifier: MIT OR Apache-2.0

//! What ethtool shows and sets, beside [rings and channels](crate::rings) and [RSS](crate::rss).

use std::collections::BTreeMap;

pub use devmem_tcp::ethtool::{
    Coalesce, DriverInfo, Features, LinkModeChange, LinkModes, Pause, RegisterDump, SelfTest,
    StandardStats, Timestamping, TxTimestampStats, WakeOnLan,
};
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
    /// TX timestamp statistics, `ethtool -I -T`.
    GetTxTimestampStats {},
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
