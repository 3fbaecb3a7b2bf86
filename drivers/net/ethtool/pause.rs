// SPDX-License-Identifier: GPL-2.0

//! Flow control by pause frames (`ethtool -a`, `-A`).

use kernel::{
    error::VTABLE_DEFAULT_ERROR,
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
    /// Pause frames that come are obeyed.
    pub rx: bool,
    /// Pause frames are sent.
    pub tx: bool,
}

/// A driver of a device with flow control, which is not negotiated.
#[vtable]
pub trait FlowControl: Driver {
    /// Flow control as it is.
    fn pause(control: &Self::Control) -> Pause;

    /// Sets flow control.
    fn set_pause(_dev: Locked<'_, Self>, _control: &mut Self::Control, _pause: Pause) {
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
        // SAFETY: As above.
        let ((_, control), out) = unsafe { (Locked::<T>::new(dev), &mut *out) };
        let pause = T::pause(control);

        out.autoneg = 0;
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
        // SAFETY: As above.
        let ((dev, control), request) = unsafe { (Locked::<T>::new(dev), &*request) };

        if request.autoneg != 0 {
            return EOPNOTSUPP.to_errno();
        }
        let pause = Pause {
            rx: request.rx_pause != 0,
            tx: request.tx_pause != 0,
        };

        T::set_pause(dev, control, pause);
        0
    }
}
