// SPDX-License-Identifier: GPL-2.0

//! Transmit: a queue's state, flow control and byte queue limits.
//!
//! A TX queue has three sides, and each has a type:
//!
//! | side | what it may do | type |
//! |---|---|---|
//! | control path | start and stop it, under the instance lock | [`Locked::start_tx`], [`Locked::stop_tx`] |
//! | transmit | put frames on it, under the queue's lock | [`TxQueue`] |
//! | completion | account for what was sent, in a poll | [`TxCompletion`], of which there is one |
//!
//! While a queue has no state, the core keeps what it wants to send.
//!
//! C header: `include/net/netdev_queues.h`

mod drain;

use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};

use kernel::{
    ffi::c_ulong,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        barrier::{
            self,
            Full, //
        }, //
    },
};
use net_bindings as bindings;

pub(crate) use self::drain::Kept;
use crate::{
    device::{
        DeviceRef,
        Driver,
        Locked, //
    },
    napi::Completion,
    once::{
        read_once,
        test_bit,
        write_once, //
    },
    skb::TxSkb, //
};

/// The transmit side of one queue; the core calls it with the queue's lock held.
pub trait Transmit: Send {
    /// Hands `skb` to the device, or drops it (`ndo_start_xmit`).
    ///
    /// `more` says that another frame follows at once: the doorbell may wait for it, unless
    /// [`TxQueue::sent`] asks for it now. A queue must be stopped before it can be full: there is
    /// no way to say "busy".
    fn transmit(&mut self, skb: TxSkb, queue: TxQueue<'_>, more: bool);
}

/// What the abstraction keeps of one TX queue.
///
/// # Invariants
///
/// `state` is only accessed with the queue's lock held. `completing` says that there is a
/// [`TxCompletion`].
pub(crate) struct TxSlot<T: Driver> {
    state: UnsafeCell<Option<T::Tx>>,
    completing: Atomic<bool>,
}

impl<T: Driver> TxSlot<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: UnsafeCell::new(None),
            completing: Atomic::new(false),
        }
    }

    /// # Safety
    ///
    /// The caller must hold the queue's lock for `'a`, and call this once in that time.
    #[inline]
    pub(crate) unsafe fn state<'a>(&self) -> &'a mut Option<T::Tx> {
        // SAFETY: The lock makes this access exclusive.
        unsafe { &mut *self.state.get() }
    }
}

/// A `struct netdev_queue`, as the core sees it.
///
/// # Invariants
///
/// A TX queue of a device that is valid as long as this is used.
#[derive(Copy, Clone)]
struct RawQueue(*mut bindings::netdev_queue);

impl RawQueue {
    /// # Safety
    ///
    /// `dev` must be a net device that is valid as long as the result is used, and have the queue.
    #[inline]
    unsafe fn of(dev: *mut bindings::net_device, index: u32) -> Self {
        // SAFETY: As this function requires. INVARIANT: As above.
        Self(unsafe { (*dev)._tx.add(index as usize) })
    }

    /// Runs `f` with the queue's lock held and softirqs off.
    fn locked<R>(self, f: impl FnOnce() -> R) -> R {
        // SAFETY: The queue is valid by the type invariant.
        unsafe { bindings::net_shim_tx_lock_bh(self.0) };
        let result = f();
        // SAFETY: Locked above.
        unsafe { bindings::net_shim_tx_unlock_bh(self.0) };
        result
    }

    fn stop(self) {
        // SAFETY: The queue is valid by the type invariant.
        unsafe { bindings::net_shim_tx_stop_queue(self.0) };
    }

    fn wake(self) {
        // SAFETY: The queue is valid by the type invariant.
        unsafe { bindings::netif_tx_wake_queue(self.0) };
    }

    /// `netif_tx_queue_stopped()`.
    #[inline]
    fn is_stopped(self) -> bool {
        let bit = bindings::netdev_queue_state_t___QUEUE_STATE_DRV_XOFF;

        // SAFETY: The queue is valid by the type invariant.
        unsafe { test_bit(bit, &raw const (*self.0).state) }
    }

    /// `netif_tx_start_queue()`.
    fn start(self) {
        self.clear(bindings::netdev_queue_state_t___QUEUE_STATE_DRV_XOFF);
    }

    fn clear(self, bit: u32) {
        // SAFETY: The queue is valid by the type invariant. CAST: A small number.
        unsafe { bindings::clear_bit(bit as c_ulong, &raw mut (*self.0).state) };
    }

