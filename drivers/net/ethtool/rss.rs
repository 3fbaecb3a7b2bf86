// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling (`ethtool -x`, `-X`).

use core::marker::PhantomData;

use kernel::{
    error::{
        from_result,
        VTABLE_DEFAULT_ERROR, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    Callbacks,
    ExtAck, //
};
use crate::device::{
    Driver,
    Locked, //
};

/// Length of an RSS hash key in bytes.
pub const RSS_KEY_LEN: usize = 40;

/// A kind of flow whose hash can be configured.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Flow {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4.
    Udp4,
    /// UDP over IPv6.
    Udp6,
    /// Other protocols over IP, as the core tells them apart: SCTP, AH, ESP, and IP as such.
    OtherIp,
}

impl Flow {
    fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            bindings::TCP_V4_FLOW => Self::Tcp4,
            bindings::TCP_V6_FLOW => Self::Tcp6,
            bindings::UDP_V4_FLOW => Self::Udp4,
            bindings::UDP_V6_FLOW => Self::Udp6,
            bindings::SCTP_V4_FLOW
            | bindings::SCTP_V6_FLOW
            | bindings::AH_ESP_V4_FLOW
            | bindings::AH_ESP_V6_FLOW
            | bindings::AH_V4_FLOW
            | bindings::AH_V6_FLOW
            | bindings::ESP_V4_FLOW
            | bindings::ESP_V6_FLOW
            | bindings::IPV4_FLOW
            | bindings::IPV6_FLOW => Self::OtherIp,
            _ => return None,
        })
    }
}

/// Header fields that a hash covers (`RXH_*`), as a set.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct HashFields(u32);

impl HashFields {
    /// None: the flow is not hashed.
    pub const NONE: Self = Self(0);
    /// Source and destination address.
    pub const ADDRESSES: Self = Self(bindings::RXH_IP_SRC | bindings::RXH_IP_DST);
    /// Both addresses, and source and destination port.
    pub const ADDRESSES_AND_PORTS: Self =
        Self(Self::ADDRESSES.0 | bindings::RXH_L4_B_0_1 | bindings::RXH_L4_B_2_3);
}

/// A driver with receive side scaling.
#[vtable]
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
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _key: Option<&[u8]>,
        _table: Option<&[u32]>,
        _extack: &ExtAck<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// What of a flow is hashed (`ethtool -n nic0 rx-flow-hash`).
    fn hash_fields(_control: &Self::Control, _flow: Flow) -> HashFields {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Has `fields` of a flow be hashed, and no others (`ethtool -N nic0 rx-flow-hash`).
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for what the device cannot hash; nothing is changed.
    fn set_hash_fields(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _flow: Flow,
        _fields: HashFields,
        _extack: &ExtAck<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: Rss> Callbacks<T> {
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

    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh_fields`.
    pub(super) unsafe extern "C" fn get_rxfh_fields(
        dev: *mut bindings::net_device,
        fields: *mut bindings::ethtool_rxfh_fields,
    ) -> c_int {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((_, control), fields) = unsafe { (Locked::<T>::new(dev), &mut *fields) };

        match Flow::from_raw(fields.flow_type) {
            Some(flow) => {
                fields.data = T::hash_fields(control, flow).0;
                0
            }
            None => EOPNOTSUPP.to_errno(),
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_rxfh_fields`.
    pub(super) unsafe extern "C" fn set_rxfh_fields(
        dev: *mut bindings::net_device,
        fields: *const bindings::ethtool_rxfh_fields,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        let extack = ExtAck(extack, PhantomData);
        // SAFETY: As above.
        let ((dev, control), fields) = unsafe { (Locked::<T>::new(dev), &*fields) };

        from_result(|| {
            let flow = Flow::from_raw(fields.flow_type).ok_or(EOPNOTSUPP)?;

            T::set_hash_fields(dev, control, flow, HashFields(fields.data), &extack).map(|()| 0)
        })
    }
}
