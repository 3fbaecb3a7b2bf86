// SPDX-License-Identifier: GPL-2.0

//! Transmit: a queue's flow control and byte queue limits.
//!
//! C header: `include/net/netdev_queues.h`

use core::marker::PhantomData;

use kernel::{
    sync::barrier::{
        self,
        Full, //
    }, //
};
use net_bindings as bindings;

use crate::skb::SkBuff;

/// The transmit side of one queue; the core calls it with the queue's lock held.
pub trait Transmit: Send {
    /// Hands `skb` to the device, or drops it (`ndo_start_xmit`).
    ///
    /// `more` says that another frame follows at once: the doorbell may wait for it, unless
    /// [`TxQueue::sent`] asks for it now. A queue must be stopped before it can be full: there is
    /// no way to say "busy".
    fn transmit(&mut self, skb: SkBuff, queue: TxQueue<'_>, more: bool);
}

/// A `struct netdev_queue`: how the core sees one TX queue.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
#[derive(Copy, Clone)]
pub struct TxQueue<'a>(*mut bindings::netdev_queue, PhantomData<&'a ()>);

impl TxQueue<'_> {
    /// # Safety
    ///
    /// `dev` must be an allocated net device for as long as the result is used.
    pub(crate) unsafe fn of(dev: *mut bindings::net_device, index: u32) -> Self {
        // SAFETY: As this function requires; the index stays in the array that was allocated.
        unsafe {
            let index = index.min((*dev).num_tx_queues.saturating_sub(1));
            Self(bindings::net_shim_get_tx_queue(dev, index), PhantomData)
        }
    }

    /// Runs `f` with the queue's lock held and softirqs off.
    pub(crate) fn locked<R>(self, f: impl FnOnce() -> R) -> R {
        // SAFETY: The pointer is valid by the type invariant.
        unsafe { bindings::net_shim_tx_lock_bh(self.0) };
        let result = f();
        // SAFETY: Locked above.
        unsafe { bindings::net_shim_tx_unlock_bh(self.0) };
        result
    }

    /// Tells the core's watchdog that the queue moves, or need not.
    pub fn used(self) {
        // SAFETY: The pointer is valid by the type invariant.
        unsafe { bindings::net_shim_tx_used(self.0) };
    }

    /// Lets the core send.
    pub fn start(self) {
        // SAFETY: The pointer is valid by the type invariant.
        unsafe { bindings::net_shim_tx_start_queue(self.0) };
    }

    /// Lets the core send, and makes it do so if frames are waiting.
    pub fn wake(self) {
        // SAFETY: The pointer is valid by the type invariant.
        unsafe { bindings::net_shim_tx_wake_queue(self.0) };
    }

    /// Keeps the core from sending.
    pub fn stop(self) {
        // SAFETY: The pointer is valid by the type invariant.
        unsafe { bindings::net_shim_tx_stop_queue(self.0) };
    }

    /// Forgets what byte queue limits know: the ring is empty.
    pub fn reset(self) {
        // SAFETY: The pointer is valid by the type invariant.
        unsafe { bindings::net_shim_tx_reset(self.0) };
    }

    /// Accounts for `bytes` that were put on the ring; returns whether the doorbell must ring now.
    #[inline]
    pub fn sent(self, bytes: u32, more: bool) -> bool {
        // SAFETY: The pointer is valid by the type invariant.
        unsafe { bindings::net_shim_tx_sent(self.0, bytes, more) }
    }

    /// Stops the queue when fewer than `needed` descriptors are `available`.
    ///
    /// Against a completion at the same time it looks again after stopping, and wakes the queue at
    /// once if `wake_at` descriptors have become free, as `netif_txq_maybe_stop()` starts it: after
    /// a frame of XDP's the core, which may have seen the queue stopped, would not go on by itself.
    /// Returns whether it was stopped: the doorbell must ring now.
    #[inline]
    pub fn maybe_stop(self, mut available: impl FnMut() -> u32, needed: u32, wake_at: u32) -> bool {
        if available() >= needed {
            return false;
        }

        self.stop();
        // Pairs with the barrier in `completed`.
        barrier::smp_mb(Full);
        if available() >= wake_at {
            self.wake();
        }
        true
    }

    /// Accounts for completed frames, and wakes the queue when `wake_at` descriptors are
    /// `available` (`netif_txq_completed_wake()`). Returns whether it did.
    ///
    /// To be called when descriptors were given back. What was not accounted for with
    /// [`Self::sent`] does not count among `packets`; there may be none.
    #[inline]
    pub fn completed(
        self,
        packets: u32,
        bytes: u32,
        available: impl Fn() -> u32,
        wake_at: u32,
    ) -> bool {
        // Whoever stops the queue after this barrier sees the new consumer index.
        if packets == 0 {
            barrier::smp_mb(Full);
        } else {
            // SAFETY: The pointer is valid by the type invariant. Has a full barrier.
            unsafe { bindings::net_shim_tx_completed(self.0, packets, bytes) };
        }
        // SAFETY: As above.
        let wake = available() >= wake_at && unsafe { bindings::net_shim_tx_queue_stopped(self.0) };
        if wake {
            self.wake();
        }
        wake
    }
}
