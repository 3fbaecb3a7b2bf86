// SPDX-License-Identifier: GPL-2.0

//! ethtool: rings and header split, channels, RSS, driver statistics.
//!
//! All operations run under the instance lock.
//!
//! C header: `include/linux/ethtool.h`

use core::marker::PhantomData;

use kernel::{
    error::from_result,
    prelude::*, //
};
use net_bindings as bindings;

use crate::device::{
    Driver,
    Locked,
    NetDevice, //
};

/// Length of an RSS hash key in bytes.
pub const RSS_KEY_LEN: usize = 40;

/// What a user asks of TCP header split.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum HeaderSplit {
    /// As the driver likes it.
    Auto,
    /// Off.
    Disabled,
    /// On: device memory can be bound.
    Enabled,
}

/// Descriptors in the rings.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Rings {
    /// RX descriptors of each queue.
    pub rx: u32,
    /// TX descriptors of each queue.
    pub tx: u32,
    /// The largest RX ring.
    pub rx_max: u32,
    /// The largest TX ring.
    pub tx_max: u32,
    /// Whether headers are split from TCP payload.
    pub header_split: HeaderSplit,
    /// Packets up to this many bytes are not split.
    pub hds_thresh: u32,
    /// The largest such threshold; the core refuses what is above it.
    pub hds_thresh_max: u32,
}

/// A wish for other rings.
#[derive(Copy, Clone)]
pub struct RingRequest {
    /// RX descriptors of each queue.
    pub rx: u32,
    /// TX descriptors of each queue.
    pub tx: u32,
    /// Header split.
    pub header_split: HeaderSplit,
    /// Packets up to this many bytes are not split.
    pub hds_thresh: u32,
}

/// An explanation of a failure that goes to the user with the errno.
pub struct ExtAck<'a>(*mut bindings::netlink_ext_ack, PhantomData<&'a ()>);

impl ExtAck<'_> {
    /// # Safety
    ///
    /// `extack` must be null, or valid as long as the result is used.
    pub(crate) unsafe fn from_raw(extack: *mut bindings::netlink_ext_ack) -> Self {
        Self(extack, PhantomData)
    }

    /// Sets the message.
    pub fn set(&self, message: &'static CStr) {
        // SAFETY: The pointer is valid or null, and the message lives as long as the module,
        // which cannot go while it is in an operation.
        unsafe { bindings::net_shim_set_extack(self.0, message.as_char_ptr()) };
    }
}

