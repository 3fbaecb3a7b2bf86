// SPDX-License-Identifier: GPL-2.0

//! Offload features of a net device.
//!
//! C header: `include/linux/netdev_features.h`

use net_bindings as bindings;

use crate::once::read_once;

/// Offload features of a device (`NETIF_F_*`), as a set.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Scatter-gather on transmit; without it no frame can have unreadable fragments.
    pub const SG: Self = Self(bindings::NET_SHIM_F_SG);
    /// Checksums of any protocol by the device.
    pub const HW_CSUM: Self = Self(bindings::NET_SHIM_F_HW_CSUM);
    /// TCP and UDP checksums over IPv4 by the device.
    pub const IP_CSUM: Self = Self(bindings::NET_SHIM_F_IP_CSUM);
    /// TCP and UDP checksums over IPv6 by the device.
    pub const IPV6_CSUM: Self = Self(bindings::NET_SHIM_F_IPV6_CSUM);
    /// TCP segmentation over IPv4.
    pub const TSO: Self = Self(bindings::NET_SHIM_F_TSO);
    /// TCP segmentation over IPv6.
    pub const TSO6: Self = Self(bindings::NET_SHIM_F_TSO6);
    /// UDP segmentation: a datagram of each segment (`NETIF_F_GSO_UDP_L4`).
    pub const UDP_SEGMENTATION: Self = Self(bindings::NET_SHIM_F_UDP_SEGMENTATION);
    /// Receive checksums by the device.
    pub const RXCSUM: Self = Self(bindings::NET_SHIM_F_RXCSUM);
    /// The receive hash in the descriptor is passed on.
    pub const RXHASH: Self = Self(bindings::NET_SHIM_F_RXHASH);
    /// VLAN tags are inserted on transmit.
    pub const VLAN_INSERT: Self = Self(bindings::NET_SHIM_F_VLAN_INSERT);
    /// VLAN tags are stripped on receive.
    pub const VLAN_STRIP: Self = Self(bindings::NET_SHIM_F_VLAN_STRIP);
    /// Only frames of VLANs that were asked for are received, and those without a tag.
    pub const VLAN_FILTER: Self = Self(bindings::NET_SHIM_F_VLAN_FILTER);
    /// Rules that say to which queue packets go
    /// ([`FlowRules`](crate::ethtool::FlowRules)); set by those who offer them.
    pub const NTUPLE: Self = Self(bindings::NET_SHIM_F_NTUPLE);
    /// DMA from all of memory.
    pub const HIGHDMA: Self = Self(bindings::NET_SHIM_F_HIGHDMA);

    /// Returns whether all of `other` is in this set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns both sets together.
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this set less `other`.
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those that `dev` has on now.
    ///
    /// # Safety
    ///
    /// `dev` must be valid.
    #[inline]
    pub(crate) unsafe fn of(dev: *const bindings::net_device) -> Self {
        // SAFETY: As this function requires.
        Self(unsafe { read_once(&raw const (*dev).features) })
    }

    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub(crate) const fn as_raw(self) -> u64 {
        self.0
    }
}
