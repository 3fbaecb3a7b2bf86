// SPDX-License-Identifier: MIT OR Apache-2.0

//! The link: speeds and what is negotiated (`linkmodes-get`, `linkmodes-set`; `ethtool nic0`, `-s`).

use std::collections::BTreeMap;

use netlink_bindings::ethtool::{IterableBitset, Request};

use super::{Ethtool, command, name_interface};
use crate::error::RequestError;
use crate::interface::Interface;
use crate::netlink::Subject;

/// Speed, duplex and modes of a link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LinkModes {
    /// Speed and duplex are negotiated.
    pub autoneg: Option<bool>,
    /// Mb/s; unknown without a link.
    pub speed: Option<u32>,
    /// Over how many lanes, if the driver says so.
    pub lanes: Option<u32>,
    /// Full duplex; unknown without a link.
    pub full_duplex: Option<bool>,
    /// What is supported, as in `1000baseT/Full`, and whether it is advertised.
    pub modes: BTreeMap<String, bool>,
}

/// What to change about a link; what is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

/// include/uapi/linux/ethtool.h
const SPEED_UNKNOWN: u32 = u32::MAX;
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;

impl Ethtool {
    /// Speed, duplex and modes of an interface's link.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unsupported`] if the driver does not say, [`RequestError::NoSuchInterface`].
    pub fn link_modes(&mut self, interface: Interface) -> Result<LinkModes, RequestError> {
        let mut request = Request::new().op_linkmodes_get_do();
        request.header_mut().cmd = command::LINKMODES_GET;
        name_interface(request.encode().nested_header(), interface);
        let subject = Subject {
            operation: "ethtool linkmodes-get",
            interface,
        };
        self.netlink.one(subject, &request, |reply| {
            Ok(LinkModes {
                autoneg: reply.get_autoneg().ok().map(|on| on != 0),
                speed: reply.get_speed().ok().filter(|&s| s != SPEED_UNKNOWN),
                lanes: reply.get_lanes().ok(),
                full_duplex: match reply.get_duplex() {
                    Ok(DUPLEX_HALF) => Some(false),
                    Ok(DUPLEX_FULL) => Some(true),
                    _ => None,
                },
                modes: reply
                    .get_ours()
                    .map(|bits| named(&bits))
                    .unwrap_or_default(),
            })
        })
    }

    /// Changes what is negotiated, or forces it.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotPrivileged`] without `CAP_NET_ADMIN`, [`RequestError::Refused`] for what
    /// the device cannot do.
    pub fn set_link_modes(
        &mut self,
        interface: Interface,
        change: &LinkModeChange,
    ) -> Result<(), RequestError> {
        let mut request = Request::new().op_linkmodes_set_do();
        request.header_mut().cmd = command::LINKMODES_SET;
        let mut attributes = name_interface(request.encode().nested_header(), interface);
        if let Some(on) = change.autoneg {
            attributes = attributes.push_autoneg(on.into());
        }
        if let Some(modes) = &change.advertise {
            // Without a mask: what is not named is cleared.
            let mut bits = attributes.nested_ours().push_nomask(()).nested_bits();
            for mode in modes {
                bits = bits
                    .nested_bit()
                    .push_name_bytes(mode.as_bytes())
                    .end_nested();
            }
            attributes = bits.end_nested().end_nested();
        }
        if let Some(speed) = change.speed {
            attributes = attributes.push_speed(speed);
        }
        if let Some(full) = change.full_duplex {
            attributes = attributes.push_duplex(if full { DUPLEX_FULL } else { DUPLEX_HALF });
        }
        drop(attributes);
        self.netlink.acknowledged(
            Subject {
                operation: "ethtool linkmodes-set",
                interface,
            },
            &request,
        )
    }
}

/// The bits of a bitset that is spelled out: those in its mask, and whether they are set.
fn named(bitset: &IterableBitset<'_>) -> BTreeMap<String, bool> {
    let Ok(bits) = bitset.get_bits() else {
        return BTreeMap::new();
    };
    bits.get_bit()
        .filter_map(|bit| {
            let name = bit.get_name().ok()?.to_string_lossy().into_owned();
            Some((name, bit.get_value().is_ok()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use netlink_bindings::ethtool::{Bitset, PushBitset};

    use super::*;

    #[test]
    fn bits_that_are_named_are_set_or_not() {
        let mut attributes = Vec::new();
        PushBitset::new(&mut attributes)
            .push_size(8)
            .nested_bits()
            .nested_bit()
            .push_name_bytes(b"Autoneg")
            .push_value(())
            .end_nested()
            .nested_bit()
            .push_name_bytes(b"Pause")
            .end_nested()
            .end_nested();
        let expected = [("Autoneg", true), ("Pause", false)];
        assert_eq!(
            named(&Bitset::new(&attributes)),
            expected.map(|(name, on)| (name.to_owned(), on)).into()
        );
    }
}