/// A driver's ethtool operations.
pub trait Ethtool: Driver {
    /// Names of the driver's own statistics.
    const STATISTICS: &'static [&'static CStr];

    /// The rings as they are.
    fn rings(control: &Self::Control) -> Rings;

    /// Changes the rings, also while the interface is up; on an error they stay as they are.
    ///
    /// # Errors
    ///
    /// `EINVAL` for sizes that the device does not take, `ENOMEM`.
    fn set_rings(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        request: RingRequest,
        extack: &ExtAck<'_>,
    ) -> Result;

    /// Queue pairs: in use and at most.
    fn channels(control: &Self::Control) -> (u32, u32);

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

    /// The driver's own statistics, in the order of [`Self::STATISTICS`].
    fn statistic(&self, index: usize) -> u64;
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: Ethtool> Table<T> {
    pub(crate) const OPS: &'static bindings::ethtool_ops = &bindings::ethtool_ops {
        supported_ring_params:
            bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_TCP_DATA_SPLIT
                | bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_HDS_THRS,
        op_needs_rtnl: bindings::NET_SHIM_OPS_NEED_RTNL,
        get_link: Some(bindings::ethtool_op_get_link),
        get_ringparam: Some(Self::get_ringparam),
        set_ringparam: Some(Self::set_ringparam),
        get_channels: Some(Self::get_channels),
        get_rx_ring_count: Some(Self::get_rx_ring_count),
        get_rxfh_key_size: Some(Self::get_rxfh_key_size),
        get_rxfh_indir_size: Some(Self::get_rxfh_indir_size),
        get_rxfh: Some(Self::get_rxfh),
        set_rxfh: Some(Self::set_rxfh),
        get_sset_count: Some(Self::get_sset_count),
        get_strings: Some(Self::get_strings),
        get_ethtool_stats: Some(Self::get_ethtool_stats),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Only the core may call it, as `get_ringparam`.
    unsafe extern "C" fn get_ringparam(
        dev: *mut bindings::net_device,
        ring: *mut bindings::ethtool_ringparam,
        kernel_ring: *mut bindings::kernel_ethtool_ringparam,
        _extack: *mut bindings::netlink_ext_ack,
    ) {
        // SAFETY: The core holds the lock.
        let (_, control) = unsafe { Locked::<T>::new(dev) };
        let rings = T::rings(control);

        // SAFETY: The core calls with valid structures. CAST: A small constant.
        unsafe {
            (*ring).rx_pending = rings.rx;
            (*ring).tx_pending = rings.tx;
            (*ring).rx_max_pending = rings.rx_max;
            (*ring).tx_max_pending = rings.tx_max;
            (*kernel_ring).hds_thresh = rings.hds_thresh;
            (*kernel_ring).hds_thresh_max = rings.hds_thresh_max;
            (*kernel_ring).tcp_data_split = match rings.header_split {
                HeaderSplit::Auto => bindings::NET_SHIM_TCP_DATA_SPLIT_UNKNOWN,
                HeaderSplit::Disabled => bindings::NET_SHIM_TCP_DATA_SPLIT_DISABLED,
                HeaderSplit::Enabled => bindings::NET_SHIM_TCP_DATA_SPLIT_ENABLED,
            } as u8;
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_ringparam`.
    unsafe extern "C" fn set_ringparam(
        dev: *mut bindings::net_device,
        ring: *mut bindings::ethtool_ringparam,
        kernel_ring: *mut bindings::kernel_ethtool_ringparam,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls with valid structures.
        let (request, others) = unsafe {
            (
                RingRequest {
                    rx: (*ring).rx_pending,
                    tx: (*ring).tx_pending,
                    header_split: match u32::from((*kernel_ring).tcp_data_split) {
                        bindings::NET_SHIM_TCP_DATA_SPLIT_DISABLED => HeaderSplit::Disabled,
                        bindings::NET_SHIM_TCP_DATA_SPLIT_ENABLED => HeaderSplit::Enabled,
                        _ => HeaderSplit::Auto,
                    },
                    hds_thresh: (*kernel_ring).hds_thresh,
                },
                (*ring).rx_mini_pending | (*ring).rx_jumbo_pending,
            )
        };
        let extack = ExtAck(extack, PhantomData);
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| {
            if others != 0 {
                extack.set(c"there are no mini and no jumbo rings");
                return Err(EINVAL);
            }
            T::set_rings(dev, control, request, &extack).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_channels`.
    unsafe extern "C" fn get_channels(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_channels,
    ) {
        // SAFETY: The core holds the lock.
        let (_, control) = unsafe { Locked::<T>::new(dev) };
        let (now, max) = T::channels(control);

        // SAFETY: The core calls with a valid structure.
        unsafe {
            (*out).combined_count = now;
            (*out).max_combined = max;
            (*out).max_other = 1;
            (*out).other_count = 1;
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rx_ring_count`.
    unsafe extern "C" fn get_rx_ring_count(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core holds the lock.
        let (_, control) = unsafe { Locked::<T>::new(dev) };

        T::channels(control).0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh_key_size`.
    unsafe extern "C" fn get_rxfh_key_size(_dev: *mut bindings::net_device) -> u32 {
        RSS_KEY_LEN as u32
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh_indir_size`.
    unsafe extern "C" fn get_rxfh_indir_size(_dev: *mut bindings::net_device) -> u32 {
        T::RSS_ENTRIES
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh`.
    unsafe extern "C" fn get_rxfh(
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
    unsafe extern "C" fn set_rxfh(
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

    /// # Safety
    ///
    /// Only the core may call it, as `get_sset_count`.
    unsafe extern "C" fn get_sset_count(_dev: *mut bindings::net_device, set: c_int) -> c_int {
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
    unsafe extern "C" fn get_strings(_dev: *mut bindings::net_device, set: u32, mut data: *mut u8) {
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
    unsafe extern "C" fn get_ethtool_stats(
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
