// SPDX-License-Identifier: GPL-2.0

//! The driver's own statistics (`ethtool -S`).

use kernel::prelude::*;
use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    Driver,
    NetDevice, //
};

/// A driver with statistics of its own.
pub trait Statistics: Driver {
    /// Their names.
    const STATISTICS: &'static [&'static CStr];

    /// Statistic `index`, in the order of [`Self::STATISTICS`].
    fn statistic(&self, index: usize) -> u64;
}

impl<T: Statistics> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_ethtool_stats`.
    pub(super) unsafe extern "C" fn get_ethtool_stats(
        dev: *mut bindings::net_device,
        _stats: *mut bindings::ethtool_stats,
        data: *mut u64,
    ) {
        // SAFETY: The core calls with a device of `T`.
        let driver = unsafe { NetDevice::<T>::from_raw(dev) }.driver();

        for index in 0..T::STATISTICS.len() {
            // SAFETY: The core has room for as many values as `get_sset_count` says.
            unsafe { data.add(index).write(driver.statistic(index)) };
        }
    }
}
