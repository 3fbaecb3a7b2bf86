// SPDX-License-Identifier: GPL-2.0

//! Wake-on-LAN (`ethtool nic0`, `-s nic0 wol`).

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

/// Events that wake the system (`WAKE_*`), as sets.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct WakeEvents {
    /// What can wake the system.
    pub supported: u32,
    /// What does.
    pub enabled: u32,
}

/// A driver of a device that can wake the system.
#[vtable]
pub trait WakeOnLan: Driver {
    /// What wakes the system.
    fn wake_on_lan(control: &Self::Control) -> WakeEvents;

    /// Has `events` wake the system, and no others; all of them are
    /// [supported](WakeEvents::supported).
    ///
    /// # Errors
    ///
    /// Any; all is as before.
    fn set_wake_on_lan(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _events: u32,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: WakeOnLan> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_wol`.
    pub(super) unsafe extern "C" fn get_wol(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_wolinfo,
    ) {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((_, control), out) = unsafe { (Locked::<T>::new(dev), &mut *out) };
        let wol = T::wake_on_lan(control);

        out.supported = wol.supported;
        out.wolopts = wol.enabled;
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_wol`.
    pub(super) unsafe extern "C" fn set_wol(
        dev: *mut bindings::net_device,
        request: *mut bindings::ethtool_wolinfo,
    ) -> c_int {
        // SAFETY: As above.
        let ((dev, control), request) = unsafe { (Locked::<T>::new(dev), &*request) };

        from_result(|| {
            if request.wolopts & !T::wake_on_lan(control).supported != 0 {
                return Err(EINVAL);
            }
            T::set_wake_on_lan(dev, control, request.wolopts).map(|()| 0)
        })
    }
}