    /// `txq_trans_cond_update()`.
    fn used(self) {
        // SAFETY: The queue is valid by the type invariant; the time is always there.
        unsafe {
            let now = read_once(&raw const bindings::jiffies);
            let last = &raw mut (*self.0).trans_start;

            if read_once(last) != now {
                write_once(last, now);
            }
        }
    }

    /// `netdev_tx_reset_queue()`.
    fn reset(self) {
        #[cfg(CONFIG_BQL)]
        {
            self.clear(bindings::netdev_queue_state_t___QUEUE_STATE_STACK_XOFF);
            // SAFETY: The queue is valid by the type invariant; nothing is sent or completed while
            // it is reset.
            unsafe { bindings::dql_reset(&raw mut (*self.0).dql) };
        }
    }
}

/// A TX queue whose lock is held.
#[derive(Copy, Clone)]
pub struct TxQueue<'a> {
    queue: RawQueue,
    /// The lock is this thread's.
    _locked: PhantomData<(&'a (), *mut ())>,
}

impl TxQueue<'_> {
    /// # Safety
    ///
    /// `dev` must be a registered net device, have the queue, and its lock must be held as long as
    /// the result is used.
    #[inline]
    pub(crate) unsafe fn new(dev: *mut bindings::net_device, index: u32) -> Self {
        Self {
            // SAFETY: As this function requires.
            queue: unsafe { RawQueue::of(dev, index) },
            _locked: PhantomData,
        }
    }

    /// Tells the core's watchdog that the queue is alive: for frames that don't come from the core.
    pub fn used(self) {
        self.queue.used();
    }

    /// Counts a packet of `len` bytes that was sent, for a device with
    /// [`Config::software_stats`](crate::registration::Config::software_stats), while it is registered.
    pub fn count_sent(self, len: u32) {
        // SAFETY: The queue is valid by the type invariant, and so is its device.
        unsafe { bindings::net_shim_count_tx((*self.queue.0).dev, len) };
    }

    /// Keeps the core from sending.
    pub(crate) fn stop(self) {
        self.queue.stop();
    }

    /// Accounts for `bytes` that were put on the ring; returns whether the doorbell must ring now.
    #[inline]
    pub fn sent(self, bytes: u32, more: bool) -> bool {
        // SAFETY: The queue is valid by the type invariant, and its lock is held.
        unsafe { bindings::net_shim_tx_sent(self.queue.0, bytes, more) }
    }

    /// Stops the queue when fewer than `needed` descriptors are `available`.
    ///
    /// A completion may race with this, so it checks again after stopping, and wakes the queue if
    /// `wake_at` descriptors have become free. (`netif_txq_maybe_stop()` only starts it: after an
    /// XDP frame, the core may have seen the queue stopped, and would not resume by itself.)
    /// Returns whether it was stopped: the doorbell must ring now.
    #[inline]
    pub fn maybe_stop(self, mut available: impl FnMut() -> u32, needed: u32, wake_at: u32) -> bool {
        if available() >= needed {
            return false;
        }

        self.queue.stop();
        // Pairs with the barrier in `TxCompletion::completed`.
        barrier::smp_mb(Full);
        if available() >= wake_at {
            self.queue.wake();
        }
        true
    }
}

/// The completion side of a TX queue that was started. There is one, so that byte queue limits have
/// one writer; while there is, the queue cannot be started again.
///
/// # Invariants
///
/// The device has the queue, and `completing` is set in its slot because of this.
pub struct TxCompletion<T: Driver> {
    dev: DeviceRef<T>,
    index: u32,
}

impl<T: Driver> TxCompletion<T> {
    /// Accounts for completed frames, and wakes the queue when `wake_at` descriptors are
    /// `available` (`netif_txq_completed_wake()`). Returns whether it did.
    ///
    /// To be called when descriptors are free again. What was not accounted for with
    /// [`TxQueue::sent`] does not count among `packets`; there may be none.
    #[inline]
    pub fn completed(
        &mut self,
        _napi: &Completion<'_, T>,
        packets: u32,
        bytes: u32,
        available: impl Fn() -> u32,
        wake_at: u32,
    ) -> bool {
        // SAFETY: By the type invariant.
        let queue = unsafe { RawQueue::of(self.dev.as_raw(), self.index) };

        // What stops the queue after this barrier sees the new consumer index.
        if packets == 0 {
            barrier::smp_mb(Full);
        } else {
            // SAFETY: The queue is valid, and this is its only completion. Has a full barrier.
            unsafe { bindings::net_shim_tx_completed(queue.0, packets, bytes) };
        }
        let wake = available() >= wake_at && queue.is_stopped();
        if wake {
            queue.wake();
        }
        wake
    }
}

