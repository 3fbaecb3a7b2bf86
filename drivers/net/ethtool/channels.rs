// SPDX-License-Identifier: GPL-2.0

//! How many queues are in use (`ethtool -l`, `-L`).

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

/// Numbers of channels: interrupts, with the queues that they serve.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct ChannelCounts {
    /// Channels with an RX and a TX queue each.
    pub combined: u32,
    /// Channels with an RX queue each.
    pub rx: u32,
    /// Channels with a TX queue each.
    pub tx: u32,
    /// Channels without a queue, as for the link.
    pub other: u32,
}

/// A driver that shows its channels.
#[vtable]
pub trait Channels: Driver {
    /// The channels in use.
    fn channels(control: &Self::Control) -> ChannelCounts;

    /// How many channels of each kind can be in use.
    fn max_channels(control: &Self::Control) -> ChannelCounts;

    /// Uses so many channels, also while the interface is up. There is at least one RX and one TX
    /// queue, and not more of a kind than [`Self::max_channels`]. On an error all stays as it is.
    ///
    /// The core has refused to take away what is in use: queues with a memory provider, and those
    /// in an RSS table that a user made. A table that no user made is the driver's to change
    /// ([`Locked::rss_is_users`]).
    ///
    /// The driver reports how many queues there are with [`Locked::set_queues`].
    ///
    /// # Errors
    ///
    /// `EINVAL` for what the device cannot do, `ENOMEM`.
    fn set_channels(
        _dev: Locked<'_, Self>,
        _rtnl: Rtnl<'_>,
        _control: &mut Self::Control,
        _counts: ChannelCounts,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: Driver> Locked<'_, T> {
    /// Has the core use the first `rx` RX queues and the first `tx` TX queues, and no others.
    ///
    /// On return the core gives the driver no frame for another TX queue, and what waited for one
    /// is sent, as far as the device does so within half a second. To use fewer queues of both
    /// kinds cannot fail.
    ///
    /// # Errors
    ///
    /// `EINVAL` for 0 or more than are registered, `ENOMEM`; nothing is changed.
    pub fn set_queues(&self, rtnl: Rtnl<'_>, rx: u32, tx: u32) -> Result {
        let _ = rtnl;
        self.when_drained(tx, || {
            // SAFETY: The device is valid, its lock and rtnl are held.
            kernel::error::to_result(unsafe {
                bindings::netif_set_real_num_queues(self.device().as_raw(), tx, rx)
            })
        })
    }

    /// How many RX queues are in use.
    pub fn rx_queues(&self) -> u32 {
        // SAFETY: The device is valid, and its lock guards the number.
        unsafe { (*self.device().as_raw()).real_num_rx_queues }
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
        let (now, max) = (T::channels(control), T::max_channels(control));

        // SAFETY: The core calls with a valid structure.
        unsafe {
            (*out).combined_count = now.combined;
            (*out).max_combined = max.combined;
            (*out).rx_count = now.rx;
            (*out).max_rx = max.rx;
            (*out).tx_count = now.tx;
            (*out).max_tx = max.tx;
            (*out).other_count = now.other;
            (*out).max_other = max.other;
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

        let wanted = ChannelCounts {
            combined: request.combined_count,
            rx: request.rx_count,
            tx: request.tx_count,
            other: request.other_count,
        };

        if wanted == T::channels(control) {
            return 0;
        }
        // The core has checked the maxima, and that there is a queue of each kind.
        from_result(|| T::set_channels(dev, rtnl, control, wanted).map(|()| 0))
    }
}

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_rx_ring_count`.
    pub(super) unsafe extern "C" fn get_rx_ring_count(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core holds the lock.
        let (dev, _) = unsafe { Locked::<T>::new(dev) };

        dev.rx_queues()
    }
}
