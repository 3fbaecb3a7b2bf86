// SPDX-License-Identifier: GPL-2.0

//! Sets of strings: the names of statistics and of self-tests.

use core::marker::PhantomData;

use kernel::prelude::*;
use net_bindings as bindings;

use super::table::{
    self,
    Table, //
};

/// What has names, of driver `T`.
pub(super) trait StringSet<T> {
    /// The set (`ETH_SS_*`).
    const SET: bindings::ethtool_stringset;
    /// The names.
    const NAMES: &'static [&'static CStr];
}

impl<T: super::Statistics, Rest> StringSet<T> for (Rest, table::Statistics) {
    const SET: bindings::ethtool_stringset = bindings::ethtool_stringset_ETH_SS_STATS;
    const NAMES: &'static [&'static CStr] = T::STATISTICS;
}

impl<T: super::SelfTest, Rest> StringSet<T> for (Rest, table::SelfTest) {
    const SET: bindings::ethtool_stringset = bindings::ethtool_stringset_ETH_SS_TEST;
    const NAMES: &'static [&'static CStr] = T::TESTS;
}

/// The operations of a string set `S`, in front of those of `Rest`.
pub(super) struct Strings<T, S, Rest>(PhantomData<(T, S, Rest)>);

impl<T, S: StringSet<T>, Rest: Table<T>> Strings<T, S, Rest> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_sset_count`.
    pub(super) unsafe extern "C" fn get_sset_count(
        dev: *mut bindings::net_device,
        set: c_int,
    ) -> c_int {
        if set.unsigned_abs() == S::SET {
            // CAST: A short list.
            return S::NAMES.len() as c_int;
        }
        match Rest::OPS.get_sset_count {
            // SAFETY: As this function requires.
            Some(count) => unsafe { count(dev, set) },
            None => EOPNOTSUPP.to_errno(),
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_strings`.
    pub(super) unsafe extern "C" fn get_strings(
        dev: *mut bindings::net_device,
        set: u32,
        mut data: *mut u8,
    ) {
        if set == S::SET {
            for name in S::NAMES {
                // SAFETY: The core has room for as many strings as `get_sset_count` says.
                unsafe { bindings::ethtool_puts(&mut data, name.as_char_ptr()) };
            }
        } else if let Some(strings) = Rest::OPS.get_strings {
            // SAFETY: As this function requires.
            unsafe { strings(dev, set, data) };
        }
    }
}
