// SPDX-License-Identifier: GPL-2.0

//! Doorbells of TX queues that another device may ring, so that what it has computed is sent without
//! the CPU.
//!
//! A NIC's driver owns a [`Doorbell`] for each TX queue, and offers them as an auxiliary device, which has
//! [`Doorbells`]. The driver of the other device binds to that, and [takes](Doorbells::take) one for a user:
//!
//! ```text
//!              hold              withhold                arm                   the device rings
//!   (rings) ----------> (holds) ----------> (withholds) ------> (armed: tail) ------------------+
//!      ^                   |                     |                    |                         |
//!      +-------------------+---------------------+--- disarmed -------+<-- a descriptor is done-+
//!                       too late, the user or the ring is gone
//! ```
//!
//! # What keeps it sound
//!
//! A tail must never go back: the device would take descriptors that are done for new ones. So
//!
//! - the value is the one that the NIC's driver would have written itself, of a ring that runs;
//! - while it is armed, the NIC's driver writes no tail. It goes on when a descriptor is done that only the
//!   other device can have handed over, or when that device is [disarmed](Ringer::disarm), which says whether
//!   it was too late. If it was, the doorbell is on its way, and the descriptors are waited for;
//! - before the ring goes, the doorbell is [closed](Doorbell::close) in the same way;
//! - a hold is over after [`PATIENCE`], so that nothing hangs if the other device never rings.
//!
//! The crate knows no driver, and its code is in each module that uses it. Whoever takes a doorbell
//! holds the NIC's module, so that it is not unloaded while others use its locks and types.

use kernel::{
    bindings,
    io::PhysAddr,
    new_spinlock_irq,
    pci,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        SpinLockIrq, //
    },
    time::{
        Delta,
        Instant,
        Monotonic, //
    },
    types::CovariantForLt,
    ThisModule, //
};

/// The name of the auxiliary device.
pub const NAME: &CStr = c"doorbell";

/// After this time the next poll ends a hold: that of an idle NAPI comes within two seconds.
pub const PATIENCE: Delta = Delta::from_secs(1);

/// Another device, which rings. Called with interrupts off.
pub trait Ringer: Send + Sync {
    /// Has the device ring with this value, once.
    ///
    /// # Errors
    ///
    /// It won't.
    fn arm(&self, tail: u32) -> Result;

    /// Keeps the device from ringing. Returns whether it was too late: the doorbell is on its way then, or
    /// has arrived.
    fn disarm(&self) -> bool;
}

/// A queue that is held.
struct Hold {
    /// `None`: the user is gone.
    since: Option<Instant<Monotonic>>,
    /// The descriptors that are withheld, by the tails before and behind them.
    withheld: Option<(u32, u32)>,
    /// The tail that the other device rings with.
    armed: Option<u32>,
}

impl Hold {
    fn is_over(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() > PATIENCE)
    }
}

struct State {
    /// There is a ring, and the device works on it.
    open: bool,
    ringer: Option<Arc<dyn Ringer>>,
    hold: Option<Hold>,
}

/// The doorbell of a TX queue.
///
/// # Invariants
///
/// While `state.hold` is armed, only the ringer writes the register. `held` says whether there is a
/// hold; it is changed with the lock held.
#[pin_data]
pub struct Doorbell {
    register: PhysAddr,
    held: Atomic<bool>,
    #[pin]
    state: SpinLockIrq<State>,
}

/// The side of the NIC's driver.
impl Doorbell {
    /// Of a queue that has no ring yet; the register is at this address.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(register: PhysAddr) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                register,
                held: Atomic::new(false),
                state <- new_spinlock_irq!(State { open: false, ringer: None, hold: None }),
            }),
            GFP_KERNEL,
        )
    }

    /// The queue has a ring, on which nothing is yet.
    pub fn open(&self) {
        self.state.lock().open = true;
    }

    /// The ring is about to be freed. From now on only the driver rings. Returns the tail that may be on its
    /// way yet, and must arrive before the ring goes.
    pub fn close(&self) -> Option<u32> {
        let mut state = self.state.lock();

        state.open = false;
        self.held.store(false, Release);
        let tail = state.hold.take()?.armed?;
        // Without a ringer it was too late for the user who is gone.
        let late = state.ringer.as_ref().is_none_or(|ringer| ringer.disarm());

        late.then_some(tail)
    }

    /// Whether the driver must not ring with `tail`, where `rung` was the last one: it is rung later. To be
    /// called with the queue's lock held.
    #[inline]
    pub fn withholds(&self, rung: u32, tail: u32) -> bool {
        self.held.load(Acquire) && self.withhold(rung, tail)
    }

    #[cold]
    fn withhold(&self, rung: u32, tail: u32) -> bool {
        let mut state = self.state.lock();
        let Some(hold) = &mut state.hold else {
            return false;
        };
        let first = hold.withheld.map_or(rung, |(first, _)| first);

        hold.withheld = Some((first, tail));
        true
    }

    /// Looks after a queue that is held; to be called in each poll, and before what is done goes back to the
    /// core. `done` is the descriptor that was done last, if any was, of a ring of `len`. `ring` writes a tail.
    #[inline]
    pub fn poll(&self, done: Option<u32>, len: u32, ring: impl FnOnce(u32)) {
        if self.held.load(Acquire) {
            self.poll_held(done, len, ring);
        }
    }

    #[cold]
    fn poll_held(&self, done: Option<u32>, len: u32, ring: impl FnOnce(u32)) {
        let mut state = self.state.lock();
        let State { ringer, hold, .. } = &*state;
        let Some(hold) = hold else {
            return;
        };
        let rung = match (hold.withheld, hold.armed) {
            (Some((first, _)), Some(armed)) => {
                if done.is_some_and(|done| is_within(done, first, armed, len)) {
                    Some(armed)
                } else if hold.is_over() && ringer.as_ref().is_some_and(|ringer| !ringer.disarm()) {
                    None
                } else {
                    return;
                }
            }
            _ if hold.is_over() => None,
            _ => return,
        };
        let tail = hold.withheld.map(|(_, tail)| tail);

        state.hold = None;
        if let Some(tail) = tail.filter(|tail| Some(*tail) != rung) {
            ring(tail);
        }
        // Whoever sees this rings after us.
        self.held.store(false, Release);
    }
}

