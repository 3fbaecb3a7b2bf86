// SPDX-License-Identifier: GPL-2.0

//! The driver's own statistics (`ethtool -S`).

use kernel::prelude::*;
use net_bindings as bindings;

use super::Table;
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

impl<T: Statistics> Table<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_sset_count`.
    pub(super) unsafe extern "C" fn get_sset_count(
        _dev: *mut bindings::net_device,
        set: c_int,
    ) -> c_int {
        if set.unsigned_abs() == bindings::ethtool_stringset_ETH_SS_STATS {
            // CAST: A short list.
            T::STATISTICS.len() as c_int
        } else {
            EOPNOTSUPP.to_errno()
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_strings`.
    pub(super) unsafe extern "C" fn get_strings(
        _dev: *mut bindings::net_device,
        set: u32,
        mut data: *mut u8,
    ) {
        if set == bindings::ethtool_stringset_ETH_SS_STATS {
            for name in T::STATISTICS {
                // SAFETY: The core has room for as many strings as `get_sset_count` says.
                unsafe { bindings::net_shim_ethtool_puts(&mut data, name.as_char_ptr()) };
            }
        }
    }

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
