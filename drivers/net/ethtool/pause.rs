// SPDX-License-Identifier: GPL-2.0

//! Flow control by pause frames (`ethtool -a`, `-A`).

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

/// Flow control by pause frames.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Flow control is negotiated with the link, and the rest is what is offered.
    pub autoneg: bool,
    /// Pause frames that come are obeyed.
    pub rx: bool,
    /// Pause frames are sent.
    pub tx: bool,
}

/// A driver of a device with flow control.
#[vtable]
pub trait FlowControl: Driver {
    /// Flow control as it is.
    fn pause(control: &Self::Control) -> Pause;

    /// Sets flow control.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` or `EINVAL` for what the device cannot do; nothing is changed.
    fn set_pause(_dev: Locked<'_, Self>, _control: &mut Self::Control, _pause: Pause) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: FlowControl> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_pauseparam`.
    pub(super) unsafe extern "C" fn get_pauseparam(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_pauseparam,
    ) {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((_, control), out) = unsafe { (Locked::<T>::new(dev), &mut *out) };
        let pause = T::pause(control);

        out.autoneg = pause.autoneg.into();
        out.rx_pause = pause.rx.into();
        out.tx_pause = pause.tx.into();
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_pauseparam`.
    pub(super) unsafe extern "C" fn set_pauseparam(
        dev: *mut bindings::net_device,
        request: *mut bindings::ethtool_pauseparam,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((dev, control), request) = unsafe { (Locked::<T>::new(dev), &*request) };

        let pause = Pause {
            autoneg: request.autoneg != 0,
            rx: request.rx_pause != 0,
            tx: request.tx_pause != 0,
        };

        from_result(|| T::set_pause(dev, control, pause).map(|()| 0))
    }
}
