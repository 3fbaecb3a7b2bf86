// SPDX-License-Identifier: GPL-2.0

//! The C operations, put together from the traits that a driver offers.
//!
//! A table is a list of types: `()` has what every device has, and `(Rest, Rings)` adds the
//! operations of one trait to those of `Rest`. Each list is a constant.

use net_bindings as bindings;

use super::{
    strings::Strings,
    Callbacks, //
};
use crate::{
    device::Driver,
    registration::Unregistered, //
};

/// A list of traits whose operations are offered for devices of driver `T`.
///
/// Lists are made by [`Unregistered`] only, with `with_rings()` and others like it.
pub trait Table<T> {
    /// The operations.
    const OPS: bindings::ethtool_ops;
}

impl<T: Driver> Table<T> for () {
    const OPS: bindings::ethtool_ops = bindings::ethtool_ops {
        op_needs_rtnl: bindings::NET_SHIM_OPS_NEED_RTNL,
        get_link: Some(bindings::ethtool_op_get_link),
        get_rx_ring_count: Some(Callbacks::<T>::get_rx_ring_count),
        get_ts_info: Some(Callbacks::<T>::get_ts_info),
        get_ts_stats: Some(Callbacks::<T>::get_ts_stats),
        ..pin_init::zeroed()
    };
}

/// `op`, where the driver implements it.
const fn when<F: Copy>(implemented: bool, op: F) -> Option<F> {
    if implemented {
        Some(op)
    } else {
        None
    }
}

/// `cap_link_lanes_supported`, which follows the 8 bits of `supported_input_xfrm`.
const fn lanes_supported(supported: bool) -> bindings::__BindgenBitfieldUnit<[u8; 2]> {
    bindings::__BindgenBitfieldUnit::new([
        0,
        if !supported {
            0
        } else if cfg!(target_endian = "little") {
            0x01
        } else {
            0x80
        },
    ])
}

/// Defines what adds the operations of a trait to a list: a type with the trait's name, and a method
/// of [`Unregistered`]. `T` is the driver, `Rest` the list so far.
macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        $vis:vis fn $with:ident() where T: $trait:ident {
            $($field:ident: $op:expr,)*
        }
    )*) => {
        $(
            #[doc = concat!("Adds [`", stringify!($trait), "`](super::", stringify!($trait), ").")]
            pub struct $trait;

            impl<T: super::$trait, Rest: Table<T>> Table<T> for (Rest, $trait) {
                const OPS: bindings::ethtool_ops = bindings::ethtool_ops {
                    $($field: $op,)*
                    ..Rest::OPS
                };
            }

            impl<'bound, T: Driver + 'bound, E> Unregistered<'bound, T, E> {
                $(#[$doc])*
                $vis fn $with(self) -> Unregistered<'bound, T, (E, $trait)>
                where
                    T: super::$trait,
                {
                    self.with_operations()
                }
            }
        )*
    };
}

