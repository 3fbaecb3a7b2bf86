// SPDX-License-Identifier: GPL-2.0

//! The link: speed, duplex, and what is negotiated (`ethtool nic0`, `-s`, `-r`).

use core::num::NonZero;

use kernel::{
    error::{
        from_result,
        VTABLE_DEFAULT_ERROR, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    Callbacks,
    LinkModes, //
};
use crate::device::{
    Driver,
    Locked, //
};

/// Whether both sides may send at the same time.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Duplex {
    /// Not at the same time.
    Half,
    /// At the same time.
    Full,
}

/// Where the cable is plugged in (`PORT_*`).
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Port {
    /// Twisted pair.
    TwistedPair,
    /// AUI.
    Aui,
    /// MII.
    Mii,
    /// Fibre.
    Fibre,
    /// BNC.
    Bnc,
    /// Direct attach copper.
    DirectAttach,
    /// Nowhere: there is no port, or nothing is plugged in.
    None,
    /// Something else.
    Other,
}

impl Port {
    const fn to_raw(self) -> u8 {
        // CAST: Small constants.
        (match self {
            Self::TwistedPair => bindings::PORT_TP,
            Self::Aui => bindings::PORT_AUI,
            Self::Mii => bindings::PORT_MII,
            Self::Fibre => bindings::PORT_FIBRE,
            Self::Bnc => bindings::PORT_BNC,
            Self::DirectAttach => bindings::PORT_DA,
            Self::None => bindings::PORT_NONE,
            Self::Other => bindings::PORT_OTHER,
        }) as u8
    }
}

/// A speed and how it comes about.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Speed {
    /// Mb/s.
    pub mbps: u32,
    /// Whether both sides may send at the same time.
    pub duplex: Duplex,
    /// How many lanes; `None` if that is not known, or left to the device.
    pub lanes: Option<NonZero<u32>>,
}

/// A link's settings and state.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Link {
    /// The speed, while the link is up.
    pub speed: Option<Speed>,
    /// The port.
    pub port: Port,
    /// The speed is negotiated.
    pub autoneg: bool,
    /// What the device can do.
    pub supported: LinkModes,
    /// What it offers.
    pub advertised: LinkModes,
    /// What the other side offers; nothing while that is not known.
    pub partner: LinkModes,
}

/// How a link is to be set up.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum LinkRequest {
    /// By negotiation: these modes are offered. All of them are [supported](Link::supported), and
    /// so is [`LinkModes::MODE_Autoneg`].
    Negotiate(LinkModes),
    /// At this speed, without negotiation.
    Force(Speed),
}

/// A driver of a device with a link.
#[vtable]
pub trait LinkSettings: Driver {
    /// The number of lanes is known, and can be asked for.
    const LANES: bool = false;

    /// The link.
    ///
    /// # Errors
    ///
    /// Those of the device.
    fn link(dev: Locked<'_, Self>, control: &mut Self::Control) -> Result<Link>;

    /// Sets up the link, and negotiates again if it is to be negotiated.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for a way that the device does not have, `EINVAL` for what it cannot offer or
    /// do, and those of the device.
    fn set_link(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _request: LinkRequest,
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

/// The speed that a user asks for without negotiation.
fn forced(request: &bindings::ethtool_link_ksettings) -> Result<Speed> {
    if request.base.speed == bindings::NET_SHIM_SPEED_UNKNOWN {
        return Err(EINVAL);
    }
    Ok(Speed {
        mbps: request.base.speed,
        duplex: match request.base.duplex.into() {
            bindings::DUPLEX_HALF => Duplex::Half,
            bindings::DUPLEX_FULL => Duplex::Full,
            _ => return Err(EINVAL),
        },
        lanes: NonZero::new(request.lanes),
    })
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
            let duplex = match link.speed.map(|speed| speed.duplex) {
                Some(Duplex::Half) => bindings::DUPLEX_HALF,
                Some(Duplex::Full) => bindings::DUPLEX_FULL,
                None => bindings::DUPLEX_UNKNOWN,
            };

            out.base.speed = link
                .speed
                .map_or(bindings::NET_SHIM_SPEED_UNKNOWN, |speed| speed.mbps);
            // CAST: A small constant.
            out.base.duplex = duplex as u8;
            out.base.port = link.port.to_raw();
            out.base.autoneg = link.autoneg.into();
            out.lanes = link
                .speed
                .and_then(|speed| speed.lanes)
                .map_or(0, NonZero::get);
            out.link_modes.supported = link.supported.as_raw();
            out.link_modes.advertising = link.advertised.as_raw();
            out.link_modes.lp_advertising = link.partner.as_raw();
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
            let request = if u32::from(request.base.autoneg) == bindings::AUTONEG_ENABLE {
                let supported = T::link(dev, control)?.supported;
                let wanted = LinkModes::from_raw(request.link_modes.advertising);

                if !supported.contains(LinkModes::MODE_Autoneg) {
                    return Err(EOPNOTSUPP);
                }
                if !supported.contains(wanted) {
                    return Err(EINVAL);
                }
                LinkRequest::Negotiate(wanted)
            } else {
                LinkRequest::Force(forced(request)?)
            };

            T::set_link(dev, control, request).map(|()| 0)
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
