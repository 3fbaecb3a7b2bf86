// SPDX-License-Identifier: GPL-2.0

//! NAPIs as the control path has them.

use core::ops::Range;

use kernel::{
    prelude::*,
    sync::atomic::Relaxed, //
};
use net_bindings as bindings;

use super::{
    schedule,
    Instance,
    Poll, //
};
use crate::{
    device::{
        DeviceRef,
        Driver,
        Locked, //
    },
    page_pool,
    xdp::{
        Pool,
        Pools, //
    }, //
};

/// What state a NAPI is in.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The core does not know it.
    Unlisted,
    /// It is not polled.
    Disabled,
    /// It may be polled at any time.
    Enabled,
}

/// A NAPI of a device whose instance lock is held.
pub enum Napi<'a, T: Driver> {
    /// The core does not know it.
    Unlisted(Unlisted<'a, T>),
    /// It is not polled.
    Disabled(Disabled<'a, T>),
    /// It may be polled at any time.
    Enabled(Enabled<'a, T>),
}

/// The one guard of a NAPI that is out.
///
/// # Invariants
///
/// `instance` is one of the NAPIs of `dev`; `borrowed` is set in it because of this guard.
struct Guard<'a, T: Driver> {
    instance: &'a Instance<T::Napi>,
    dev: Locked<'a, T>,
}

impl<T: Driver> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.instance.borrowed.set(false);
    }
}

impl<T: Driver> Guard<'_, T> {
    /// # Safety
    ///
    /// The NAPI must not be enabled.
    unsafe fn state(&mut self) -> &mut T::Napi {
        // SAFETY: By the invariant of `Instance` the state is this guard's, as the NAPI is not
        // enabled.
        unsafe { &mut *self.instance.state.get() }
    }

    fn set(&self, phase: Phase) {
        self.instance.phase.set(phase);
    }
}

/// A NAPI that the core does not know: the control path has its state.
pub struct Unlisted<'a, T: Driver>(Guard<'a, T>);

/// A NAPI that is not polled: the control path has its state.
pub struct Disabled<'a, T: Driver>(Guard<'a, T>);

/// A NAPI that may be polled at any time.
pub struct Enabled<'a, T: Driver>(Guard<'a, T>);

impl<'a, T: Driver> Locked<'a, T> {
    /// NAPI `index`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is none of that number, `EBUSY` if it is in use already: there is one
    /// guard at a time.
    pub fn napi(&self, index: u32) -> Result<Napi<'a, T>> {
        let instance = self.device().napi(index).ok_or(EINVAL)?;

        if instance.borrowed.replace(true) {
            return Err(EBUSY);
        }
        // INVARIANT: Set above.
        let guard = Guard {
            instance,
            dev: *self,
        };

        Ok(match instance.phase.get() {
            Phase::Unlisted => Napi::Unlisted(Unlisted(guard)),
            Phase::Disabled => Napi::Disabled(Disabled(guard)),
            Phase::Enabled => Napi::Enabled(Enabled(guard)),
        })
    }

    /// Changes what belongs to NAPI `index`, which is disabled for that time.
    ///
    /// # Errors
    ///
    /// As for [`Self::napi`].
    pub fn change_napi<R>(&self, index: u32, change: impl FnOnce(&mut T::Napi) -> R) -> Result<R> {
        Ok(match self.napi(index)? {
            Napi::Unlisted(mut napi) => change(napi.state()),
            Napi::Disabled(mut napi) => change(napi.state()),
            Napi::Enabled(napi) => {
                let mut napi = napi.disable();
                let result = change(napi.state());

                napi.enable().schedule();
                result
            }
        })
    }
}

impl<P: Poll> Instance<P> {
    /// The memory of the AF_XDP socket that is bound to RX queue `queue`, one of this NAPI's.
    ///
    /// # Safety
    ///
    /// The caller must be the poll, or have the guard while the NAPI is not enabled, for as long as
    /// it uses the result.
    #[inline]
    pub(super) unsafe fn pool(&self, queue: u32) -> Option<&Pool> {
        // SAFETY: By the type invariant they are the caller's; nobody changes them meanwhile.
        unsafe { &*self.pools.get() }.get(queue)
    }
}

