// SPDX-License-Identifier: GPL-2.0

//! What the driver logs (`ethtool -s nic0 msglvl`).

use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    Driver,
    Locked, //
};

/// Changes of the link are logged (`NETIF_MSG_LINK`), in [`MessageLevel::message_level`].
pub const MESSAGE_LINK: u32 = bindings::NET_SHIM_MSG_LINK;

/// A driver that logs what it is asked to.
pub trait MessageLevel: Driver {
    /// What the driver logs (`NETIF_MSG_*`), as a set.
    fn message_level(&self) -> u32;

    /// Sets what the driver logs.
    fn set_message_level(&self, level: u32);
}

impl<T: MessageLevel> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_msglevel`.
    pub(super) unsafe extern "C" fn get_msglevel(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core holds the lock.
        let (dev, _) = unsafe { Locked::<T>::new(dev) };

        dev.device().driver().message_level()
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_msglevel`.
    pub(super) unsafe extern "C" fn set_msglevel(dev: *mut bindings::net_device, level: u32) {
        // SAFETY: The core holds the lock.
        let (dev, _) = unsafe { Locked::<T>::new(dev) };

        dev.device().driver().set_message_level(level);
    }
}
