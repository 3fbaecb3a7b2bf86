// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling (`ethtool -x`, `-X`).

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

/// A hash function (`ETH_RSS_HASH_*`).
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum HashFunction {
    /// Toeplitz.
    Toeplitz,
    /// Exclusive or.
    Xor,
    /// CRC-32.
    Crc32,
}

impl HashFunction {
    pub(super) const fn to_raw(self) -> u8 {
        // CAST: Bits of a byte.
        (match self {
            Self::Toeplitz => bindings::NET_SHIM_RSS_HASH_TOP,
            Self::Xor => bindings::NET_SHIM_RSS_HASH_XOR,
            Self::Crc32 => bindings::NET_SHIM_RSS_HASH_CRC32,
        }) as u8
    }

    /// # Errors
    ///
    /// `EOPNOTSUPP` for a function that is unknown here.
    fn from_raw(raw: u8) -> Result<Self> {
        match raw.into() {
            bindings::NET_SHIM_RSS_HASH_TOP => Ok(Self::Toeplitz),
            bindings::NET_SHIM_RSS_HASH_XOR => Ok(Self::Xor),
            bindings::NET_SHIM_RSS_HASH_CRC32 => Ok(Self::Crc32),
            _ => Err(EOPNOTSUPP),
        }
    }
}

/// What is to be changed of RSS.
pub struct RssChange<'a> {
    /// The key, of [`Rss::RSS_KEY_LEN`] bytes.
    pub key: Option<&'a [u8]>,
    /// The indirection table, of [`Rss::RSS_ENTRIES`] entries, which are valid queues.
    pub table: Option<&'a [u32]>,
    /// The hash function.
    pub function: Option<HashFunction>,
}

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
    /// Other protocols over IP, as the core distinguishes them: SCTP, AH, ESP, and IP as such.
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
    /// Length of the hash key in bytes.
    const RSS_KEY_LEN: usize;

    /// Entries of the indirection table.
    const RSS_ENTRIES: usize;

    /// Reads the key, which has [`Self::RSS_KEY_LEN`] bytes, and the table, which has
    /// [`Self::RSS_ENTRIES`] entries. Returns the hash function.
    fn rss(
        control: &Self::Control,
        key: Option<&mut [u8]>,
        table: Option<&mut [u32]>,
    ) -> HashFunction;

    /// Sets what is given of key, table and hash function.
    ///
    /// # Errors
    ///
    /// Any, such as `EOPNOTSUPP` for a hash function that the device does not have; nothing is
    /// changed.
    fn set_rss(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _change: RssChange<'_>,
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
        // CAST: A small constant.
        T::RSS_KEY_LEN as u32
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_rxfh_indir_size`.
    pub(super) unsafe extern "C" fn get_rxfh_indir_size(_dev: *mut bindings::net_device) -> u32 {
        // CAST: A small constant.
        T::RSS_ENTRIES as u32
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

            let function = T::rss(
                control,
                (!key.is_null()).then(|| core::slice::from_raw_parts_mut(key, T::RSS_KEY_LEN)),
                (!table.is_null()).then(|| core::slice::from_raw_parts_mut(table, T::RSS_ENTRIES)),
            );
            (*param).hfunc = function.to_raw();
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
        // SAFETY: The core calls with a valid structure, or null.
        let extack = unsafe { ExtAck::from_raw(extack) };

        // SAFETY: As in `get_rxfh`.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);
            let key = (*param).key;
            let table = (*param).indir;
            let function = (*param).hfunc;

            from_result(|| {
                let change = RssChange {
                    key: (!key.is_null()).then(|| core::slice::from_raw_parts(key, T::RSS_KEY_LEN)),
                    table: (!table.is_null())
                        .then(|| core::slice::from_raw_parts(table, T::RSS_ENTRIES)),
                    function: match function {
                        // ETH_RSS_HASH_NO_CHANGE.
                        0 => None,
                        function => Some(HashFunction::from_raw(function)?),
                    },
                };

                T::set_rss(dev, control, change, &extack).map(|()| 0)
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
        // SAFETY: The core calls with a valid structure, or null.
        let extack = unsafe { ExtAck::from_raw(extack) };
        // SAFETY: As above.
        let ((dev, control), fields) = unsafe { (Locked::<T>::new(dev), &*fields) };

        from_result(|| {
            let flow = Flow::from_raw(fields.flow_type).ok_or(EOPNOTSUPP)?;

            T::set_hash_fields(dev, control, flow, HashFields(fields.data), &extack).map(|()| 0)
        })
    }
}
