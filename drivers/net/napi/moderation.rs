// SPDX-License-Identifier: GPL-2.0

//! Dynamic interrupt moderation: from what a NAPI receives, the kernel's DIM library decides how
//! far apart its interrupts are.
//!
//! C header: `include/linux/dim.h`

use core::cell::Cell;

use kernel::{
    container_of,
    prelude::*,
    static_lock_class,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        ClockSource,
        Monotonic, //
    },
    types::Opaque, //
};
use net_bindings as bindings;

use super::{
    Instance,
    Interrupt,
    Poll, //
};

type WorkFn = unsafe extern "C" fn(*mut bindings::work_struct);

/// The moderation of one NAPI.
///
/// # Invariants
///
/// `dim` is initialised. `enabled` and `events` belong to what has the NAPI's state: its poll, or
/// a guard.
#[pin_data]
pub(super) struct Moderation {
    #[pin]
    dim: Opaque<bindings::dim>,
    /// Something was decided.
    decided: Atomic<bool>,
    enabled: Cell<bool>,
    events: Cell<u16>,
}

/// Makes a `struct dim` whose decisions `work` carries out.
///
/// # Safety
///
/// `dim` must be memory that can be written, and stay where it is.
unsafe fn init(dim: *mut bindings::dim, work: WorkFn) {
    // SAFETY: As this function requires; zeroes are a `struct dim`.
    unsafe {
        dim.write_bytes(0, 1);
        (*dim).mode = bindings::dim_cq_period_mode_DIM_CQ_PERIOD_MODE_START_FROM_EQE as u8;
        bindings::init_work_with_key(
            &raw mut (*dim).work,
            Some(work),
            false,
            c"dim".as_char_ptr(),
            static_lock_class!().as_ptr(),
        );
    }
}

/// The interval of the profile that was decided on, in microseconds.
///
/// # Safety
///
/// `dim` must be initialised, and the library not be changing it.
unsafe fn rx_usec(dim: *const bindings::dim) -> u16 {
    // SAFETY: As this function requires.
    unsafe { bindings::net_dim_get_rx_moderation((*dim).mode, (*dim).profile_ix.into()).usec }
}

impl Moderation {
    pub(super) fn new(work: WorkFn) -> impl PinInit<Self> {
        // INVARIANT: Initialised here.
        pin_init!(Self {
            dim <- Opaque::ffi_init(|dim| {
                // SAFETY: The memory is that of a `struct dim`, pinned from here on; zeroes are one.
                unsafe { init(dim, work) }
            }),
            decided: Atomic::new(false),
            enabled: Cell::new(false),
            events: Cell::new(0),
        })
    }

    /// Begins to decide, or waits for a decision that is being carried out and ends.
    pub(super) fn enable(&self, enable: bool) {
        if self.enabled.replace(enable) && !enable {
            // SAFETY: Initialised by the type invariant.
            unsafe { bindings::net_dim_work_cancel(self.dim.get()) };
            self.decided.store(false, Relaxed);
        }
    }

    /// Nothing is decided any more, also not by what has been queued.
    pub(super) fn close(&self) {
        self.enable(false);
    }

    #[inline]
    pub(super) fn sample(&self, received: impl FnOnce() -> (u64, u64)) {
        if !self.enabled.get() {
            return;
        }
        let (packets, bytes) = received();
        let events = self.events.get().wrapping_add(1);

        self.events.set(events);
        // CAST: The library wants the counters' low bits (`dim_update_sample()`).
        let sample = bindings::dim_sample {
            time: Monotonic::ktime_get(),
            pkt_ctr: packets as u32,
            byte_ctr: bytes as u32,
            event_ctr: events,
            ..pin_init::zeroed()
        };
        // SAFETY: Initialised by the type invariant; called by the poll, so that there is one
        // sample at a time.
        unsafe { bindings::net_dim(self.dim.get(), &sample) };
    }

    /// The interval that was decided last, if any was.
    fn decided(&self) -> Option<u16> {
        let decided = self.enabled.get() && self.decided.load(Relaxed);

        // SAFETY: Initialised by the type invariant.
        decided.then(|| unsafe { rx_usec(self.dim.get()) })
    }
}

impl<P: Poll> Instance<P> {
    /// Carries a decision out.
    ///
    /// # Safety
    ///
    /// Called by the work queue with the work of an [`Instance`].
    pub(super) unsafe extern "C" fn moderate(work: *mut bindings::work_struct) {
        // SAFETY: The work is in the `Moderation` of an `Instance<P>`, which waits for its work
        // before it goes.
        let (dim, this) = unsafe {
            let dim = container_of!(work, bindings::dim, work);
            let moderation = container_of!(Opaque::cast_from(dim), Moderation, dim);

            (dim, &*container_of!(moderation, Self, moderation))
        };

        // SAFETY: The library does not look at `dim` before the state says so.
        let us = unsafe { rx_usec(dim) };
        this.moderation.decided.store(true, Relaxed);
        this.interrupt.set_interval(us);
        // SAFETY: As above. Measure again.
        unsafe { (*dim).state = bindings::dim_state_DIM_START_MEASURE as u8 };
    }

    /// Sets the interval once more that was decided last, in a device that may have forgotten it.
    pub(super) fn moderate_again(&self) {
        if let Some(us) = self.moderation.decided() {
            self.interrupt.set_interval(us);
        }
    }
}