impl<T: Driver> Drop for TxCompletion<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.dev.tx(self.index) {
            slot.completing.store(false, Release);
        }
    }
}

impl<T: Driver> DeviceRef<T> {
    /// Drops the state that the driver has left to TX queues.
    ///
    /// # Safety
    ///
    /// The device must not be registered any more, or never have been.
    pub(crate) unsafe fn close_tx(&self) {
        for (index, slot) in (0..).map_while(|index| Some((index, self.tx(index)?))) {
            // SAFETY: The device is valid, and has the queue, as it has the slot.
            let queue = unsafe { RawQueue::of(self.as_raw(), index) };
            // SAFETY: The queue's lock is held inside this closure.
            let state = queue.locked(|| unsafe { slot.state() }.take());

            drop(state);
        }
    }
}

impl<T: Driver> Locked<'_, T> {
    /// TX queue `index`, if there is one.
    fn tx_queue(&self, index: u32) -> Option<(RawQueue, &TxSlot<T>)> {
        let slot = self.device().tx(index)?;

        // SAFETY: The device is valid, and has the queue, as it has the slot.
        Some((unsafe { RawQueue::of(self.device().as_raw(), index) }, slot))
    }

    /// Gives TX queue `index` its state, with an empty ring. The core sends from
    /// [`Self::wake_tx`] on.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue, `EBUSY` if it has a state, or what completes the last
    /// one is not gone yet. Returns the state.
    pub fn start_tx(
        &self,
        index: u32,
        state: T::Tx,
    ) -> core::result::Result<TxCompletion<T>, (Error, T::Tx)> {
        let Some((queue, slot)) = self.tx_queue(index) else {
            return Err((EINVAL, state));
        };

        queue.locked(|| {
            // SAFETY: The queue's lock is held inside this closure.
            let place = unsafe { slot.state() };

            if place.is_some() || slot.completing.load(Acquire) {
                return Err((EBUSY, state));
            }
            *place = Some(state);
            slot.completing.store(true, Relaxed);
            queue.reset();
            // INVARIANT: Set above.
            Ok(TxCompletion {
                dev: self.device().hold(),
                index,
            })
        })
    }

    /// Lets the core send to TX queue `index`, and has it do so if frames are waiting.
    pub fn wake_tx(&self, index: u32) {
        if let Some((queue, _)) = self.tx_queue(index) {
            queue.wake();
        }
    }

    /// Keeps the core from sending to TX queue `index`, and returns its state. What the core wants
    /// to send waits until the queue is started again.
    pub fn stop_tx(&self, index: u32) -> Option<T::Tx> {
        let (queue, slot) = self.tx_queue(index)?;

        queue.locked(|| {
            queue.stop();
            // SAFETY: The queue's lock is held inside this closure.
            unsafe { slot.state() }.take()
        })
    }

    /// Tells the core that TX queue `index`, stopped and no longer in use, is not hung: its
    /// watchdog checks all queues, even those that are not in use.
    pub fn retire_tx(&self, index: u32) {
        let Some((queue, slot)) = self.tx_queue(index) else {
            return;
        };

        queue.locked(|| {
            // SAFETY: The queue's lock is held inside this closure.
            if unsafe { slot.state() }.is_none() && !slot.completing.load(Acquire) {
                queue.reset();
                queue.start();
            }
        });
    }

    /// Restarts the watchdog timeout of all TX queues: a queue that is stopped while others are
    /// changed is not hung, and the core's watchdog must not take it for one that is.
    pub fn restart_watchdog(&self) {
        // SAFETY: The device is valid; the number never changes.
        let queues = unsafe { (*self.device().as_raw()).num_tx_queues };

        for index in 0..queues {
            if let Some((queue, _)) = self.tx_queue(index) {
                queue.used();
            }
        }
    }
}

/// Runs `f` on the transmit path of TX queue `index` of `dev`, under its lock; `None` if there is
/// none.
///
/// # Safety
///
/// The device must be registered.
pub(crate) unsafe fn with_state<T: Driver, R>(
    dev: &crate::device::NetDevice<T>,
    index: u32,
    f: impl FnOnce(&mut T::Tx, TxQueue<'_>) -> R,
) -> Option<R> {
    let slot = dev.tx(index)?;
    // SAFETY: The device is valid, and has the queue, as it has the slot.
    let queue = unsafe { RawQueue::of(dev.as_raw(), index) };

    queue.locked(|| {
        // SAFETY: The queue's lock is held inside this closure, and the device is registered.
        let (state, queue) = unsafe { (slot.state(), TxQueue::new(dev.as_raw(), index)) };

        state.as_mut().map(|tx| f(tx, queue))
    })
}
