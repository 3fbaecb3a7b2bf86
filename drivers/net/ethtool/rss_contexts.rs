// SPDX-License-Identifier: GPL-2.0

//! RSS contexts: further indirection tables, which flow rules lead to (`ethtool -X nic0 context new`).

use kernel::{
    error::from_result,
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    Callbacks,
    ExtAck,
    Rss, //
};
use crate::device::{
    fields::is_unregistering,
    Locked, //
};

/// A driver with RSS contexts. They have tables of their own; key, hash function and what is hashed
/// are those of the device.
pub trait RssContexts: Rss {
    /// How many there may be, beside the device's own table.
    const RSS_CONTEXTS: u32;

    /// Makes the context of a number from 1 to [`Self::RSS_CONTEXTS`], or changes it. The table has
    /// [`Rss::RSS_ENTRIES`] entries, which are valid queues.
    ///
    /// A context stays until it is removed, also over down and up.
    ///
    /// # Errors
    ///
    /// Any; nothing is changed.
    fn set_rss_context(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        context: u32,
        table: &[u32],
        extack: &ExtAck<'_>,
    ) -> Result;

    /// Removes a context, which no rule leads to. Those that are left when the device is
    /// unregistered are not removed before.
    fn remove_rss_context(dev: Locked<'_, Self>, control: &mut Self::Control, context: u32);
}

/// The table that a user did not name: of all queues in turn (`ethtool_rxfh_indir_default()`).
fn fill(table: &mut [u32], queues: u32) {
    for (entry, queue) in table.iter_mut().zip((0..queues.max(1)).cycle()) {
        *entry = queue;
    }
}

impl<T: RssContexts> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `create_rxfh_context`.
    pub(super) unsafe extern "C" fn create_rxfh_context(
        dev: *mut bindings::net_device,
        context: *mut bindings::ethtool_rxfh_context,
        param: *const bindings::ethtool_rxfh_param,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls with a valid structure, or null.
        let extack = unsafe { ExtAck::from_raw(extack) };

        // SAFETY: The core holds the lock. The parameter's table is null or has as many entries as
        // `get_rxfh_indir_size` says, which is offered with this function, and so has that of the
        // context. It begins where the context's data does, as `rxfh_priv_size` is 0. Others look
        // into the context with `rss_lock` or the device's lock held only, and the core holds both.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);
            let table = if (*param).indir.is_null() {
                let table = (&raw mut (*context).data).cast();
                let table = core::slice::from_raw_parts_mut(table, T::RSS_ENTRIES);

                fill(table, dev.rx_queues());
                &*table
            } else {
                core::slice::from_raw_parts((*param).indir, T::RSS_ENTRIES)
            };

            (*context).hfunc = T::rss(control, None, None).to_raw();
            let number = (*param).rss_context;
            from_result(|| T::set_rss_context(dev, control, number, table, &extack).map(|()| 0))
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `modify_rxfh_context`.
    pub(super) unsafe extern "C" fn modify_rxfh_context(
        dev: *mut bindings::net_device,
        _context: *mut bindings::ethtool_rxfh_context,
        param: *const bindings::ethtool_rxfh_param,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls with a valid structure, or null.
        let extack = unsafe { ExtAck::from_raw(extack) };

        // SAFETY: As in `create_rxfh_context`.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);
            let (table, number) = ((*param).indir, (*param).rss_context);

            // The core lets nothing else be changed, as `rxfh_per_ctx_key` is not set.
            if table.is_null() {
                return 0;
            }
            let table = core::slice::from_raw_parts(table, T::RSS_ENTRIES);
            from_result(|| T::set_rss_context(dev, control, number, table, &extack).map(|()| 0))
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `remove_rxfh_context`.
    pub(super) unsafe extern "C" fn remove_rxfh_context(
        dev: *mut bindings::net_device,
        _context: *mut bindings::ethtool_rxfh_context,
        number: u32,
        _extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // While it unregisters the device, the core holds rtnl and not the device's lock
        // (netdev_rss_contexts_free() in net/core/dev.c).
        // SAFETY: The core calls with a valid device.
        if unsafe { is_unregistering(dev) } {
            return 0;
        }
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        T::remove_rss_context(dev, control, number);
        0
    }
}
