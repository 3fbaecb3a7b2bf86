// SPDX-License-Identifier: GPL-2.0

//! References to a net device's memory.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    pin::Pin,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};
use net_bindings as bindings;

use super::{
    fields,
    Driver, //
};
use crate::{
    features::Features,
    napi::{
        self,
        Instance,
        Poll,
        Scheduler, //
    },
    tx::{
        Kept,
        TxSlot, //
    }, //
};

/// The NAPIs of a device.
type Napis<T> = KVec<Pin<KBox<Instance<<T as Driver>::Napi>>>>;

/// The memory of a net device, of its NAPIs, and of its transmit paths' state: freed when the last
/// owner is gone.
///
/// # Invariants
///
/// - `dev` came from `alloc_etherdev_mqs()` with room for `Private<T>` and as many TX queues as `tx`
///   is long.
/// - `napis` only grows, and only before the device is registered.
pub(crate) struct Allocation<T: Driver> {
    dev: NonNull<bindings::net_device>,
    tx: KVec<TxSlot<T>>,
    kept_tx: Kept,
    napis: UnsafeCell<Napis<T>>,
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
            kept_tx: Kept::all(),
            napis: UnsafeCell::new(KVec::new()),
            _driver: PhantomData,
        };

        this.tx.reserve(tx_queues as usize, GFP_KERNEL)?;
        for _ in 0..tx_queues {
            this.tx.push(TxSlot::new(), GFP_KERNEL)?;
        }
        Ok(this)
    }

    /// TX queue `index`.
    #[inline]
    pub(crate) fn tx(&self, index: u32) -> Option<&TxSlot<T>> {
        self.tx.get(index as usize)
    }

    /// How many TX queues the core may choose from.
    #[inline]
    pub(crate) fn kept_tx(&self) -> &Kept {
        &self.kept_tx
    }

    fn napis(&self) -> &Napis<T> {
        // SAFETY: By the type invariant nothing changes them while somebody may call this.
        unsafe { &*self.napis.get() }
    }

    /// NAPI `index`.
    pub(crate) fn napi(&self, index: u32) -> Option<&Instance<T::Napi>> {
        self.napis().get(index as usize).map(|napi| &**napi)
    }
}

impl<T: Driver> Drop for Allocation<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; `Registration` has unregistered the device before it
        // drops its reference, and there is no other.
        unsafe { bindings::free_netdev(self.dev.as_ptr()) };
    }
}

/// A reference to a net device's memory, for what may live as long as the device: interrupt
/// handlers, page pools. The device may not be registered yet, or not any more.
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

    pub(crate) fn allocation(&self) -> *const Allocation<T> {
        Arc::as_ptr(&self.0)
    }

    /// TX queue `index`.
    pub(crate) fn tx(&self, index: u32) -> Option<&TxSlot<T>> {
        self.0.tx(index)
    }

    /// Says whether the link is up: while it is, the core sends.
    ///
    /// May be called from any context, also before the device is registered.
    pub fn set_carrier(&self, up: bool) {
        // SAFETY: The memory is valid; nothing is done to a device that is not registered any more.
        unsafe { fields::set_carrier(self.as_raw(), up) };
    }

    /// Returns whether the interface is up, or is being brought up.
    pub fn is_running(&self) -> bool {
        // SAFETY: The memory is valid.
        unsafe { fields::is_running(self.as_raw()) }
    }

    /// Logs whether the link is up. May be called from any context.
    pub fn log_link(&self, up: bool) {
        let state = if up { c"up" } else { c"down" };

        // SAFETY: The memory is valid; the format takes one string.
        unsafe {
            bindings::netdev_info(
                self.as_raw(),
                c"link is %s\n".as_char_ptr(),
                state.as_char_ptr(),
            );
        }
    }

    /// The features in use now.
    #[inline]
    pub fn features(&self) -> Features {
        // SAFETY: The memory is valid.
        unsafe { Features::of(self.as_raw()) }
    }
}

/// The one owner of what is to end with the device: its NAPIs, what they have scheduled, and the state
/// of its TX queues. Dropping it ends them, whatever the driver has forgotten.
///
/// # Invariants
///
/// The device is not registered when this is dropped, nor when [`Self::close`] is called.
pub(crate) struct Owner<T: Driver> {
    dev: DeviceRef<T>,
    closed: bool,
}

impl<T: Driver> Owner<T> {
    /// # Safety
    ///
    /// There must be no other, and the invariant must hold.
    pub(crate) unsafe fn new(dev: DeviceRef<T>) -> Self {
        Self { dev, closed: false }
    }

    /// The device.
    pub(crate) fn device(&self) -> &DeviceRef<T> {
        &self.dev
    }

    /// Adds a NAPI to a device that was not registered yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The device must not have been registered yet.
    pub(crate) unsafe fn add_napi(
        &mut self,
        config: napi::Config,
        interrupt: <T::Napi as Poll>::Interrupt,
        state: T::Napi,
    ) -> Result<Scheduler<T>> {
        let raw = self.dev.as_raw();
        // SAFETY: Nobody looks at them before the device is registered, and `&mut self` excludes
        // another change.
        let napis = unsafe { &mut *self.dev.0.napis.get() };
        // CAST: They are few.
        let index = napis.len() as u32;

        napis.reserve(1, GFP_KERNEL)?;
        if let Some(irq) = config.irq {
            // SAFETY: The device is valid.
            unsafe { fields::spread_irq(raw, irq, index) }?;
        }
        // SAFETY: It becomes part of the device's memory.
        let napi = KBox::pin_init(
            unsafe { Instance::new(raw, index, config, interrupt, state) },
            GFP_KERNEL,
        )?;
        let scheduler: *const Instance<T::Napi> = &*napi;

        napis.push(napi, GFP_KERNEL)?;
        // SAFETY: It is one of the device's.
        Ok(unsafe { Scheduler::new(self.dev.clone(), scheduler) })
    }

    /// Ends the NAPIs, and drops their state and that of the TX queues. Either may refer to the device.
    pub(crate) fn close(&mut self) {
        if core::mem::replace(&mut self.closed, true) {
            return;
        }
        for napi in self.dev.0.napis() {
            // SAFETY: By the type invariant the device is not registered, so that no callback has
            // a guard; called once.
            unsafe { napi.close() };
        }
        // SAFETY: By the type invariant.
        unsafe { self.dev.close_tx() };
    }
}

impl<T: Driver> Drop for Owner<T> {
    fn drop(&mut self) {
        self.close();
    }
}
