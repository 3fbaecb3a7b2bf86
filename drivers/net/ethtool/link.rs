// SPDX-License-Identifier: GPL-2.0

//! The link: speed, duplex, what is negotiated, and flow control (`ethtool nic0`, `-s`, `-r`, `-a`,
//! `-A`).

use kernel::{
    error::{
        from_result,
        VTABLE_DEFAULT_ERROR, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    Driver,
    Locked, //
};

/// Link modes (`ETHTOOL_LINK_MODE_*`), as a set: those that twisted pair of up to 1 Gb/s has.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct LinkModes(u32);

impl LinkModes {
    /// 10 Mb/s, half duplex.
    pub const HALF_10: Self =
        Self(1 << bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10baseT_Half_BIT);
    /// 10 Mb/s, full duplex.
    pub const FULL_10: Self =
        Self(1 << bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_10baseT_Full_BIT);
    /// 100 Mb/s, half duplex.
    pub const HALF_100: Self =
        Self(1 << bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_100baseT_Half_BIT);
    /// 100 Mb/s, full duplex.
    pub const FULL_100: Self =
        Self(1 << bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_100baseT_Full_BIT);
    /// 1000 Mb/s, full duplex.
    pub const FULL_1000: Self =
        Self(1 << bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_1000baseT_Full_BIT);
    /// Negotiation.
    pub const AUTONEG: Self =
        Self(1 << bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_Autoneg_BIT);
    /// The port is twisted pair.
    pub const TWISTED_PAIR: Self =
        Self(1 << bindings::ethtool_link_mode_bit_indices_ETHTOOL_LINK_MODE_TP_BIT);
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// Returns whether all of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set in a bitmap of the core; `None` if it has others than these.
    fn from_raw(raw: &[c_ulong]) -> Option<Self> {
        let (first, others) = raw.split_first()?;

        if others.iter().any(|word| *word != 0) {
            return None;
        }
        u32::try_from(*first).ok().map(Self)
    }

    fn write_to(self, raw: &mut [c_ulong]) {
        if let Some(first) = raw.first_mut() {
            // CAST: The core is of 64 bits, as `Counter` sees to.
            *first = self.0 as c_ulong;
        }
    }
}

/// A link that is up.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Up {
    /// Mb/s.
    pub speed: u32,
    /// Both sides may send at the same time.
    pub full_duplex: bool,
}

/// A link's settings and state, of a device that always negotiates.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Link {
    /// What came of it.
    pub up: Option<Up>,
    /// What the device can.
    pub supported: LinkModes,
    /// What it offers.
    pub advertised: LinkModes,
    /// What the other side offers; nothing while that is not known.
    pub partner: LinkModes,
}

/// A driver of a device with a link that is negotiated and flow control that is not.
#[vtable]
pub trait LinkSettings: Driver {
    /// The link.
    ///
    /// # Errors
    ///
    /// Those of the device.
    fn link(dev: Locked<'_, Self>, control: &mut Self::Control) -> Result<Link>;

    /// Offers `modes`, which are some of those that are supported, and negotiates again.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a set that the device cannot offer, and those of the device.
    fn advertise(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _modes: LinkModes,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Negotiates again.
    ///
    /// # Errors
    ///
    /// Those of the device.
    fn restart_autoneg(_dev: Locked<'_, Self>, _control: &mut Self::Control) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: LinkSettings> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_link_ksettings`.
    pub(super) unsafe extern "C" fn get_link_ksettings(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_link_ksettings,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((dev, control), out) = unsafe { (Locked::<T>::new(dev), &mut *out) };

        from_result(|| {
            let link = T::link(dev, control)?;
            let (speed, duplex) = match link.up {
                Some(up) if up.full_duplex => (up.speed, bindings::DUPLEX_FULL),
                Some(up) => (up.speed, bindings::DUPLEX_HALF),
                None => (bindings::NET_SHIM_SPEED_UNKNOWN, bindings::DUPLEX_UNKNOWN),
            };

            out.base.speed = speed;
            // CAST: Small constants.
            out.base.duplex = duplex as u8;
            out.base.port = bindings::PORT_TP as u8;
            out.base.autoneg = bindings::AUTONEG_ENABLE as u8;
            link.supported.write_to(&mut out.link_modes.supported);
            link.advertised.write_to(&mut out.link_modes.advertising);
            link.partner.write_to(&mut out.link_modes.lp_advertising);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_link_ksettings`.
    pub(super) unsafe extern "C" fn set_link_ksettings(
        dev: *mut bindings::net_device,
        request: *const bindings::ethtool_link_ksettings,
    ) -> c_int {
        // SAFETY: As above.
        let ((dev, control), request) = unsafe { (Locked::<T>::new(dev), &*request) };

        from_result(|| {
            if u32::from(request.base.autoneg) != bindings::AUTONEG_ENABLE {
                return Err(EOPNOTSUPP);
            }
            let supported = T::link(dev, control)?.supported;
            let wanted = LinkModes::from_raw(&request.link_modes.advertising)
                .filter(|wanted| supported.contains(*wanted))
                .ok_or(EINVAL)?;

            T::advertise(dev, control, wanted).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `nway_reset`.
    pub(super) unsafe extern "C" fn nway_reset(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| T::restart_autoneg(dev, control).map(|()| 0))
    }
}
