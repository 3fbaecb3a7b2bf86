// SPDX-License-Identifier: GPL-2.0

//! Self-tests (`ethtool -t`).

use kernel::prelude::*;
use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    Driver,
    Locked, //
};

/// A driver whose device can be tested.
pub trait SelfTest: Driver {
    /// Names of the self-tests.
    const TESTS: &'static [&'static CStr];

    /// Tests the device, with what interrupts traffic if `offline` says so; `results` has one for
    /// each of [`Self::TESTS`], all 0, which means that a test was passed or not made. On return
    /// the interface is as before.
    ///
    /// # Errors
    ///
    /// Any, if something is wrong.
    fn self_test(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        offline: bool,
        results: &mut [u64],
    ) -> Result;
}

impl<T: SelfTest> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `self_test`.
    pub(super) unsafe extern "C" fn self_test(
        dev: *mut bindings::net_device,
        test: *mut bindings::ethtool_test,
        results: *mut u64,
    ) {
        // SAFETY: The core holds the lock, and calls with a valid structure and room for as many
        // results as `get_sset_count` says, all 0.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);
            let flags = &mut (*test).flags;
            let offline = *flags & bindings::ethtool_test_flags_ETH_TEST_FL_OFFLINE != 0;
            let results = core::slice::from_raw_parts_mut(results, T::TESTS.len());

            if T::self_test(dev, control, offline, results).is_err() {
                *flags |= bindings::ethtool_test_flags_ETH_TEST_FL_FAILED;
            }
        }
    }
}
