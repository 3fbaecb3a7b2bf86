// SPDX-License-Identifier: GPL-2.0

//! Shares in a net device's memory.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};
use net_bindings as bindings;

use super::{
    Driver,
    TxStates, //
};
use crate::{
    features::Features,
    tx::TxQueue, //
};

/// The memory of a net device, and of its transmit paths' state: freed when the last owner is gone.
///
/// # Invariants
///
/// `dev` came from `alloc_etherdev_mqs()` with room for `Private<T>` and as many TX queues as `tx`
/// is long.
pub(crate) struct Allocation<T: Driver> {
    dev: NonNull<bindings::net_device>,
    tx: KVec<UnsafeCell<Option<T::Tx>>>,
    _driver: PhantomData<T>,
}

// SAFETY: What is in it is `Send`, and its users take the queues' locks.
unsafe impl<T: Driver> Send for Allocation<T> {}
// SAFETY: As above.
unsafe impl<T: Driver> Sync for Allocation<T> {}

impl<T: Driver> Allocation<T> {
    /// Takes over `dev`, which has `tx_queues` TX queues.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `dev` is freed.
    ///
    /// # Safety
    ///
    /// `dev` must be what `alloc_etherdev_mqs()` returned for the size of a `Private<T>`, and
    /// nobody else may free it.
    pub(crate) unsafe fn new(dev: NonNull<bindings::net_device>, tx_queues: u32) -> Result<Self> {
        // INVARIANT: As this function requires, once the loop is through.
        let mut this = Self {
            dev,
            tx: KVec::new(),
            _driver: PhantomData,
        };

        this.tx.reserve(tx_queues as usize, GFP_KERNEL)?;
        for _ in 0..tx_queues {
            this.tx.push(UnsafeCell::new(None), GFP_KERNEL)?;
        }
        Ok(this)
    }

    /// The transmit paths' state, which stays where it is.
    pub(crate) fn tx(&self) -> &TxStates<T> {
        &self.tx
    }
}

impl<T: Driver> Drop for Allocation<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; `Registration` has unregistered the device before it
        // lets go of its share, and nobody else has one.
        unsafe { bindings::free_netdev(self.dev.as_ptr()) };
    }
}

/// A share in a net device's memory, for what may live as long as the device: NAPIs, interrupt
/// handlers. The device may not be registered yet, or not any more.
pub struct DeviceRef<T: Driver>(Arc<Allocation<T>>);

impl<T: Driver> Clone for DeviceRef<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Driver> DeviceRef<T> {
    pub(crate) fn new(allocation: Arc<Allocation<T>>) -> Self {
        Self(allocation)
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.dev.as_ptr()
    }

    /// The transmit paths' state; each may be used with its queue's lock held.
    pub(crate) fn tx_states(&self) -> &TxStates<T> {
        self.0.tx()
    }

    /// Says whether the link is up: while it is, the core sends.
    ///
    /// May be called from any context, also before the device is registered.
    pub fn set_carrier(&self, up: bool) {
        // SAFETY: The memory is valid; nothing is done to a device that is not registered any more.
        unsafe { bindings::net_shim_set_carrier(self.as_raw(), up) };
    }

    /// Returns whether the link is up.
    pub fn has_carrier(&self) -> bool {
        // SAFETY: The memory is valid.
        unsafe { bindings::net_shim_carrier_ok(self.as_raw()) }
    }

    /// Says in the log whether the link is up. May be called from any context.
    pub fn log_link(&self, up: bool) {
        // SAFETY: The memory is valid.
        unsafe { bindings::net_shim_log_link(self.as_raw(), up) };
    }

    /// TX queue `index`, for flow control from a completion path.
    pub fn tx_queue(&self, index: u32) -> TxQueue<'_> {
        // SAFETY: The memory is valid as long as `self` is.
        unsafe { TxQueue::of(self.as_raw(), index) }
    }

    /// The features in use now.
    #[inline]
    pub fn features(&self) -> Features {
        // SAFETY: The memory is valid.
        Features::from_raw(unsafe { bindings::net_shim_features(self.as_raw()) })
    }
}
