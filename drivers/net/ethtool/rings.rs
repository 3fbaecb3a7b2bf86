// SPDX-License-Identifier: GPL-2.0

//! Ring sizes and header split (`ethtool -g`, `-G`).

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

/// What a user asks of TCP header split.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum HeaderSplit {
    /// The driver decides.
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

/// A request to change the rings.
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

/// A driver whose rings can be configured.
#[vtable]
pub trait RingParams: Driver {
    /// The device splits headers from TCP payload.
    const HEADER_SPLIT: bool;

    /// The rings as they are.
    fn rings(control: &Self::Control) -> Rings;

    /// Changes the rings, also while the interface is up; on an error they stay as they are.
    ///
    /// # Errors
    ///
    /// `EINVAL` for sizes that the device does not take, `ENOMEM`.
    fn set_rings(
        _dev: Locked<'_, Self>,
        _control: &mut Self::Control,
        _request: RingRequest,
        _extack: &ExtAck<'_>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

impl<T: RingParams> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_ringparam`.
    pub(super) unsafe extern "C" fn get_ringparam(
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
    pub(super) unsafe extern "C" fn set_ringparam(
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
        // SAFETY: The core calls with a valid structure, or null.
        let extack = unsafe { ExtAck::from_raw(extack) };
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
}
