// SPDX-License-Identifier: GPL-2.0

//! Interrupt coalescing (`ethtool -c`, `-C`, and `--per-queue`).

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
    ExtAck, //
};
use crate::device::{
    Driver,
    Locked, //
};

/// How interrupts of a queue pair are coalesced.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Coalesce {
    /// Microseconds between two interrupts, at least; where it adapts, only at first.
    pub rx_usecs: u32,
    /// The interval adapts to what is received.
    pub adaptive_rx: bool,
}

impl Coalesce {
    pub(super) const PARAMETERS: u32 =
        bindings::NET_SHIM_COALESCE_RX_USECS | bindings::NET_SHIM_COALESCE_USE_ADAPTIVE_RX;

    fn from_raw(raw: &bindings::ethtool_coalesce) -> Self {
        Self {
            rx_usecs: raw.rx_coalesce_usecs,
            adaptive_rx: raw.use_adaptive_rx_coalesce != 0,
        }
    }

    fn write_to(&self, raw: &mut bindings::ethtool_coalesce) {
        raw.rx_coalesce_usecs = self.rx_usecs;
        raw.use_adaptive_rx_coalesce = self.adaptive_rx.into();
    }
}

/// A driver whose queue pairs have an interrupt each, which can be moderated.
#[vtable]
pub trait Coalescing: Driver {
    /// How the interrupts of a queue pair are coalesced; for none in particular, of the first one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such pair in use.
    fn coalesce(control: &Self::Control, pair: Option<u32>) -> Result<Coalesce>;

    /// Coalesces the interrupts of a queue pair, or of all.
    ///
    /// # Errors
    ///
    /// `EINVAL` for what the device cannot do or if there is no such pair in use, `ENOMEM`; nothing
    /// is changed.
    fn set_coalesce(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _pair: Option<u32>,
        _coalesce: Coalesce,
        _extack: &ExtAck<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: Coalescing> Callbacks<T> {
    /// # Safety
    ///
    /// As [`Self::get_coalesce`].
    unsafe fn get(
        dev: *mut bindings::net_device,
        pair: Option<u32>,
        out: *mut bindings::ethtool_coalesce,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((_, control), out) = unsafe { (Locked::<T>::new(dev), &mut *out) };

        from_result(|| {
            T::coalesce(control, pair)?.write_to(out);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`Self::set_coalesce`].
    unsafe fn set(
        dev: *mut bindings::net_device,
        pair: Option<u32>,
        request: *mut bindings::ethtool_coalesce,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with valid structures, or null for the last.
        let ((dev, control), request, extack) = unsafe {
            (
                Locked::<T>::new(dev),
                Coalesce::from_raw(&*request),
                ExtAck::from_raw(extack),
            )
        };

        from_result(|| T::set_coalesce(dev, control, pair, request, &extack).map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_coalesce`.
    pub(super) unsafe extern "C" fn get_coalesce(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_coalesce,
        _kernel: *mut bindings::kernel_ethtool_coalesce,
        _extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: As this function requires.
        unsafe { Self::get(dev, None, out) }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_coalesce`.
    pub(super) unsafe extern "C" fn set_coalesce(
        dev: *mut bindings::net_device,
        request: *mut bindings::ethtool_coalesce,
        _kernel: *mut bindings::kernel_ethtool_coalesce,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: As this function requires.
        unsafe { Self::set(dev, None, request, extack) }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_per_queue_coalesce`.
    pub(super) unsafe extern "C" fn get_per_queue_coalesce(
        dev: *mut bindings::net_device,
        queue: u32,
        out: *mut bindings::ethtool_coalesce,
    ) -> c_int {
        // SAFETY: As this function requires.
        unsafe { Self::get(dev, Some(queue), out) }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_per_queue_coalesce`.
    pub(super) unsafe extern "C" fn set_per_queue_coalesce(
        dev: *mut bindings::net_device,
        queue: u32,
        request: *mut bindings::ethtool_coalesce,
    ) -> c_int {
        // SAFETY: As this function requires.
        unsafe { Self::set(dev, Some(queue), request, core::ptr::null_mut()) }
    }
}