/// Whether a descriptor of a ring of `len` is one of those from `first` on, up to `end`.
fn is_within(index: u32, first: u32, end: u32, len: u32) -> bool {
    // All are less than `len`.
    let from_first = |other: u32| match other.checked_sub(first) {
        Some(distance) => distance,
        None => other + len - first,
    };

    from_first(index) < from_first(end)
}

/// The doorbells of a NIC.
pub struct Doorbells {
    /// The NIC.
    pub pdev: ARef<pci::Device>,
    /// The driver's module.
    pub module: &'static ThisModule,
    /// One for each TX queue.
    pub queues: KVec<Arc<Doorbell>>,
}

/// The auxiliary device's data.
pub type Data = CovariantForLt!(Arc<Doorbells>);

impl Doorbells {
    /// The register of a queue's doorbell.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue.
    pub fn register(&self, queue: u32) -> Result<PhysAddr> {
        Ok(self.queue(queue)?.register)
    }

    /// Takes the doorbell of a queue for a user, whose device rings it.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_NET_ADMIN`, as it stops others' frames, too; `EINVAL` if there is no such queue;
    /// `EBUSY` if it is taken; `ENODEV` if the NIC's driver is being unloaded.
    pub fn take(&self, queue: u32, ringer: Arc<dyn Ringer>) -> Result<Taken> {
        // SAFETY: Any process may be asked about. CAST: A small number.
        if !unsafe { bindings::capable(bindings::CAP_NET_ADMIN as c_int) } {
            return Err(EPERM);
        }
        let doorbell = self.queue(queue)?;
        let module = self.module.as_ptr();
        let mut state = doorbell.state.lock();
        if state.ringer.is_some() {
            return Err(EBUSY);
        }
        // SAFETY: The module has its device bound, or we would not have `self`.
        if !unsafe { bindings::try_module_get(module) } {
            return Err(ENODEV);
        }
        state.ringer = Some(ringer);
        // INVARIANT: Set and got above.
        Ok(Taken {
            doorbell: Some(doorbell.clone()),
            module: self.module,
        })
    }

    fn queue(&self, queue: u32) -> Result<&Arc<Doorbell>> {
        self.queues.get(queue as usize).ok_or(EINVAL)
    }
}

/// A doorbell that a user has taken. Dropping this disarms the other device, and releases the doorbell.
///
/// # Invariants
///
/// The doorbell's ringer is the one that this was made with; this holds a reference to the module.
pub struct Taken {
    /// `Some` until this is dropped.
    doorbell: Option<Arc<Doorbell>>,
    module: &'static ThisModule,
}

impl Taken {
    /// Has the NIC's driver withhold what it sends from now on.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` if the queue has no ring, `EBUSY` if it is held.
    pub fn hold(&self) -> Result {
        let doorbell = self.doorbell.as_ref().ok_or(ENODEV)?;
        let mut state = doorbell.state.lock();

        if !state.open {
            return Err(ENETDOWN);
        }
        if state.hold.is_some() {
            return Err(EBUSY);
        }
        state.hold = Some(Hold {
            since: Some(Instant::now()),
            withheld: None,
            armed: None,
        });
        doorbell.held.store(true, Release);
        Ok(())
    }

    /// Has the other device ring for what is withheld by now.
    ///
    /// # Errors
    ///
    /// `ENOTCONN` if the queue is not held any more, `EBUSY` if that was done, `EAGAIN` if nothing is withheld
    /// yet, and those of [`Ringer::arm`].
    pub fn arm(&self) -> Result {
        let doorbell = self.doorbell.as_ref().ok_or(ENODEV)?;
        let mut state = doorbell.state.lock();
        let State { ringer, hold, .. } = &mut *state;
        let (ringer, hold) = (
            ringer.as_ref().ok_or(ENODEV)?,
            hold.as_mut().ok_or(ENOTCONN)?,
        );

        if hold.armed.is_some() {
            return Err(EBUSY);
        }
        let (_, tail) = hold.withheld.ok_or(EAGAIN)?;
        ringer.arm(tail)?;
        hold.armed = Some(tail);
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let Some(doorbell) = self.doorbell.take() else {
            return;
        };
        let mut state = doorbell.state.lock();
        let ringer = state.ringer.take();

        if let (Some(hold), Some(ringer)) = (&mut state.hold, &ringer) {
            if hold.armed.is_some() && !ringer.disarm() {
                hold.armed = None;
            }
            // The next poll rings.
            hold.since = None;
        }
        drop(state);
        drop(ringer);
        // Its lock has a key in the module.
        drop(doorbell);
        // SAFETY: By the type invariant.
        unsafe { bindings::module_put(self.module.as_ptr()) };
    }
}

const __LOG_PREFIX: &[u8] = b"doorbell\0";
