// SPDX-License-Identifier: MIT OR Apache-2.0

//! Statistics of hardware timestamps (`tsinfo-get`; `ethtool -I -T`).

use netlink_bindings::ethtool::Request;

use super::{Ethtool, command, name_interface_with_stats};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// TX timestamp statistics; `None` is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TxTimestampStats {
    /// Timestamps that were delivered.
    pub delivered: Option<u64>,
    /// Frames whose timestamps never came.
    pub lost: Option<u64>,
    /// Frames that the device could not timestamp.
    pub failed: Option<u64>,
}

impl Ethtool {
    /// Gets an interface's TX timestamp statistics.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoSuchInterface`].
    pub fn tx_timestamp_stats(
        &mut self,
        interface: Interface,
    ) -> Result<TxTimestampStats, RequestError> {
        let mut request = Request::new().op_tsinfo_get_do();
        request.header_mut().cmd = command::TSINFO_GET;
        name_interface_with_stats(request.encode().nested_header(), interface);
        let subject = Subject {
            operation: "ethtool tsinfo-get",
            interface,
        };
        self.netlink.one(subject, &request, |reply| {
            let Ok(stats) = reply.get_stats() else {
                return Ok(TxTimestampStats::default());
            };
            Ok(TxTimestampStats {
                delivered: stats.get_tx_pkts().ok().map(u64::from),
                lost: stats.get_tx_lost().ok().map(u64::from),
                failed: stats.get_tx_err().ok().map(u64::from),
            })
        })
    }
}
