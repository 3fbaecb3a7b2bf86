// SPDX-License-Identifier: MIT OR Apache-2.0

//! How many queue pairs there are, and how long their rings; header split.

use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// Ring parameters, `ethtool -g`.
    GetRings {},
    /// Changes ring parameters, `ethtool -G`. `None` leaves a parameter as it is.
    SetRings {
        /// Receive descriptors.
        rx: Option<u32>,
        /// Transmit descriptors.
        tx: Option<u32>,
        /// Header split.
        data_split: Option<DataSplit>,
        /// Packets up to this many bytes are not split.
        hds_thresh: Option<u32>,
    },
    /// Channel counts, `ethtool -l`.
    GetChannels {},
    /// Changes the number of queue pairs, `ethtool -L combined`.
    SetChannels {
        /// Queue pairs.
        combined: u32,
    },
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