operations! {
    /// Offers ring sizes.
    pub fn with_rings() where T: RingParams {
        supported_ring_params: if T::HEADER_SPLIT {
            bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_TCP_DATA_SPLIT
                | bindings::ethtool_supported_ring_param_ETHTOOL_RING_USE_HDS_THRS
        } else {
            0
        },
        get_ringparam: Some(Callbacks::<T>::get_ringparam),
        set_ringparam: when(T::HAS_SET_RINGS, Callbacks::<T>::set_ringparam),
    }

    /// Offers numbers of queues.
    pub fn with_channels() where T: Channels {
        get_channels: Some(Callbacks::<T>::get_channels),
        set_channels: when(T::HAS_SET_CHANNELS, Callbacks::<T>::set_channels),
    }

    /// Offers interrupt coalescing.
    pub fn with_coalescing() where T: Coalescing {
        supported_coalesce_params: T::COALESCE_PARAMETERS.as_raw(),
        get_coalesce: Some(Callbacks::<T>::get_coalesce),
        set_coalesce: when(T::HAS_SET_COALESCE, Callbacks::<T>::set_coalesce),
        get_per_queue_coalesce: when(
            T::COALESCE_PER_QUEUE,
            Callbacks::<T>::get_per_queue_coalesce,
        ),
        set_per_queue_coalesce: when(
            T::COALESCE_PER_QUEUE && T::HAS_SET_COALESCE,
            Callbacks::<T>::set_per_queue_coalesce,
        ),
    }

    /// Offers receive side scaling.
    pub fn with_rss() where T: Rss {
        get_rxfh_key_size: Some(Callbacks::<T>::get_rxfh_key_size),
        get_rxfh_indir_size: Some(Callbacks::<T>::get_rxfh_indir_size),
        get_rxfh: Some(Callbacks::<T>::get_rxfh),
        set_rxfh: when(T::HAS_SET_RSS, Callbacks::<T>::set_rxfh),
        get_rxfh_fields: when(T::HAS_HASH_FIELDS, Callbacks::<T>::get_rxfh_fields),
        set_rxfh_fields: when(T::HAS_SET_HASH_FIELDS, Callbacks::<T>::set_rxfh_fields),
    }

    /// Offers RSS contexts, beside [`with_rss`](Unregistered::with_rss).
    pub fn with_rss_contexts() where T: RssContexts {
        // The core makes the table of a context as long as these say.
        get_rxfh_key_size: Some(Callbacks::<T>::get_rxfh_key_size),
        get_rxfh_indir_size: Some(Callbacks::<T>::get_rxfh_indir_size),
        // One more than the largest number; 0 is the device's own table.
        rxfh_max_num_contexts: {
            assert!(T::RSS_CONTEXTS > 0, "without contexts a driver does not offer them");
            T::RSS_CONTEXTS + 1
        },
        create_rxfh_context: Some(Callbacks::<T>::create_rxfh_context),
        modify_rxfh_context: Some(Callbacks::<T>::modify_rxfh_context),
        remove_rxfh_context: Some(Callbacks::<T>::remove_rxfh_context),
    }

    /// Offers the state of the link, and its settings.
    pub fn with_link_settings() where T: LinkSettings {
        _bitfield_1: lanes_supported(T::LANES),
        get_link_ksettings: Some(Callbacks::<T>::get_link_ksettings),
        set_link_ksettings: when(T::HAS_SET_LINK, Callbacks::<T>::set_link_ksettings),
        nway_reset: when(T::HAS_RESTART_AUTONEG, Callbacks::<T>::nway_reset),
    }

    /// Offers flow control.
    pub fn with_flow_control() where T: FlowControl {
        get_pauseparam: Some(Callbacks::<T>::get_pauseparam),
        set_pauseparam: when(T::HAS_SET_PAUSE, Callbacks::<T>::set_pauseparam),
    }

    /// Offers the driver's own statistics.
    pub fn with_statistics() where T: Statistics {
        get_sset_count: Some(Strings::<T, Self, Rest>::get_sset_count),
        get_strings: Some(Strings::<T, Self, Rest>::get_strings),
        get_ethtool_stats: Some(Callbacks::<T>::get_ethtool_stats),
    }

    /// Offers statistics that standards define.
    pub fn with_standard_statistics() where T: StandardStatistics {
        get_eth_mac_stats: when(T::HAS_MAC_STATS, Callbacks::<T>::get_eth_mac_stats),
        get_eth_ctrl_stats: when(T::HAS_CONTROL_STATS, Callbacks::<T>::get_eth_ctrl_stats),
        get_pause_stats: when(T::HAS_PAUSE_STATS, Callbacks::<T>::get_pause_stats),
        get_rmon_stats: when(T::HAS_SIZE_STATS, Callbacks::<T>::get_rmon_stats),
    }

    /// Offers a register dump.
    pub fn with_registers() where T: Registers {
        get_regs_len: Some(Callbacks::<T>::get_regs_len),
        get_regs: Some(Callbacks::<T>::get_regs),
    }

    /// Offers self-tests.
    pub fn with_self_tests() where T: SelfTest {
        get_sset_count: Some(Strings::<T, Self, Rest>::get_sset_count),
        get_strings: Some(Strings::<T, Self, Rest>::get_strings),
        self_test: Some(Callbacks::<T>::self_test),
    }

    /// Offers a light that blinks to identify the device.
    pub fn with_identification() where T: Identify {
        set_phys_id: Some(Callbacks::<T>::set_phys_id),
    }

    /// Offers wake-on-LAN.
    pub fn with_wake_on_lan() where T: WakeOnLan {
        get_wol: Some(Callbacks::<T>::get_wol),
        set_wol: when(T::HAS_SET_WAKE_ON_LAN, Callbacks::<T>::set_wol),
    }

    /// Offers to set what the driver logs.
    pub fn with_message_level() where T: MessageLevel {
        get_msglevel: Some(Callbacks::<T>::get_msglevel),
        set_msglevel: Some(Callbacks::<T>::set_msglevel),
    }

    /// Adds rules to the table; [`Unregistered::with_flow_rules`] does the rest.
    pub(crate) fn with_flow_rule_operations() where T: FlowRules {
        get_rxnfc: Some(Callbacks::<T>::get_rxnfc),
        set_rxnfc: Some(Callbacks::<T>::set_rxnfc),
    }
}
