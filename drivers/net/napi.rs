// SPDX-License-Identifier: GPL-2.0

//! NAPI: polling under the core's budget.
//!
//! NAPIs are the net device's: a driver adds them before it registers the device
//! ([`Unregistered::add_napi`](crate::registration::Unregistered::add_napi)), and whatever state
//! they are left in, unregistering disables and deletes them. A NAPI owns the state that its poll
//! works on. While it is enabled, only the poll can reach that state; else only the control path,
//! through a guard whose type says which of the states it is in:
//!
//! ```text
//!                                  list                enable
//! Locked::napi() ---->  Unlisted ---------> Disabled ---------> Enabled
//!                                <---------          <---------
//!                                  unlist              disable
//! ```
//!
//! The core knows a NAPI from [`Unlisted::list`] on: the netdev netlink family shows it with its
//! interrupt and its queues, and if it is threaded it has a thread. A NAPI of an interface that is
//! down must be unlisted: turning threading off waits for each that is listed. What users set on a
//! NAPI stays in the net device until it is listed again (`struct napi_config`).
//!
//! What a poll may do is a type, too: [`Completion`] in every poll, [`Receive`] only in one with a
//! budget.
//!
//! C header: `include/linux/netdevice.h`

mod context;
mod control;
mod moderation;
mod schedule;

