// SPDX-License-Identifier: GPL-2.0

//! AF_XDP without copies: the device reads and writes what a user's socket has for it.
//!
//! A socket brings a [`Pool`], memory that its user has mapped, to one queue. While it is there the
//! queue receives into the pool's buffers and nowhere else, and sends the socket's frames beside the
//! core's.
//!
//! C header: `include/net/xdp_sock_drv.h`

use core::marker::PhantomData;

use kernel::{
    error::from_result,
    prelude::*, //
};
use net_bindings as bindings;

use super::{
    Pool,
    Xdp, //
};
use crate::device::{
    Locked,
    NetDevice, //
};

/// What a device says of itself beside [`Table::FEATURES`](super::Table::FEATURES).
pub(crate) const FEATURES: u32 = bindings::netdev_xdp_act_NETDEV_XDP_ACT_XSK_ZEROCOPY;

/// A driver whose queues can work on a socket's memory.
///
/// The memory belongs to the NAPI that polls the queue, which lends it to the driver as a [`Pool`].
pub trait Xsk: Xdp {
    /// Descriptors of the longest RX ring.
    const RX_DESCRIPTORS: u32;

    /// Has queue `queue` work on the memory that its NAPI has for it from now on
    /// (`XDP_SETUP_XSK_POOL`); also while the interface is down. It has worked on none, and no memory
    /// is bound to any queue. Buffers take frames of `frame_size` bytes, at least one of the MTU's.
    ///
    /// # Errors
    ///
    /// Any: the queue does not work on that memory.
    fn set_pool(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        queue: u32,
        frame_size: u32,
    ) -> Result;

    /// Takes that memory from queue `queue`: the device does no DMA to it any more. It is removed
    /// even if this fails.
    ///
    /// # Errors
    ///
    /// The device may go on: the memory is never freed.
    fn clear_pool(dev: Locked<'_, Self>, control: &mut Self::Control, queue: u32) -> Result;

    /// Has the NAPI of queue `queue` poll soon, for there is something to send or to receive into
    /// (`ndo_xsk_wakeup`). Without a lock; it must not sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue.
    fn wake(&self, queue: u32) -> Result;
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: Xsk> Table<T> {
    pub(crate) const NETDEV: &'static bindings::net_device_ops = &bindings::net_device_ops {
        ndo_bpf: Some(Self::bpf),
        ndo_xsk_wakeup: Some(Self::wakeup),
        ..*super::Table::<T>::NETDEV
    };

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_bpf`.
    unsafe extern "C" fn bpf(
        dev: *mut bindings::net_device,
        bpf: *mut bindings::netdev_bpf,
    ) -> c_int {
        // SAFETY: The core calls with a valid structure.
        if unsafe { (*bpf).command } != bindings::bpf_netdev_command_XDP_SETUP_XSK_POOL {
            // SAFETY: As above.
            return unsafe { super::Table::<T>::bpf(dev, bpf) };
        }
        // SAFETY: This command has these fields.
        let (pool, queue) = unsafe {
            let setup = &(*bpf).__bindgen_anon_1.xsk;

            (setup.pool, setup.queue_id)
        };
        // SAFETY: The core holds the lock.
        let (locked, control) = unsafe { Locked::<T>::new(dev) };

        from_result(|| {
            if pool.is_null() {
                Self::clear(locked, control, queue.into());
                return Ok(0);
            }
            let index = u32::from(queue);
            // SAFETY: The core calls with a valid pool, which it keeps until it is cleared.
            let pool = unsafe { Pool::new(locked, pool, queue, T::RX_DESCRIPTORS)? };
            let frame_size = pool.frame_size();

            // SAFETY: No guard outlives the callback that got it.
            unsafe { locked.change_pools(index, |pools| pools.put(index, pool)) }??;
            T::set_pool(locked, control, index, frame_size)
                .inspect_err(|_| drop(Self::take(locked, index)))?;
            Ok(0)
        })
    }

    /// Takes the pool from the queue, and from the driver, which has no way to keep it.
    fn clear(dev: Locked<'_, T>, control: &mut T::Control, queue: u32) {
        let stopped = T::clear_pool(dev, control, queue);

        if let (Some(pool), Err(_)) = (Self::take(dev, queue), stopped) {
            pr_err!("the memory of an AF_XDP socket is leaked: the device may access it\n");
            pool.leak();
        }
    }

    fn take(dev: Locked<'_, T>, queue: u32) -> Option<Pool> {
        // SAFETY: No guard outlives the callback that got it.
        unsafe { dev.change_pools(queue, |pools| pools.take(queue)) }
            .ok()
            .flatten()
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_xsk_wakeup`.
    unsafe extern "C" fn wakeup(dev: *mut bindings::net_device, queue: u32, _flags: u32) -> c_int {
        // SAFETY: The core calls with a device of `T`.
        let dev = unsafe { NetDevice::<T>::from_raw(dev) };

        from_result(|| dev.driver().wake(queue).map(|()| 0))
    }
}
