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
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
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

/// What a device says of itself beside [`super::FEATURES`].
pub(crate) const FEATURES: u32 = bindings::netdev_xdp_act_NETDEV_XDP_ACT_XSK_ZEROCOPY;

/// A driver whose queues can work on a socket's memory.
pub trait Xsk: Xdp {
    /// Descriptors of the longest RX ring.
    const RX_DESCRIPTORS: u32;

    /// Has queue `queue` work on `pool` (`XDP_SETUP_XSK_POOL`); also while the interface is down. It
    /// has none, and no memory is bound to any queue. A frame of the MTU fits the pool's.
    ///
    /// # Errors
    ///
    /// Any: the pool is given back, and all is as before.
    fn set_pool(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        queue: u32,
        pool: Pool,
    ) -> core::result::Result<(), (Error, Pool)>;

    /// Gives the pool of queue `queue` back. The device does no more DMA to it. This cannot fail: a
    /// driver that does not give it back is asked again, for ever.
    fn clear_pool(dev: Locked<'_, Self>, control: &mut Self::Control, queue: u32) -> Option<Pool>;

    /// Has the NAPI of queue `queue` poll soon, for there is something to send or to receive into
    /// (`ndo_xsk_wakeup`). In process context, without a lock.
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
                Self::clear(locked, control, queue);
                return Ok(0);
            }
            // SAFETY: The core calls with a valid pool, which it keeps until it is cleared.
            let pool = unsafe { Pool::new(locked, pool, queue, T::RX_DESCRIPTORS)? };
            let raw = pool.as_raw();

            match T::set_pool(locked, control, queue.into(), pool) {
                Ok(()) => Ok(0),
                Err((error, pool)) if pool.as_raw() == raw => Err(error),
                // Another queue's: neither may go.
                Err((error, other)) => {
                    core::mem::forget(other);
                    wait_for_ever();
                    Err(error)
                }
            }
        })
    }

    /// Takes the pool from the driver.
    fn clear(dev: Locked<'_, T>, control: &mut T::Control, queue: u16) {
        // SAFETY: The device is valid and locked.
        let raw = unsafe { bindings::net_shim_xsk_pool(dev.device().as_raw(), queue) };

        match T::clear_pool(dev, control, queue.into()) {
            Some(pool) if pool.as_raw() == raw => {}
            other => {
                core::mem::forget(other);
                wait_for_ever();
            }
        }
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

/// The driver has not given back a pool that the core would free if this returned. It never does; its
/// callers are not told so, because objtool does not see it.
#[cold]
#[inline(never)]
fn wait_for_ever() {
    pr_err!("a driver keeps an AF_XDP pool that is gone\n");
    loop {
        fsleep(Delta::from_secs(3600));
    }
}
