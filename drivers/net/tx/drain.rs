// SPDX-License-Identifier: GPL-2.0

//! Retired TX queues lose nothing.
//!
//! When fewer queues are in use than before, the core drops what their qdiscs still hold: frames
//! that a full ring or byte queue limits held back. So the core is kept from choosing them before
//! they go, and they are left alone until their qdiscs are empty.

use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};
use net_bindings as bindings;

use super::RawQueue;
use crate::{
    device::{
        Driver,
        Locked,
        NetDevice, //
    },
    ops::Table, //
};

/// How often a queue is looked at, and how long to wait between: a device that does not send must
/// not hold up its user for long.
const TRIES: u32 = 500;
const PAUSE: Delta = Delta::from_millis(1);

/// How many TX queues the core may choose from: all, unless some are about to go.
pub(crate) struct Kept(Atomic<u32>);

impl Kept {
    pub(crate) fn all() -> Self {
        Self(Atomic::new(u32::MAX))
    }
}

impl<T: Driver> Locked<'_, T> {
    /// Runs `change`, which has the core use the first `kept` TX queues only, when the others have
    /// sent what waits for them; after half a second at the latest.
    pub(crate) fn when_drained<R>(&self, kept: u32, change: impl FnOnce() -> R) -> R {
        // SAFETY: The device is valid, and its lock guards the number.
        let in_use = unsafe { (*self.device().as_raw()).real_num_tx_queues };

        if kept == 0 || kept >= in_use || !self.is_running() {
            return change();
        }
        let choice = self.device().kept_tx();

        choice.0.store(kept, Relaxed);
        // Waits for transmissions in flight, which may have chosen any queue.
        // SAFETY: We may sleep.
        unsafe { bindings::synchronize_net() };
        for _ in 0..TRIES {
            if (kept..in_use).all(|index| self.tx_is_drained(index)) {
                break;
            }
            fsleep(PAUSE);
        }
        let result = change();
        choice.0.store(u32::MAX, Relaxed);
        result
    }

    fn tx_is_drained(&self, index: u32) -> bool {
        self.tx_queue(index)
            // SAFETY: The queue is valid by its type's invariant.
            .is_none_or(|(RawQueue(queue), _)| unsafe { bindings::net_shim_tx_drained(queue) })
    }
}

impl<T: Driver> Table<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `ndo_select_queue`.
    pub(crate) unsafe extern "C" fn select_queue(
        dev: *mut bindings::net_device,
        skb: *mut bindings::sk_buff,
        subordinate: *mut bindings::net_device,
    ) -> u16 {
        // SAFETY: The core calls with valid arguments, and as it would call this itself.
        let chosen = unsafe { bindings::netdev_pick_tx(dev, skb, subordinate) };
        // SAFETY: The core calls with a device of `T`.
        let dev = unsafe { NetDevice::<T>::from_raw(dev) };
        let kept = dev.kept_tx().0.load(Relaxed);

        if u32::from(chosen) < kept {
            return chosen;
        }
        // CAST: Less than `chosen`.
        u32::from(chosen).checked_rem(kept).unwrap_or(0) as u16
    }
}