impl<T: Driver> Locked<'_, T> {
    /// Changes what AF_XDP sockets have bound to the queues of the NAPI that polls RX queue `queue`.
    /// The NAPI is disabled for that time.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no NAPI polls that queue.
    ///
    /// # Safety
    ///
    /// No guard of a NAPI may be in use; one may have been forgotten.
    pub(crate) unsafe fn change_pools<R>(
        &self,
        queue: u32,
        change: impl FnOnce(&mut Pools) -> R,
    ) -> Result<R> {
        let mut napis = (0..).map_while(|index| self.device().napi(index));
        let instance = napis
            .find(|napi| napi.config.rx.contains(&queue))
            .ok_or(EINVAL)?;
        let enabled = instance.phase.get() == Phase::Enabled;

        if enabled {
            // SAFETY: The NAPI is enabled and the instance lock is held.
            unsafe { bindings::napi_disable_locked(instance.as_raw()) };
        }
        // SAFETY: It is not polled, and no guard is in use.
        let result = change(unsafe { &mut *instance.pools.get() });
        if enabled {
            instance.moderate_again();
            // SAFETY: Disabled above.
            unsafe { bindings::napi_enable_locked(instance.as_raw()) };
            schedule::schedule(instance.as_raw());
        }
        Ok(result)
    }

    /// Lets the kernel's DIM library decide how far apart the interrupts of NAPI `index` are, or
    /// does not any more. The NAPI is disabled for that time.
    ///
    /// # Errors
    ///
    /// As for [`Self::napi`].
    pub fn moderate_napi(&self, index: u32, moderate: bool) -> Result {
        let instance = self.device().napi(index).ok_or(EINVAL)?;

        self.change_napi(index, |_| instance.moderation.enable(moderate))
    }
}

impl<'a, T: Driver> Napi<'a, T> {
    /// # Errors
    ///
    /// `EBUSY` if it is listed.
    pub fn unlisted(self) -> Result<Unlisted<'a, T>> {
        match self {
            Self::Unlisted(napi) => Ok(napi),
            Self::Disabled(_) | Self::Enabled(_) => Err(EBUSY),
        }
    }

    /// # Errors
    ///
    /// `EBUSY` if it is enabled, `ENETDOWN` if it is not listed.
    pub fn disabled(self) -> Result<Disabled<'a, T>> {
        match self {
            Self::Disabled(napi) => Ok(napi),
            Self::Enabled(_) => Err(EBUSY),
            Self::Unlisted(_) => Err(ENETDOWN),
        }
    }

    /// # Errors
    ///
    /// `ENETDOWN` if it is not enabled.
    pub fn enabled(self) -> Result<Enabled<'a, T>> {
        match self {
            Self::Enabled(napi) => Ok(napi),
            Self::Disabled(_) | Self::Unlisted(_) => Err(ENETDOWN),
        }
    }

    /// Has it polled no more, if it was; `None` if it is not listed.
    pub fn quiesce(self) -> Option<Disabled<'a, T>> {
        match self {
            Self::Enabled(napi) => Some(napi.disable()),
            Self::Disabled(napi) => Some(napi),
            Self::Unlisted(_) => None,
        }
    }
}

impl<'a, T: Driver> Unlisted<'a, T> {
    /// The state.
    pub fn state(&mut self) -> &mut T::Napi {
        // SAFETY: It is not listed, so it is not enabled.
        unsafe { self.0.state() }
    }

    /// Makes it known to the core, with what users had set on the NAPI of its number, and as the
    /// one that serves its queues.
    pub fn list(self) -> Disabled<'a, T> {
        let instance = self.0.instance;
        let dev = self.0.dev.device().as_raw();

        // SAFETY: The device is locked, and by the invariant of `Instance` the NAPI is one of its
        // own, not listed, and has settings if its number is one of them. CAST: Numbers of
        // interrupts are small.
        unsafe {
            bindings::net_shim_napi_add(
                dev,
                instance.as_raw(),
                Some(Instance::<T::Napi>::poll),
                instance.index,
            );
            if let Some(irq) = instance.config.irq {
                bindings::netif_napi_set_irq_locked(instance.as_raw(), irq as c_int);
            }
        }
        link(instance, instance.as_raw());
        // INVARIANT: The core knows it.
        self.0.set(Phase::Disabled);
        Disabled(self.0)
    }
}

impl<'a, T: Driver> Disabled<'a, T> {
    /// The state.
    pub fn state(&mut self) -> &mut T::Napi {
        // SAFETY: It is disabled.
        unsafe { self.0.state() }
    }

    /// As [`Completion::pool`](super::Completion::pool).
    pub fn pool(&self, queue: u32) -> Option<&Pool> {
        // SAFETY: It is disabled, and this does not outlive the guard.
        unsafe { self.0.instance.pool(queue) }
    }

