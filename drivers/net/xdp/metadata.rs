// SPDX-License-Identifier: GPL-2.0

//! What the device says of a frame, for programs that ask (`bpf_xdp_metadata_rx_*`). Such a program
//! is loaded for one device, so that it runs on no other's frames.

use core::marker::PhantomData;

use kernel::prelude::*;
use net_bindings as bindings;

use super::{
    Xdp,
    HEADROOM, //
};
use crate::{
    fragment::Fragment,
    skb, //
};

/// The fields that a hash covers (`enum xdp_rss_hash_type`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HashType(u32);

impl HashType {
    /// IPv4 addresses.
    pub const IPV4: Self = Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L3_IPV4);
    /// IPv6 addresses.
    pub const IPV6: Self = Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L3_IPV6);
    /// IPv6 addresses, of extension headers if there are any.
    pub const IPV6_EXTENSIONS: Self = Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L3_IPV6_EX);
    /// IPv4 addresses and TCP ports.
    pub const IPV4_TCP: Self = Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV4_TCP);
    /// IPv4 addresses and UDP ports.
    pub const IPV4_UDP: Self = Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV4_UDP);
    /// IPv6 addresses and TCP ports.
    pub const IPV6_TCP: Self = Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV6_TCP);
    /// IPv6 addresses and UDP ports.
    pub const IPV6_UDP: Self = Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV6_UDP);
    /// IPv6 addresses, of extension headers if there are any, and TCP ports.
    pub const IPV6_TCP_EXTENSIONS: Self =
        Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV6_TCP_EX);
    /// IPv6 addresses, of extension headers if there are any, and UDP ports.
    pub const IPV6_UDP_EXTENSIONS: Self =
        Self(bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV6_UDP_EX);
}

/// What a device says of a received frame. Only a program that asks costs anything.
pub trait Metadata {
    /// The hash by which it was given to its queue, and of what.
    fn hash(&self) -> Option<(u32, HashType)>;

    /// The VLAN tag that was stripped, priority and DEI included.
    fn vlan_tag(&self) -> Option<u16>;

    /// When the device received it, in nanoseconds of its clock.
    fn timestamp(&self) -> Option<u64>;
}

/// A frame for a program, and what the device says of it.
#[repr(C)]
pub(super) struct Buffer<'a, M> {
    /// First: programs give its address to the functions below.
    xdp: bindings::xdp_buff,
    metadata: &'a M,
}

impl<'a, M: Metadata> Buffer<'a, M> {
    /// A frame of `rxq`: `len` bytes from [`HEADROOM`] of `buffer` on, and what `flags` say
    /// (`xdp_init_buff()`, `xdp_prepare_buff()`).
    pub(super) fn new(
        rxq: &bindings::xdp_rxq_info,
        buffer: &Fragment,
        len: u32,
        flags: u32,
        metadata: &'a M,
    ) -> Self {
        let mut xdp: bindings::xdp_buff = pin_init::zeroed();

        xdp.rxq = core::ptr::from_ref(rxq).cast_mut();
        xdp.data_hard_start = buffer.as_ptr().cast();
        xdp.data = xdp.data_hard_start.wrapping_byte_add(HEADROOM as usize);
        xdp.data_meta = xdp.data;
        xdp.data_end = xdp.data.wrapping_byte_add(len as usize);
        xdp.__bindgen_anon_1.__bindgen_anon_1 = bindings::xdp_buff__bindgen_ty_1__bindgen_ty_1 {
            frame_sz: buffer.size(),
            flags,
        };
        Self { xdp, metadata }
    }

    /// # Safety
    ///
    /// `ctx` must be of a `Buffer<M>` that lives as long as the result is used.
    unsafe fn metadata(ctx: *const bindings::xdp_md) -> &'a M {
        // SAFETY: As this function requires; the frame is the first field.
        unsafe { (*ctx.cast::<Self>()).metadata }
    }
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: Xdp> Table<T> {
    pub(crate) const OPS: &'static bindings::xdp_metadata_ops = &bindings::xdp_metadata_ops {
        xmo_rx_timestamp: Some(Self::rx_timestamp),
        xmo_rx_hash: Some(Self::rx_hash),
        xmo_rx_vlan_tag: Some(Self::rx_vlan_tag),
    };

    /// # Safety
    ///
    /// Only a program for the device may call it, while it runs.
    unsafe extern "C" fn rx_timestamp(ctx: *const bindings::xdp_md, timestamp: *mut u64) -> c_int {
        // SAFETY: The program was loaded for a device of `T`, and runs on buffers of this type only
        // (`Program::belongs_to`).
        match unsafe { Buffer::<T::Metadata>::metadata(ctx) }.timestamp() {
            Some(time) => {
                // SAFETY: The verifier has seen that it is valid.
                unsafe { *timestamp = time };
                0
            }
            None => ENODATA.to_errno(),
        }
    }

    /// # Safety
    ///
    /// As for [`Self::rx_timestamp`].
    unsafe extern "C" fn rx_hash(
        ctx: *const bindings::xdp_md,
        hash: *mut u32,
        rss_type: *mut bindings::xdp_rss_hash_type,
    ) -> c_int {
        // SAFETY: As above.
        match unsafe { Buffer::<T::Metadata>::metadata(ctx) }.hash() {
            Some((value, HashType(kind))) => {
                // SAFETY: As above.
                unsafe {
                    *hash = value;
                    *rss_type = kind;
                }
                0
            }
            None => ENODATA.to_errno(),
        }
    }

    /// # Safety
    ///
    /// As for [`Self::rx_timestamp`].
    unsafe extern "C" fn rx_vlan_tag(
        ctx: *const bindings::xdp_md,
        vlan_proto: *mut bindings::__be16,
        vlan_tci: *mut u16,
    ) -> c_int {
        // SAFETY: As above.
        match unsafe { Buffer::<T::Metadata>::metadata(ctx) }.vlan_tag() {
            Some(tag) => {
                // SAFETY: As above.
                unsafe {
                    *vlan_proto = skb::ETH_P_8021Q.to_be();
                    *vlan_tci = tag;
                }
                0
            }
            None => ENODATA.to_errno(),
        }
    }
}
