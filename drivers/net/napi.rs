// SPDX-License-Identifier: GPL-2.0

//! NAPI: polling under the core's budget.
//!
//! A NAPI owns the state that its poll function works on. While it is enabled, only the poll
//! function can reach that state; else only the control path. Which of the two holds is the
//! handle's type:
//!
//! ```text
//!            list                enable
//! Unlisted ---------> Disabled ---------> Enabled
//!          <---------          <---------
//!            unlist              disable
//! ```
//!
//! The core knows a NAPI from [`Unlisted::list`] on: it shows it in the netdev netlink family, with
//! its interrupt, and keeps a thread for it if it is threaded. A NAPI of an interface that is down
//! has to be unlisted: turning threading off waits for each that is listed. What users set on a
//! NAPI, its number, and its interrupt's affinity stay in the net device until it is listed again
//! (`struct napi_config`).
//!
//! C header: `include/linux/netdevice.h`

use core::{
    cell::{
        Cell,
        UnsafeCell, //
    },
    marker::PhantomData,
    pin::Pin, //
};

use kernel::{
    container_of,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use net_bindings as bindings;

use crate::{
    device::{
        DeviceRef,
        Driver,
        Locked, //
    },
    skb::{
        self,
        Hash,
        Received,
        SkBuff, //
    }, //
};

/// How a poll ended.
pub enum Outcome {
    /// All is done; so many packets were received.
    Done(u32),
    /// There is more to do than the budget allows.
    More,
    /// Done for now, but memory for new packets was short: no interrupt will come when it is
    /// there again, so poll once more after a while.
    Starved(u32),
}

/// The state and code of one NAPI.
pub trait Poll: Send {
    /// The driver whose device it is.
    type Driver: Driver;

    /// What unmasking the interrupt needs, and nothing that `poll` changes.
    type Interrupt: Send + Sync;

    /// Completes transmits and receives up to `budget` packets; with a budget of 0 only the
    /// former (`struct napi_struct::poll`).
    fn poll(&mut self, napi: &Context<'_>, budget: u32) -> Outcome;

    /// Unmasks the interrupt. Another poll may be running again.
    fn unmask(interrupt: &Self::Interrupt);
}

/// After how long a starved NAPI polls again, in nanoseconds.
const RETRY_NS: u64 = 10_000_000;

/// # Invariants
///
/// - `napi` is valid; the core knows it between [`Unlisted::list`] and [`Disabled::unlist`].
/// - `state` belongs to the poll function while the NAPI is enabled, else to the handle.
#[pin_data(PinnedDrop)]
struct Napi<P: Poll> {
    #[pin]
    napi: Opaque<bindings::napi_struct>,
    state: UnsafeCell<P>,
    interrupt: P::Interrupt,
    index: u32,
    irq: u32,
    dev: DeviceRef<P::Driver>,
}

// SAFETY: `state` has one user at a time by the type invariant and is `Send`; the rest is `Sync`.
unsafe impl<P: Poll> Sync for Napi<P> {}
// SAFETY: As above.
unsafe impl<P: Poll> Send for Napi<P> {}

impl<P: Poll> Napi<P> {
    /// # Safety
    ///
    /// Called by the core with a NAPI that [`Unlisted::list`] added.
    unsafe extern "C" fn poll(napi: *mut bindings::napi_struct, budget: c_int) -> c_int {
        // SAFETY: The NAPI is embedded in a `Napi<P>`, which outlives its polls.
        let this = unsafe { &*container_of!(Opaque::cast_from(napi), Self, napi) };
        let context = Context {
            napi,
            redirected: Cell::new(false),
            _poll: PhantomData,
        };
        let budget = u32::try_from(budget).unwrap_or(0);

        // SAFETY: The NAPI is enabled and the core polls it in one place at a time.
        let outcome = unsafe { &mut *this.state.get() }.poll(&context, budget);

        if context.redirected.get() {
            // SAFETY: In the NAPI that the frames were received in.
            unsafe { bindings::xdp_do_flush() };
        }
        let (work, starved) = match outcome {
            Outcome::Done(work) => (work, false),
            Outcome::Starved(work) => (work, true),
            Outcome::More => (budget, false),
        };
        // CAST: Budgets are small.
        let work = work.min(budget) as c_int;

        // Only a poll that had a budget and did not use it up may complete.
        // CAST: As above.
        if budget == 0 || work == budget as c_int {
            return work;
        }
        // SAFETY: We are the poll function. After this the state is not ours any more.
        if unsafe { bindings::napi_complete_done(napi, work) } {
            if starved {
                // SAFETY: The NAPI is valid; disabling or deleting it cancels the timer.
                unsafe { bindings::net_shim_napi_retry_after(napi, RETRY_NS) };
            }
            P::unmask(&this.interrupt);
        }

        work
    }
}

#[pinned_drop]
impl<P: Poll> PinnedDrop for Napi<P> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The NAPI is valid; handles are gone, and the `Enabled` among them has disabled
        // it. Waits until nobody looks at it any more; if it is listed yet, takes the instance
        // lock, which is never held where handles are dropped: they live in the driver's shared or
        // control state, which goes after the device is unregistered.
        // CAST: Queue numbers are small.
        unsafe { bindings::net_shim_napi_del(self.napi.get(), self.index as c_int) };
    }
}

