// SPDX-License-Identifier: GPL-2.0

//! How many queue pairs are in use (`ethtool -l`, `-L`).

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
    Locked,
    Rtnl, //
};

/// Numbers of channels. Each has an interrupt.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct ChannelCounts {
    /// Queue pairs in use: an RX and a TX queue each.
    pub combined: u32,
    /// Most of them.
    pub combined_max: u32,
    /// Channels without a queue, as for the link.
    pub other: u32,
}

/// A driver whose queues come in pairs.
#[vtable]
pub trait Channels: Driver {
    /// The channels as they are.
    fn channels(control: &Self::Control) -> ChannelCounts;

    /// Uses `combined` queue pairs, at least one and at most as many as
    /// [`ChannelCounts::combined_max`] says, also while the interface is up. On an error all stays
    /// as it is.
    ///
    /// The core has refused to take away what is in use: queues with a memory provider, and those
    /// in an RSS table that a user made. A table that no user made is the driver's to change
    /// ([`Locked::rss_is_users`]).
    ///
    /// The driver says how many queues there are with [`Locked::set_queues`].
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and others of the device.
    fn set_channels(
        _dev: Locked<'_, Self>,
        _rtnl: Rtnl<'_>,
        _control: &mut Self::Control,
        _combined: u32,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: Channels> Locked<'_, T> {
    /// Tells the core that the first `count` RX and TX queues are in use, and no others.
    ///
    /// On return the core gives the driver no frame for another TX queue. To use fewer queues
    /// cannot fail.
    ///
    /// # Errors
    ///
    /// `EINVAL` for 0 or more than are registered, `ENOMEM`; nothing is changed.
    pub fn set_queues(&self, rtnl: Rtnl<'_>, count: u32) -> Result {
        let _ = rtnl;
        // SAFETY: The device is valid, its lock and rtnl are held.
        kernel::error::to_result(unsafe {
            bindings::netif_set_real_num_queues(self.device().as_raw(), count, count)
        })
    }

    /// Returns whether a user has set the RSS indirection table.
    pub fn rss_is_users(&self) -> bool {
        // SAFETY: The device is valid and locked.
        unsafe { bindings::netif_is_rxfh_configured(self.device().as_raw()) }
    }
}

impl<T: Channels> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_channels`.
    pub(super) unsafe extern "C" fn get_channels(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_channels,
    ) {
        // SAFETY: The core holds the lock.
        let (_, control) = unsafe { Locked::<T>::new(dev) };
        let counts = T::channels(control);

        // SAFETY: The core calls with a valid structure.
        unsafe {
            (*out).combined_count = counts.combined;
            (*out).max_combined = counts.combined_max;
            (*out).other_count = counts.other;
            (*out).max_other = counts.other;
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_channels`.
    pub(super) unsafe extern "C" fn set_channels(
        dev: *mut bindings::net_device,
        request: *mut bindings::ethtool_channels,
    ) -> c_int {
        // SAFETY: The core calls with a valid structure.
        let request = unsafe { &*request };
        // SAFETY: The core holds the lock, and rtnl because `op_needs_rtnl` asks for it.
        let ((dev, control), rtnl) = unsafe { (Locked::<T>::new(dev), Rtnl::new()) };

        from_result(|| {
            let now = T::channels(control);

            // The core has checked the maxima, and that there is a queue of each kind.
            if request.other_count != now.other || request.combined_count == 0 {
                return Err(EINVAL);
            }
            if request.combined_count == now.combined {
                return Ok(0);
            }
            T::set_channels(dev, rtnl, control, request.combined_count).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rx_ring_count`.
    pub(super) unsafe extern "C" fn get_rx_ring_count(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core holds the lock.
        let (_, control) = unsafe { Locked::<T>::new(dev) };

        T::channels(control).combined
    }
}