    /// Has the core forget it, and waits until nobody looks at it. Its interrupt may come and does
    /// nothing.
    pub fn unlist(self) -> Unlisted<'a, T> {
        // SAFETY: The NAPI is listed and disabled, and the instance lock is held.
        unsafe { delete(self.0.instance) };
        Unlisted(self.0)
    }

    /// Lets the core poll, and says so to the queues' users.
    pub fn enable(self) -> Enabled<'a, T> {
        self.0.instance.moderate_again();
        self.0.instance.watch_again();
        // INVARIANT: The guard lets go of the state.
        self.0.set(Phase::Enabled);
        // SAFETY: The NAPI is disabled and the instance lock is held.
        unsafe { bindings::napi_enable_locked(self.0.instance.as_raw()) };
        Enabled(self.0)
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.0.instance.as_raw()
    }
}

impl<'a, T: Driver> Enabled<'a, T> {
    /// Waits for a poll that is running, and keeps further ones from starting.
    pub fn disable(self) -> Disabled<'a, T> {
        // SAFETY: The NAPI is enabled and the instance lock is held.
        unsafe { bindings::napi_disable_locked(self.0.instance.as_raw()) };
        // INVARIANT: No poll has the state any more.
        self.0.set(Phase::Disabled);
        Disabled(self.0)
    }

    /// Polls soon: for work whose interrupt may have been missed.
    pub fn schedule(&self) {
        schedule::schedule(self.0.instance.as_raw());
    }
}

impl<T: Driver> page_pool::Sealed for Disabled<'_, T> {}

/// In the control path, nothing is being polled.
impl<T: Driver> page_pool::Context for Disabled<'_, T> {
    fn polls(&self) -> *const bindings::napi_struct {
        core::ptr::null()
    }
}

/// A page pool's hold on the NAPI that it is attached to.
///
/// # Invariants
///
/// `instance` is part of the memory of the device.
pub(crate) struct Attachment<T: Driver> {
    instance: *const Instance<T::Napi>,
    _dev: DeviceRef<T>,
}

impl<T: Driver> Attachment<T> {
    pub(crate) fn new(napi: &Disabled<'_, T>) -> Self {
        // INVARIANT: By that of `Guard`.
        Self {
            instance: napi.0.instance,
            _dev: napi.0.dev.device().hold(),
        }
    }

    fn instance(&self) -> &Instance<T::Napi> {
        // SAFETY: By the type invariant.
        unsafe { &*self.instance }
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.instance().as_raw()
    }

    /// Returns whether the NAPI may be polled now or later: its device is not gone.
    pub(crate) fn may_be_polled(&self) -> bool {
        !self.instance().closed.load(Relaxed)
    }
}

/// Says which NAPI serves the queues of `instance`: `napi`, or none.
fn link<P: Poll>(instance: &Instance<P>, napi: *mut bindings::napi_struct) {
    let dev = instance.dev;
    let queues = |range: &Range<u32>, count: u32, kind| {
        for index in range.start..range.end.min(count) {
            // SAFETY: The device has the queue, and its lock is held.
            unsafe { bindings::netif_queue_set_napi(dev, index, kind, napi) };
        }
    };

    // SAFETY: The device is valid; the numbers never change.
    let (rx, tx) = unsafe { ((*dev).num_rx_queues, (*dev).num_tx_queues) };
    queues(
        &instance.config.rx,
        rx,
        bindings::netdev_queue_type_NETDEV_QUEUE_TYPE_RX,
    );
    queues(
        &instance.config.tx,
        tx,
        bindings::netdev_queue_type_NETDEV_QUEUE_TYPE_TX,
    );
}

/// Has the core forget a NAPI.
///
/// # Safety
///
/// It must be listed and disabled, and the instance lock held.
pub(super) unsafe fn delete<P: Poll>(instance: &Instance<P>) {
    let napi = instance.as_raw();

    link(instance, core::ptr::null_mut());
    // SAFETY: As this function requires. The end of the last poll may have armed the timer again
    // after the NAPI was disabled.
    unsafe {
        bindings::netif_napi_set_irq_locked(napi, -1);
        bindings::__netif_napi_del_locked(napi);
        // Readers of the core's may have found it.
        bindings::synchronize_net();
        schedule::cancel_timer(napi);
    }
    // INVARIANT: The core does not know it.
    instance.phase.set(Phase::Unlisted);
}