/// A NAPI that the core does not know: the control path has its state.
pub struct Unlisted<P: Poll> {
    napi: Arc<Napi<P>>,
    /// When it was unlisted, in RCU grace periods: a reader of the list may still be at it.
    since: usize,
}

/// A NAPI that is not polled: the control path has its state.
pub struct Disabled<P: Poll>(Arc<Napi<P>>);

/// A NAPI that may be polled at any time. Dropping it disables it: do so under the instance lock.
pub struct Enabled<P: Poll>(Arc<Napi<P>>);

/// Schedules a NAPI, enabled or not, from any context.
pub struct Scheduler<P: Poll>(Arc<Napi<P>>);

impl<P: Poll> Unlisted<P> {
    /// Makes NAPI number `index` of a device. `irq` is the interrupt that schedules it, and goes to
    /// the processor that the core proposes, until a user wants another one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device has neither an RX nor a TX queue of that number, `ENOMEM`.
    pub fn new(
        dev: &DeviceRef<P::Driver>,
        index: u32,
        irq: u32,
        interrupt: P::Interrupt,
        state: P,
    ) -> Result<Self> {
        let dev = dev.clone();
        let raw = dev.as_raw();
        let mut since = 0;

        // SAFETY: The device's memory is held by `dev`.
        if index >= unsafe { (*raw).num_napi_configs } {
            return Err(EINVAL);
        }
        let napi = Arc::pin_init(
            try_pin_init!(Napi {
                napi <- Opaque::ffi_init(|slot: *mut bindings::napi_struct| {
                    // SAFETY: The slot is valid for writes, the device's memory is held by `dev`, and
                    // it has settings for that NAPI. CAST: Queue and interrupt numbers are small.
                    since = unsafe {
                        slot.write_bytes(0, 1);
                        bindings::net_shim_napi_init(raw, slot, index as c_int, irq as c_int)
                    };
                }),
                state: UnsafeCell::new(state),
                interrupt,
                index,
                irq,
                dev,
            }? Error),
            GFP_KERNEL,
        )?;

        Ok(Self { napi, since })
    }

    /// The state.
    pub fn state(&mut self) -> &mut P {
        // SAFETY: The NAPI is not enabled, so by the invariant of `Napi` the state is ours, and
        // there is one `Unlisted` for a NAPI.
        unsafe { &mut *self.napi.state.get() }
    }

    /// A handle for an interrupt handler.
    pub fn scheduler(&self) -> Scheduler<P> {
        Scheduler(self.napi.clone())
    }

    /// Makes it known to the core, with what users had set on the NAPI of its number, and as the one
    /// that serves the queues of that number.
    pub fn list(self, dev: Locked<'_, P::Driver>) -> Disabled<P> {
        let _ = dev;
        let Napi {
            index, irq, dev, ..
        } = &*self.napi;

        // SAFETY: The NAPI is valid and not listed, its number is one of its device's, which is
        // locked, and readers of its list entry are waited for. CAST: Queue and interrupt numbers
        // are small.
        unsafe {
            bindings::net_shim_napi_list(
                dev.as_raw(),
                self.napi.napi.get(),
                Some(Napi::<P>::poll),
                *index as c_int,
                *irq as c_int,
                self.since,
            );
        }
        Disabled(self.napi)
    }
}

