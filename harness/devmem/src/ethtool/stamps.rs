// SPDX-License-Identifier: MIT OR Apache-2.0

//! Statistics of hardware time stamps (`tsinfo-get`; `ethtool -I -T`).

use netlink_bindings::ethtool::Request;

use super::{Ethtool, command, name_interface_with_stats};
use crate::error::Result;
use crate::netlink::Subject;

/// How it went with frames that the device was to stamp when it sent them; `None` is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxStamps {
    /// It stamped them.
    pub stamped: Option<u64>,
    /// Their stamps never came.
    pub lost: Option<u64>,
    /// It could not.
    pub failed: Option<u64>,
}

impl Ethtool {
    /// Statistics of time stamps of an interface.
    ///
    /// # Errors
    ///
    /// [`crate::Error::NoSuchInterface`].
    pub fn tx_stamps(&mut self, ifindex: u32) -> Result<TxStamps> {
        let mut request = Request::new().op_tsinfo_get_do();
        request.header_mut().cmd = command::TSINFO_GET;
        name_interface_with_stats(request.encode().nested_header(), ifindex);
        let subject = Subject {
            operation: "ethtool tsinfo-get",
            ifindex,
        };
        self.netlink.one(subject, &request, |reply| {
            let Ok(stats) = reply.get_stats() else {
                return Ok(TxStamps::default());
            };
            Ok(TxStamps {
                stamped: stats.get_tx_pkts().ok().map(u64::from),
                lost: stats.get_tx_lost().ok().map(u64::from),
                failed: stats.get_tx_err().ok().map(u64::from),
            })
        })
    }
}
