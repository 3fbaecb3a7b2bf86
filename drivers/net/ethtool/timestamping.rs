// SPDX-License-Identifier: GPL-2.0

//! Which timestamps there are (`ethtool -T`). The kernel takes some itself; those of the device are
//! [`Driver::timestamp_capabilities`].

use kernel::prelude::*;
use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    Driver,
    NetDevice, //
};

impl<T: Driver> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_ts_info`.
    pub(super) unsafe extern "C" fn get_ts_info(
        dev: *mut bindings::net_device,
        out: *mut bindings::kernel_ethtool_ts_info,
    ) -> c_int {
        // SAFETY: The core calls with a valid device and structure.
        let err = unsafe { bindings::ethtool_op_get_ts_info(dev, out) };
        // SAFETY: The core calls with a device of `T`.
        let driver = unsafe { NetDevice::<T>::from_raw(dev) }.driver();

        if let (0, Some(capabilities)) = (err, driver.timestamp_capabilities()) {
            // SAFETY: As above.
            capabilities.to_info(unsafe { &mut *out });
        }
        err
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_ts_stats`.
    pub(super) unsafe extern "C" fn get_ts_stats(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_ts_stats,
    ) {
        // SAFETY: The core calls with a device of `T`.
        let driver = unsafe { NetDevice::<T>::from_raw(dev) }.driver();

        if driver.timestamp_capabilities().is_none() {
            return;
        }
        let stats = driver.tx_timestamp_stats();

        // SAFETY: The core calls with a valid structure. The fields are in an anonymous union of the
        // same structure with and without a name.
        unsafe {
            let out = &mut (*out).__bindgen_anon_1.__bindgen_anon_1;

            out.pkts = stats.delivered;
            out.lost = stats.lost;
            out.err = stats.busy;
        }
    }
}
