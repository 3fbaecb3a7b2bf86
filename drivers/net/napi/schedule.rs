// SPDX-License-Identifier: GPL-2.0

//! When a NAPI polls.

use kernel::time::{
    msecs_to_jiffies,
    Jiffies,
    Msecs, //
};
use net_bindings as bindings;

use super::Instance;
use crate::device::{
    DeviceRef,
    Driver, //
};

/// After how long a starved NAPI polls again, in nanoseconds.
const RETRY_NS: i64 = 10_000_000;
/// After how long one polls whose interrupt may have been lost: as often as the C driver `igb` looks.
const WATCH_MS: Msecs = 2000;

/// Schedules a NAPI, enabled or not, from any context.
///
/// # Invariants
///
/// `napi` is part of the device's memory.
pub struct Scheduler<T: Driver> {
    napi: *const Instance<T::Napi>,
    dev: DeviceRef<T>,
}

impl<T: Driver> Clone for Scheduler<T> {
    fn clone(&self) -> Self {
        // INVARIANT: That of `self`.
        Self {
            napi: self.napi,
            dev: self.dev.clone(),
        }
    }
}

// SAFETY: A NAPI may be scheduled from any thread, and its memory lives as long as the device's.
unsafe impl<T: Driver> Send for Scheduler<T> {}
// SAFETY: As above.
unsafe impl<T: Driver> Sync for Scheduler<T> {}

impl<T: Driver> Scheduler<T> {
    /// # Safety
    ///
    /// `napi` must be one of the device's.
    pub(crate) unsafe fn new(dev: DeviceRef<T>, napi: *const Instance<T::Napi>) -> Self {
        // INVARIANT: As this function requires.
        Self { napi, dev }
    }

    /// Polls soon. While the NAPI is disabled this does nothing.
    #[inline]
    pub fn schedule(&self) {
        // SAFETY: Valid by the type invariant.
        schedule(unsafe { (*self.napi).as_raw() });
    }
}

#[inline]
pub(super) fn schedule(napi: *mut bindings::napi_struct) {
    // SAFETY: Called with a valid NAPI; a disabled one, and one that was not added, counts as
    // scheduled.
    unsafe {
        if bindings::napi_schedule_prep(napi) {
            bindings::__napi_schedule(napi);
        }
    }
}

/// Polls again after a while. Uses the core's own timer of the NAPI, whose function schedules it:
/// no function of a module is called. The core may have set it to flush what GRO holds, sooner.
pub(super) fn retry(napi: *mut bindings::napi_struct) {
    // SAFETY: As for `poll_in`.
    let sooner = is_set(napi)
        && unsafe { bindings::__hrtimer_get_remaining(&raw const (*napi).timer, false) }
            <= RETRY_NS;

    if !sooner {
        poll_in(napi, RETRY_NS);
    }
}

/// Polls again after a long while, if the timer is not set.
#[inline]
pub(super) fn watch(napi: *mut bindings::napi_struct) {
    if !is_set(napi) {
        poll_in(napi, i64::from(WATCH_MS) * 1_000_000);
    }
}

/// Whether the timer is set: others may change that meanwhile.
#[inline]
fn is_set(napi: *mut bindings::napi_struct) -> bool {
    // SAFETY: As for `poll_in`.
    unsafe { (&raw const (*napi).timer.is_queued).read_volatile() }
}

/// When a NAPI is looked at next, in jiffies.
#[derive(Copy, Clone)]
pub(super) struct Watch(Jiffies);

impl Watch {
    pub(super) fn begin() -> Self {
        Self(now().wrapping_add(msecs_to_jiffies(WATCH_MS)))
    }

    /// Whether it is time to (`time_after_eq()`).
    #[inline]
    pub(super) fn is_over(self) -> bool {
        // CAST: The sign says which is later.
        now().wrapping_sub(self.0) as isize >= 0
    }
}

#[inline]
fn now() -> Jiffies {
    // SAFETY: The time is always there.
    unsafe { (&raw const bindings::jiffies).read_volatile() }
}

fn poll_in(napi: *mut bindings::napi_struct, ns: i64) {
    // SAFETY: Called by the NAPI's poll: the timer is set up, as deleting the NAPI, which cancels it,
    // waits for polls.
    unsafe {
        bindings::hrtimer_start_range_ns(
            &raw mut (*napi).timer,
            ns,
            0,
            bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED,
        );
    }
}

/// Waits until the timer does not run any more.
///
/// # Safety
///
/// The NAPI must have been listed.
pub(super) unsafe fn cancel_timer(napi: *mut bindings::napi_struct) {
    // SAFETY: As this function requires.
    unsafe { bindings::hrtimer_cancel(&raw mut (*napi).timer) };
}
