// SPDX-License-Identifier: MIT OR Apache-2.0

//! How many queue pairs there are, and how long their rings; header split.

pub use devmem_tcp::ethtool::{Channels, RingChange, Rings, TcpDataSplit};
use serde::{Deserialize, Serialize};

use crate::{Ns, net::interface_requests};

interface_requests! {
    /// Ring parameters, `ethtool -g`.
    GetRings {},
    /// Changes ring parameters, `ethtool -G`.
    SetRings {
        /// What to change.
        change: RingChange,
    },
    /// Channel counts, `ethtool -l`.
    GetChannels {},
    /// Changes the number of queue pairs, `ethtool -L combined`.
    SetChannels {
        /// Queue pairs.
        combined: u32,
    },
}