use core::{
    cell::{
        Cell,
        UnsafeCell, //
    },
    mem::ManuallyDrop,
    num::NonZero,
    ops::Range, //
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

pub(crate) use self::control::Attachment;
pub use self::{
    context::{
        Completion,
        Receive, //
    },
    control::{
        Disabled,
        Enabled,
        Napi,
        Unlisted, //
    },
    schedule::Scheduler,
};
use self::{
    control::Phase,
    moderation::Moderation,
    schedule::Watch, //
};
use crate::{
    device::{
        fields,
        Driver,
        NetDevice, //
    },
    xdp::Pools, //
};

/// How a poll ended.
pub enum Outcome {
    /// Everything is done; this many packets were received.
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
    type Driver: Driver<Napi = Self>;

    /// How its interrupt is controlled.
    type Interrupt: Interrupt;

    /// Completes transmits. Returns whether all of them are. Called by every poll, also by
    /// netpoll's, perhaps with interrupts off.
    fn complete(&mut self, napi: &Completion<'_, Self::Driver>) -> bool;

    /// Receives up to [`Receive::budget`] packets, after [`Self::complete`].
    fn receive(&mut self, napi: &Receive<'_, Self::Driver>) -> Outcome;

    /// Checks whether the device is stuck, if [`Interrupt::MAY_BE_LOST`] is set: in the first poll
    /// that completes some seconds after the last check. Not called during busy polling.
    fn watch(&mut self, napi: &Receive<'_, Self::Driver>) {
        let _ = napi;
    }
}

/// The interrupt of a NAPI. A poll may be running while it is called.
pub trait Interrupt: Send + Sync {
    /// Whether the NAPI also polls every few seconds without the interrupt. An interrupt that is
    /// masked until the poll is done never comes again once it is lost.
    const MAY_BE_LOST: bool = false;

    /// Unmasks the interrupt: the poll is done.
    fn unmask(&self);

    /// Keeps interrupts at least `us` microseconds apart, as dynamic interrupt moderation has
    /// decided. In process context.
    fn set_interval(&self, us: u16) {
        let _ = us;
    }
}

/// `()` is the interrupt of a NAPI that has none: somebody else schedules it.
impl Interrupt for () {
    fn unmask(&self) {}
}

/// What belongs to a NAPI.
pub struct Config {
    /// The RX queues that it polls.
    pub rx: Range<u32>,
    /// The TX queues that it completes.
    pub tx: Range<u32>,
    /// The interrupt that schedules it, if there is one. Initially, the interrupt of NAPI `n` goes
    /// to the `n`-th processor near the device.
    pub irq: Option<u32>,
}

/// A NAPI, its state, and its interrupt.
///
/// # Invariants
///
/// - `napi` is a NAPI of the device `dev`, whose memory this is part of. The core knows it unless
///   `phase` is [`Phase::Unlisted`].
/// - `phase` and `borrowed` are only accessed with the instance lock held, or when nobody else has
///   the device.
/// - `state` belongs to the poll while `phase` is [`Phase::Enabled`], else to the one guard that
///   `borrowed` says is out. It is dropped once, by [`Self::close`]. So do `pools`, which are of
///   its RX queues, `watch` and `unreadable`.
#[pin_data]
pub(crate) struct Instance<P: Poll> {
    #[pin]
    napi: Opaque<bindings::napi_struct>,
    #[pin]
    moderation: Moderation,
    state: UnsafeCell<ManuallyDrop<P>>,
    pools: UnsafeCell<Pools>,
    interrupt: P::Interrupt,
    config: Config,
    index: u32,
    dev: *mut bindings::net_device,
    phase: Cell<Phase>,
    borrowed: Cell<bool>,
    /// It is not polled any more, and never again.
    closed: Atomic<bool>,
    /// Whose `state` is.
    watch: Cell<Watch>,
    /// Whether the CPU could not read the fragments of the frame that was handed up last.
    unreadable: Cell<bool>,
}

// SAFETY: By the type invariants each of the fields has one user at a time; `state` is `Send` and
// `interrupt` is `Sync`.
unsafe impl<P: Poll> Sync for Instance<P> {}
// SAFETY: As above.
unsafe impl<P: Poll> Send for Instance<P> {}

impl<P: Poll> Instance<P> {
    /// NAPI number `index` of `dev`.
    ///
    /// # Safety
    ///
    /// `dev` must be a net device of `P`'s driver, and the result part of its memory.
    pub(crate) unsafe fn new(
        dev: *mut bindings::net_device,
        index: u32,
        config: Config,
        interrupt: P::Interrupt,
        state: P,
    ) -> impl PinInit<Self, Error> {
        // INVARIANT: The core does not know it, and no guard is out.
        try_pin_init!(Self {
            napi <- Opaque::ffi_init(|slot: *mut bindings::napi_struct| {
                // SAFETY: The slot is valid for writes; all zeroes is a NAPI that was never added.
                // One that is not listed counts as scheduled, so that its interrupt does nothing.
                unsafe {
                    slot.write_bytes(0, 1);
                    (*slot).dev = dev;
                    (*slot).irq = -1;
                    (*slot).state = 1 << bindings::NAPI_STATE_SCHED;
                }
            }),
            moderation <- Moderation::new(Self::moderate),
            state: UnsafeCell::new(ManuallyDrop::new(state)),
            pools: UnsafeCell::new(Pools::new()),
            interrupt,
            config,
            index,
            dev,
            phase: Cell::new(Phase::Unlisted),
            borrowed: Cell::new(false),
            closed: Atomic::new(false),
            watch: Cell::new(Watch::begin()),
            unreadable: Cell::new(false),
        }? Error)
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.napi.get()
    }

    /// Has the next look come a while after this. Called by the guard that has the state.
    fn watch_again(&self) {
        self.watch.set(Watch::begin());
    }

    /// # Safety
    ///
    /// Called by the core with a NAPI that [`Unlisted::list`] added.
    unsafe extern "C" fn poll(napi: *mut bindings::napi_struct, budget: c_int) -> c_int {
        // SAFETY: The NAPI is embedded in an `Instance<P>`, which outlives its polls.
        let this = unsafe { &*container_of!(Opaque::cast_from(napi), Self, napi) };
        // SAFETY: The NAPI is being polled, so its device is registered.
        let dev = unsafe { NetDevice::<P::Driver>::from_raw(this.dev) };
        // SAFETY: The NAPI is enabled, and the core polls it in one place at a time.
        let state: &mut P = unsafe { &mut *this.state.get() };
        // SAFETY: We are in the poll of `this`, with that budget.
        let completion = unsafe { Completion::new(this, dev, budget) };

        let completed = state.complete(&completion);
        let Some(budget) = u32::try_from(budget).ok().and_then(NonZero::new) else {
            return 0;
        };

        // SAFETY: As above; it is not zero.
        let receive = unsafe { Receive::new(completion, budget) };
        let (work, starved) = match state.receive(&receive) {
            _ if !completed => (budget.get(), false),
            Outcome::Done(work) => (work, false),
            Outcome::Starved(work) => (work, true),
            Outcome::More => (budget.get(), false),
        };
        // Only a poll that did not use its budget up may complete.
        let done = work < budget.get();

        if done && P::Interrupt::MAY_BE_LOST && this.watch.get().is_over() {
            this.watch_again();
            state.watch(&receive);
        }
        receive.flush();
        if done {
            this.complete(work, starved);
        }
        // CAST: Budgets are small.
        work.min(budget.get()) as c_int
    }

    /// Ends a poll that has received `work` packets.
    fn complete(&self, work: u32, starved: bool) {
        // SAFETY: Called by the poll. After this the state is not ours any more. CAST: Less than
        // the budget, which is small.
        if unsafe { bindings::napi_complete_done(self.as_raw(), work as c_int) } {
            // Not before: a timer that expires while the NAPI still counts as scheduled is lost.
            if starved {
                schedule::retry(self.as_raw());
            } else if P::Interrupt::MAY_BE_LOST {
                schedule::watch(self.as_raw());
            }
            self.interrupt.unmask();
        }
    }

    /// Disables and deletes the NAPI, whatever state the driver has left it in, and drops its
    /// state. What was scheduled does not run any more, also not later.
    ///
    /// # Safety
    ///
    /// The device must not be registered any more, or never have been, and no guard may be in
    /// use. Called once; not with the instance lock held.
    pub(crate) unsafe fn close(&self) {
        if self.phase.get() != Phase::Unlisted {
            // SAFETY: The device's memory is valid. By the type invariant the NAPI is listed, and
            // enabled if the phase says so.
            unsafe {
                fields::lock(self.dev);
                if self.phase.get() == Phase::Enabled {
                    bindings::napi_disable_locked(self.as_raw());
                }
                control::delete(self);
                fields::unlock(self.dev);
            }
        }
        // The NAPI is not polled any more: nothing starts the work again.
        self.moderation.close();
        self.closed.store(true, Relaxed);
        // SAFETY: Neither a poll nor a guard has it, and this is the only drop.
        unsafe { ManuallyDrop::drop(&mut *self.state.get()) };
    }
}
