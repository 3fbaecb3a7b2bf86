// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling (`ethtool -x`, `-X`).

use core::marker::PhantomData;

use kernel::{
    error::from_result,
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    ExtAck,
    Table, //
};
use crate::device::{
    Driver,
    Locked, //
};

/// Length of an RSS hash key in bytes.
pub const RSS_KEY_LEN: usize = 40;

/// A driver with receive side scaling.
pub trait Rss: Driver {
    /// Entries of the RSS indirection table.
    const RSS_ENTRIES: u32;

    /// Reads the RSS key and table; `table` has [`Self::RSS_ENTRIES`] entries.
    fn rss(control: &Self::Control, key: Option<&mut [u8]>, table: Option<&mut [u32]>);

    /// Sets what is given of the RSS key and table, whose entries are valid queues.
    ///
    /// # Errors
    ///
    /// Any; nothing is changed.
    fn set_rss(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        key: Option<&[u8]>,
        table: Option<&[u32]>,
        extack: &ExtAck<'_>,
    ) -> Result;
}

impl<T: Rss> Table<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh_key_size`.
    pub(super) unsafe extern "C" fn get_rxfh_key_size(_dev: *mut bindings::net_device) -> u32 {
        RSS_KEY_LEN as u32
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh_indir_size`.
    pub(super) unsafe extern "C" fn get_rxfh_indir_size(_dev: *mut bindings::net_device) -> u32 {
        T::RSS_ENTRIES
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh`.
    pub(super) unsafe extern "C" fn get_rxfh(
        dev: *mut bindings::net_device,
        param: *mut bindings::ethtool_rxfh_param,
    ) -> c_int {
        // SAFETY: The core holds the lock; the parameter's arrays are null or as long as the two
        // functions above say.
        unsafe {
            let (_, control) = Locked::<T>::new(dev);
            let key = (*param).key;
            let table = (*param).indir;

            (*param).hfunc = bindings::NET_SHIM_RSS_HASH_TOP as u8;
            T::rss(
                control,
                (!key.is_null()).then(|| core::slice::from_raw_parts_mut(key, RSS_KEY_LEN)),
                (!table.is_null())
                    .then(|| core::slice::from_raw_parts_mut(table, T::RSS_ENTRIES as usize)),
            );
        }
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_rxfh`.
    pub(super) unsafe extern "C" fn set_rxfh(
        dev: *mut bindings::net_device,
        param: *mut bindings::ethtool_rxfh_param,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        let extack = ExtAck(extack, PhantomData);

        // SAFETY: As in `get_rxfh`.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);
            let key = (*param).key;
            let table = (*param).indir;
            let hfunc = u32::from((*param).hfunc);

            from_result(|| {
                if hfunc != 0 && hfunc != bindings::NET_SHIM_RSS_HASH_TOP {
                    extack.set(c"the hash is Toeplitz, and no other");
                    return Err(EOPNOTSUPP);
                }
                T::set_rss(
                    dev,
                    control,
                    (!key.is_null()).then(|| core::slice::from_raw_parts(key, RSS_KEY_LEN)),
                    (!table.is_null())
                        .then(|| core::slice::from_raw_parts(table, T::RSS_ENTRIES as usize)),
                    &extack,
                )
                .map(|()| 0)
            })
        }
    }
}