impl<P: Poll> Disabled<P> {
    /// Has the core forget it. Its interrupt may come and do nothing.
    pub fn unlist(self, dev: Locked<'_, P::Driver>) -> Unlisted<P> {
        let _ = dev;
        // SAFETY: The NAPI is listed and disabled, and the instance lock is held.
        let since = unsafe {
            // CAST: Queue numbers are small.
            bindings::net_shim_napi_unlist(self.0.napi.get(), self.0.index as c_int)
        };

        Unlisted {
            napi: self.0,
            since,
        }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.0.napi.get()
    }

    /// The state.
    pub fn state(&mut self) -> &mut P {
        // SAFETY: The NAPI is disabled, so by the invariant of `Napi` the state is ours, and
        // there is one `Disabled` for a NAPI.
        unsafe { &mut *self.0.state.get() }
    }

    /// Lets the core poll, and says so to the queues' users.
    pub fn enable(self, dev: Locked<'_, P::Driver>) -> Enabled<P> {
        let _ = dev;
        // SAFETY: The NAPI is disabled and the instance lock is held.
        unsafe { bindings::napi_enable_locked(self.0.napi.get()) };
        Enabled(self.0)
    }
}

impl<P: Poll> Enabled<P> {
    /// Waits for a poll that is running, and keeps further ones from starting.
    pub fn disable(self, dev: Locked<'_, P::Driver>) -> Disabled<P> {
        let _ = dev;
        let napi = self.0.clone();

        drop(self);
        Disabled(napi)
    }

    /// Polls soon: for work whose interrupt may have been missed.
    pub fn schedule(&self) {
        schedule(&self.0);
    }
}

impl<P: Poll> Drop for Enabled<P> {
    fn drop(&mut self) {
        // SAFETY: The NAPI is enabled; the wait does not depend on the lock.
        unsafe { bindings::napi_disable_locked(self.0.napi.get()) };
    }
}

impl<P: Poll> Scheduler<P> {
    /// Polls soon. While the NAPI is disabled this does nothing.
    #[inline]
    pub fn schedule(&self) {
        schedule(&self.0);
    }
}

fn schedule<P: Poll>(napi: &Napi<P>) {
    // SAFETY: The NAPI is valid; a disabled one counts as scheduled.
    unsafe { bindings::net_shim_napi_schedule(napi.napi.get()) };
}

/// Proof of running in a NAPI's poll function.
pub struct Context<'a> {
    napi: *mut bindings::napi_struct,
    /// XDP has redirected frames, which are on lists of this poll: they must leave with it.
    redirected: Cell<bool>,
    _poll: PhantomData<&'a ()>,
}

impl Context<'_> {
    pub(crate) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.napi
    }

    /// Sees to it that redirected frames go on at the end of the poll.
    #[inline]
    pub(crate) fn flush_redirected(&self) {
        self.redirected.set(true);
    }

    /// Hands a frame to generic receive offload (`napi_gro_receive()`); drops it if its linear
    /// part has no Ethernet header.
    #[inline]
    pub fn receive(&self, skb: SkBuff, received: &Received) {
        if skb.head_len() < skb::ETH_HLEN {
            return;
        }
        let (hash, hash_type) = match received.hash {
            Hash::None => (0, bindings::pkt_hash_types_PKT_HASH_TYPE_NONE),
            Hash::L3(hash) => (hash, bindings::pkt_hash_types_PKT_HASH_TYPE_L3),
            Hash::L4(hash) => (hash, bindings::pkt_hash_types_PKT_HASH_TYPE_L4),
        };

        // SAFETY: The NAPI is being polled, so its device is valid, and we own the skb, which has
        // an Ethernet header.
        unsafe {
            bindings::net_shim_skb_receive(
                self.napi,
                skb.into_raw(),
                received.queue,
                received.checksum_verified,
                hash,
                hash_type,
            );
        }
    }
}
