// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ring sizes and header split (`rings-get`, `rings-set`; `ethtool -g`, `-G`).

use netlink_bindings::ethtool::{IterableRings, Request};

use super::{Ethtool, command, name_interface};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// Whether received TCP packets are split into header and payload (`enum ethtool_header_flags`
/// tcp-data-split).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TcpDataSplit {
    /// The driver decides (`auto`); the kernel reports this until a user sets it.
    Auto,
    /// Never.
    Off,
    /// Always: what device memory needs.
    On,
}

impl TcpDataSplit {
    /// As `ethtool -G` takes it.
    pub(crate) const fn as_ethtool(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
            Self::On => "on",
        }
    }

    const fn to_wire(self) -> u8 {
        match self {
            Self::Auto => 0,
            Self::Off => 1,
            Self::On => 2,
        }
    }

    const fn from_wire(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Auto),
            1 => Some(Self::Off),
            2 => Some(Self::On),
            _ => None,
        }
    }
}

/// Ring parameters of an interface. What the driver does not report is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Rings {
    /// RX descriptors in use.
    pub rx: Option<u32>,
    /// Most RX descriptors possible.
    pub rx_max: Option<u32>,
    /// TX descriptors in use.
    pub tx: Option<u32>,
    /// Most TX descriptors possible.
    pub tx_max: Option<u32>,
    /// Size of a receive buffer in bytes.
    pub rx_buf_len: Option<u32>,
    /// Header split.
    pub tcp_data_split: Option<TcpDataSplit>,
    /// Packets up to this many bytes are not split.
    pub hds_thresh: Option<u32>,
    /// Largest threshold possible, in bytes.
    pub hds_thresh_max: Option<u32>,
}

/// What to change about rings; what is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RingChange {
    /// RX descriptors.
    pub rx: Option<u32>,
    /// TX descriptors.
    pub tx: Option<u32>,
    /// Header split.
    pub tcp_data_split: Option<TcpDataSplit>,
    /// Packets up to this many bytes are not split; device memory needs 0.
    pub hds_thresh: Option<u32>,
}

impl Ethtool {
    /// Ring parameters of an interface.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver has none, [`RequestError::NoSuchInterface`].
    pub fn rings(&mut self, interface: Interface) -> Result<Rings, RequestError> {
        let mut request = Request::new().op_rings_get_do();
        request.header_mut().cmd = command::RINGS_GET;
        name_interface(request.encode().nested_header(), interface);
        self.netlink.one(
            Subject {
                operation: "ethtool rings-get",
                interface,
            },
            &request,
            |reply| Ok(rings(&reply)),
        )
    }

    /// Turns header split on for packets of any size: what device memory needs.
    ///
    /// The threshold is touched only if there is one: some drivers split without knowing any.
    ///
    /// # Errors
    ///
    /// As [`Ethtool::set_rings`].
    pub fn split_headers(&mut self, interface: Interface) -> Result<(), RequestError> {
        let hds_thresh = self.rings(interface)?.hds_thresh.map(|_| 0);
        let tcp_data_split = Some(TcpDataSplit::On);
        self.set_rings(
            interface,
            RingChange {
                tcp_data_split,
                hds_thresh,
                ..RingChange::default()
            },
        )
    }

    /// Changes ring parameters of an interface.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`, [`RequestError::Unsupported`] for
    /// what the driver lacks, [`RequestError::Refused`] for sizes it does not take and for turning
    /// split off while a queue is bound.
    pub fn set_rings(
        &mut self,
        interface: Interface,
        change: RingChange,
    ) -> Result<(), RequestError> {
        let mut request = Request::new().op_rings_set_do();
        request.header_mut().cmd = command::RINGS_SET;
        let mut attributes = name_interface(request.encode().nested_header(), interface);
        if let Some(descriptors) = change.rx {
            attributes = attributes.push_rx(descriptors);
        }
        if let Some(descriptors) = change.tx {
            attributes = attributes.push_tx(descriptors);
        }
        if let Some(split) = change.tcp_data_split {
            attributes = attributes.push_tcp_data_split(split.to_wire());
        }
        if let Some(bytes) = change.hds_thresh {
            attributes = attributes.push_hds_thresh(bytes);
        }
        drop(attributes);
        self.netlink.acknowledged(
            Subject {
                operation: "ethtool rings-set",
                interface,
            },
            &request,
        )
    }
}

fn rings(reply: &IterableRings<'_>) -> Rings {
    Rings {
        rx: reply.get_rx().ok(),
        rx_max: reply.get_rx_max().ok(),
        tx: reply.get_tx().ok(),
        tx_max: reply.get_tx_max().ok(),
        rx_buf_len: reply.get_rx_buf_len().ok(),
        tcp_data_split: reply
            .get_tcp_data_split()
            .ok()
            .and_then(TcpDataSplit::from_wire),
        hds_thresh: reply.get_hds_thresh().ok(),
        hds_thresh_max: reply.get_hds_thresh_max().ok(),
    }
}

#[cfg(test)]
mod tests {
    use netlink_bindings::ethtool::TcpDataSplit as Generated;

    use super::*;

    #[test]
    fn the_split_values_are_those_of_the_specification() {
        assert_eq!(TcpDataSplit::Auto.to_wire(), Generated::Unknown as u8);
        assert_eq!(TcpDataSplit::Off.to_wire(), Generated::Disabled as u8);
        assert_eq!(TcpDataSplit::On.to_wire(), Generated::Enabled as u8);
        for split in [TcpDataSplit::Auto, TcpDataSplit::Off, TcpDataSplit::On] {
            assert_eq!(TcpDataSplit::from_wire(split.to_wire()), Some(split));
        }
        assert_eq!(TcpDataSplit::from_wire(3), None);
    }
}
