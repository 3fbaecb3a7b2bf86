// SPDX-License-Identifier: GPL-2.0

//! ethtool: how users look at a device and configure it.
//!
//! Each concept has a trait in a file of its own; a driver that implements all of them implements
//! [`Ethtool`], and [`FlowRules`] if the device has them. All operations run under the instance
//! lock.
//!
//! C header: `include/linux/ethtool.h`

mod channels;
mod coalesce;
mod diagnostics;
mod flow_rules;
mod flow_spec;
mod link;
mod rings;
mod rss;
mod standard;
mod statistics;
mod timestamping;

use core::marker::PhantomData;

use kernel::prelude::*;
use net_bindings as bindings;

pub use self::{
    channels::{
        ChannelCounts,
        Channels, //
    },
    coalesce::{
        Coalesce,
        Coalescing, //
    },
    diagnostics::{
        Diagnostics,
        Light,
        WakeOnLan,
        MESSAGE_LINK, //
    },
    flow_rules::{
        FlowAction,
        FlowAddresses,
        FlowPlace,
        FlowRule,
        FlowRules,
        Masked,
        Transport, //
    },
    link::{
        Link,
        LinkModes,
        LinkSettings,
        Pause,
        Up, //
    },
    rings::{
        HeaderSplit,
        RingParams,
        RingRequest,
        Rings, //
    },
    rss::{
        Flow,
        HashFields,
        Rss,
        RSS_KEY_LEN, //
    },
    standard::{
        ControlStats,
        MacStats,
        PauseStats,
        SizeErrors,
        SizeStats,
        Sizes,
        StandardStatistics, //
    },
    statistics::Statistics,
};

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

/// A driver's ethtool operations, all together.
pub trait Ethtool:
    RingParams
    + Channels
    + Coalescing
    + Rss
    + LinkSettings
    + Statistics
    + StandardStatistics
    + Diagnostics
{
}

impl<T> Ethtool for T where
    T: RingParams
        + Channels
        + Coalescing
        + Rss
        + LinkSettings
        + Statistics
        + StandardStatistics
        + Diagnostics
{
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: Ethtool> Table<T> {
    pub(crate) const OPS: &'static bindings::ethtool_ops = &bindings::ethtool_ops {
        supported_coalesce_params: Coalesce::PARAMETERS,
        supported_ring_params:
            bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_TCP_DATA_SPLIT
                | bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_HDS_THRS,
        op_needs_rtnl: bindings::NET_SHIM_OPS_NEED_RTNL,
        get_link: Some(bindings::ethtool_op_get_link),
        get_link_ksettings: Some(Self::get_link_ksettings),
        set_link_ksettings: Some(Self::set_link_ksettings),
        nway_reset: Some(Self::nway_reset),
        get_pauseparam: Some(Self::get_pauseparam),
        set_pauseparam: Some(Self::set_pauseparam),
        get_pause_stats: Some(Self::get_pause_stats),
        get_ringparam: Some(Self::get_ringparam),
        set_ringparam: Some(Self::set_ringparam),
        get_channels: Some(Self::get_channels),
        set_channels: Some(Self::set_channels),
        get_coalesce: Some(Self::get_coalesce),
        set_coalesce: Some(Self::set_coalesce),
        get_per_queue_coalesce: Some(Self::get_per_queue_coalesce),
        set_per_queue_coalesce: Some(Self::set_per_queue_coalesce),
        get_rx_ring_count: Some(Self::get_rx_ring_count),
        get_rxfh_key_size: Some(Self::get_rxfh_key_size),
        get_rxfh_indir_size: Some(Self::get_rxfh_indir_size),
        get_rxfh: Some(Self::get_rxfh),
        set_rxfh: Some(Self::set_rxfh),
        get_rxfh_fields: Some(Self::get_rxfh_fields),
        set_rxfh_fields: Some(Self::set_rxfh_fields),
        get_sset_count: Some(Self::get_sset_count),
        get_strings: Some(Self::get_strings),
        get_ethtool_stats: Some(Self::get_ethtool_stats),
        get_eth_mac_stats: Some(Self::get_eth_mac_stats),
        get_eth_ctrl_stats: Some(Self::get_eth_ctrl_stats),
        get_rmon_stats: Some(Self::get_rmon_stats),
        get_regs_len: Some(Self::get_regs_len),
        get_regs: Some(Self::get_regs),
        self_test: Some(Self::self_test),
        set_phys_id: Some(Self::set_phys_id),
        get_wol: Some(Self::get_wol),
        get_msglevel: Some(Self::get_msglevel),
        set_msglevel: Some(Self::set_msglevel),
        get_ts_info: Some(Self::get_ts_info),
        get_ts_stats: Some(Self::get_ts_stats),
        ..pin_init::zeroed()
    };
}
