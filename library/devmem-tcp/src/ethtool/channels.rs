// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers of queues (`channels-get`, `channels-set`; `ethtool -l`, `-L`).

use netlink_bindings::ethtool::Request;

use super::{Ethtool, command, name_interface};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// Channels of an interface: sets of queues with an interrupt. What the driver does not use is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Channels {
    /// Channels that only receive.
    pub rx: u32,
    /// Most of those possible.
    pub rx_max: u32,
    /// Channels that only transmit.
    pub tx: u32,
    /// Most of those possible.
    pub tx_max: u32,
    /// Channels for other things, as link interrupts.
    pub other: u32,
    /// Most of those possible.
    pub other_max: u32,
    /// Channels that receive and transmit.
    pub combined: u32,
    /// Most of those possible.
    pub combined_max: u32,
}

/// What to change about channels; what is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ChannelChange {
    /// Channels that only receive.
    pub rx: Option<u32>,
    /// Channels that only transmit.
    pub tx: Option<u32>,
    /// Channels that receive and transmit.
    pub combined: Option<u32>,
}

impl Ethtool {
    /// Channels of an interface.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver has none, [`RequestError::NoSuchInterface`].
    pub fn channels(&mut self, interface: Interface) -> Result<Channels, RequestError> {
        let mut request = Request::new().op_channels_get_do();
        request.header_mut().cmd = command::CHANNELS_GET;
        name_interface(request.encode().nested_header(), interface);
        self.netlink.one(
            Subject {
                operation: "ethtool channels-get",
                interface,
            },
            &request,
            |reply| {
                Ok(Channels {
                    rx: reply.get_rx_count().unwrap_or_default(),
                    rx_max: reply.get_rx_max().unwrap_or_default(),
                    tx: reply.get_tx_count().unwrap_or_default(),
                    tx_max: reply.get_tx_max().unwrap_or_default(),
                    other: reply.get_other_count().unwrap_or_default(),
                    other_max: reply.get_other_max().unwrap_or_default(),
                    combined: reply.get_combined_count().unwrap_or_default(),
                    combined_max: reply.get_combined_max().unwrap_or_default(),
                })
            },
        )
    }

    /// Changes the numbers of channels.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`, [`RequestError::Refused`] for
    /// numbers that the driver does not take and for removing a queue that is bound.
    pub fn set_channels(
        &mut self,
        interface: Interface,
        change: ChannelChange,
    ) -> Result<(), RequestError> {
        let mut request = Request::new().op_channels_set_do();
        request.header_mut().cmd = command::CHANNELS_SET;
        let mut attributes = name_interface(request.encode().nested_header(), interface);
        if let Some(count) = change.rx {
            attributes = attributes.push_rx_count(count);
        }
        if let Some(count) = change.tx {
            attributes = attributes.push_tx_count(count);
        }
        if let Some(count) = change.combined {
            attributes = attributes.push_combined_count(count);
        }
        drop(attributes);
        self.netlink.acknowledged(
            Subject {
                operation: "ethtool channels-set",
                interface,
            },
            &request,
        )
    }
}
