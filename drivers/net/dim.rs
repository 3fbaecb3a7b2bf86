// SPDX-License-Identifier: GPL-2.0

//! Dynamic interrupt moderation: from what a queue receives, the kernel's DIM library decides how
//! long its interrupts wait for one another.
//!
//! C header: `include/linux/dim.h`

use core::{
    marker::PhantomPinned,
    pin::Pin, //
};

use kernel::{
    container_of,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    types::Opaque, //
};
use net_bindings as bindings;

/// How a decision is carried out.
pub trait Moderate: Send + Sync {
    /// Keeps interrupts at least `us` microseconds apart. Called in process context, while packets
    /// are being received.
    fn set_interval(&self, us: u16);
}

/// # Invariants
///
/// `dim` is initialised, and its work function is [`Inner::work`].
#[pin_data(PinnedDrop)]
struct Inner<M: Moderate> {
    #[pin]
    dim: Opaque<bindings::dim>,
    moderate: M,
    /// Something was decided.
    decided: Atomic<bool>,
    #[pin]
    _pin: PhantomPinned,
}

impl<M: Moderate> Inner<M> {
    /// # Safety
    ///
    /// Called by the work queue with the work of an [`Inner`].
    unsafe extern "C" fn work(work: *mut bindings::work_struct) {
        // SAFETY: The work is in a `struct dim`, which is in an `Inner<M>`; that waits for its work
        // before it is dropped.
        let (dim, this) = unsafe {
            let dim = container_of!(work, bindings::dim, work);

            (dim, &*container_of!(Opaque::cast_from(dim), Self, dim))
        };

        // SAFETY: The library does not look at `dim` before the state says so.
        let us = unsafe { bindings::net_shim_dim_rx_usec(dim) };
        this.decided.store(true, Relaxed);
        this.moderate.set_interval(us);
        // SAFETY: As above.
        unsafe { bindings::net_shim_dim_applied(dim) };
    }
}

#[pinned_drop]
impl<M: Moderate> PinnedDrop for Inner<M> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Initialised by the type invariant. Nobody can queue the work any more, because
        // that takes a `&mut Dim`.
        unsafe { bindings::net_dim_work_cancel(self.dim.get()) };
    }
}

/// The moderation of one queue's interrupts. It belongs to the state of the NAPI that polls the
/// queue. Dropping it waits for a decision that is being carried out, so that may sleep.
pub struct Dim<M: Moderate> {
    inner: Pin<KBox<Inner<M>>>,
    events: u16,
}

// SAFETY: A `struct dim` may be used from any thread; `M` is `Send` and `Sync`.
unsafe impl<M: Moderate> Send for Dim<M> {}

impl<M: Moderate> Dim<M> {
    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(moderate: M) -> Result<Self> {
        // INVARIANT: The initialiser of `dim` is what the invariant says.
        let inner = KBox::try_pin_init(
            try_pin_init!(Inner {
                dim <- Opaque::ffi_init(|dim| {
                    // SAFETY: The memory is that of a `struct dim`, pinned from here on.
                    unsafe { bindings::net_shim_dim_init(dim, Some(Inner::<M>::work)) }
                }),
                moderate,
                decided: Atomic::new(false),
                _pin: PhantomPinned,
            }? Error),
            GFP_KERNEL,
        )?;

        Ok(Self { inner, events: 0 })
    }

    /// Has the interval set once more that was decided last, if any was, in a device that may have
    /// forgotten it.
    pub fn set_again(&mut self) {
        if !self.inner.decided.load(Relaxed) {
            return;
        }
        // SAFETY: Initialised by the type invariant. `&mut self` excludes a sample, so that nothing
        // is decided meanwhile.
        let us = unsafe { bindings::net_shim_dim_rx_usec(self.inner.dim.get()) };

        self.inner.moderate.set_interval(us);
    }

    /// Takes note that an interrupt's work is done, and of how many packets and bytes the queue has
    /// received in its life.
    pub fn sample(&mut self, packets: u64, bytes: u64) {
        self.events = self.events.wrapping_add(1);
        // SAFETY: Initialised by the type invariant, and `&mut self` makes this the only sample.
        unsafe {
            bindings::net_shim_dim_sample(self.inner.dim.get(), self.events, packets, bytes);
        }
    }
}
