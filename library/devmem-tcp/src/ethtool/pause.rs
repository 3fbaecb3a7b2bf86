// SPDX-License-Identifier: MIT OR Apache-2.0

//! Flow control by pause frames (`pause-get`, `pause-set`; `ethtool -a`, `-A`).

use netlink_bindings::ethtool::Request;

use super::{Ethtool, command, name_interface, name_interface_with_stats};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// Pause settings, and counts where the driver keeps them. What is absent in a change stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

impl Ethtool {
    /// Pause settings and counts of an interface.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver does not say, [`RequestError::NoSuchInterface`].
    pub fn pause(&mut self, interface: Interface) -> Result<Pause, RequestError> {
        let mut request = Request::new().op_pause_get_do();
        request.header_mut().cmd = command::PAUSE_GET;
        name_interface_with_stats(request.encode().nested_header(), interface);
        let subject = Subject {
            operation: "ethtool pause-get",
            interface,
        };
        self.netlink.one(subject, &request, |reply| {
            let stats = reply.get_stats().ok();
            Ok(Pause {
                autoneg: reply.get_autoneg().ok().map(|on| on != 0),
                rx: reply.get_rx().ok().map(|on| on != 0),
                tx: reply.get_tx().ok().map(|on| on != 0),
                rx_frames: stats.and_then(|stats| stats.get_rx_frames().ok()),
                tx_frames: stats.and_then(|stats| stats.get_tx_frames().ok()),
            })
        })
    }

    /// Changes pause settings.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`, [`RequestError::Refused`] for what
    /// the device cannot do.
    pub fn set_pause(&mut self, interface: Interface, change: Pause) -> Result<(), RequestError> {
        let mut request = Request::new().op_pause_set_do();
        request.header_mut().cmd = command::PAUSE_SET;
        let mut attributes = name_interface(request.encode().nested_header(), interface);
        if let Some(on) = change.autoneg {
            attributes = attributes.push_autoneg(on.into());
        }
        if let Some(on) = change.rx {
            attributes = attributes.push_rx(on.into());
        }
        if let Some(on) = change.tx {
            attributes = attributes.push_tx(on.into());
        }
        drop(attributes);
        self.netlink.acknowledged(
            Subject {
                operation: "ethtool pause-set",
                interface,
            },
            &request,
        )
    }
}
