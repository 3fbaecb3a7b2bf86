// SPDX-License-Identifier: GPL-2.0

//! The driver's own statistics (`ethtool -S`).

use kernel::prelude::*;
use net_bindings as bindings;

use super::{
    Diagnostics,
    Table, //
};
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

/// The strings of a set, where the driver has any.
fn strings<T: Statistics + Diagnostics>(set: u32) -> Option<&'static [&'static CStr]> {
    match set {
        bindings::ethtool_stringset_ETH_SS_STATS => Some(T::STATISTICS),
        bindings::ethtool_stringset_ETH_SS_TEST => Some(T::TESTS),
        _ => None,
    }
}

impl<T: Statistics + Diagnostics> Table<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_sset_count`.
    pub(super) unsafe extern "C" fn get_sset_count(
        _dev: *mut bindings::net_device,
        set: c_int,
    ) -> c_int {
        match strings::<T>(set.unsigned_abs()) {
            // CAST: A short list.
            Some(strings) => strings.len() as c_int,
            None => EOPNOTSUPP.to_errno(),
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
        for name in strings::<T>(set).unwrap_or_default() {
            // SAFETY: The core has room for as many strings as `get_sset_count` says.
            unsafe { bindings::net_shim_ethtool_puts(&mut data, name.as_char_ptr()) };
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
