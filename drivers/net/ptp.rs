// SPDX-License-Identifier: GPL-2.0

//! Clocks of network devices (`/dev/ptp*`), which the Precision Time Protocol keeps in step.
//!
//! A driver implements [`Clock`] and registers it; timestamps of frames are in [`crate::hwtstamp`].
//! The clock belongs to the device, not to the interface: it runs while the interface is down.
//!
//! C header: `include/linux/ptp_clock_kernel.h`

use core::{
    marker::{
        PhantomData,
        PhantomPinned, //
    },
    ops::Deref,
    pin::Pin,
    ptr::NonNull, //
};

use kernel::{
    container_of,
    device::{
        Bound,
        Device, //
    },
    error::from_err_ptr,
    ffi::{
        c_char,
        c_long, //
    },
    prelude::*,
    time::{
        msecs_to_jiffies,
        ClockSource,
        Msecs,
        RealTime, //
    },
    types::Opaque, //
};
use net_bindings as bindings;

const NANOSECONDS: u64 = 1_000_000_000;

/// A clock. It may be used with interrupts enabled or disabled.
pub trait Clock: Send + Sync {
    /// Its name in sysfs, shorter than 32 bytes.
    const NAME: &'static CStr;

    /// By how much it can be made to go faster or slower, in parts per billion.
    const MAX_ADJUSTMENT: i32;

    /// The time in nanoseconds. The device is read in [`SystemTime::around`].
    fn time(&self, system: SystemTime<'_>) -> u64;

    /// Sets the time, in nanoseconds.
    fn set(&self, time: u64);

    /// Sets the time forward, or back, by so many nanoseconds.
    fn shift(&self, nanoseconds: i64);

    /// Runs faster than unadjusted from now on, by this many parts per million with a 16-bit
    /// fraction; slower if that is negative.
    fn set_rate(&self, scaled_ppm: i64);

    /// Does what needs process context, after [`Registration::schedule`]. Returns in how many
    /// milliseconds it is to be called again.
    fn work(&self) -> Msecs;
}

/// The system's time in nanoseconds since 1970, with which a clock begins.
pub fn system_time() -> u64 {
    // CAST: It is after 1970.
    RealTime::ktime_get() as u64
}

/// Takes the system's time before and after the device's is read, if somebody wants to know both.
pub struct SystemTime<'a>(*mut bindings::ptp_system_timestamp, PhantomData<&'a mut ()>);

impl SystemTime<'_> {
    /// Runs `read` between the two.
    #[inline]
    pub fn around<R>(&mut self, read: impl FnOnce() -> R) -> R {
        // SAFETY: Null, or valid as long as `self` is.
        unsafe { bindings::net_shim_ptp_read_system_prets(self.0) };
        let result = read();
        // SAFETY: As above.
        unsafe { bindings::net_shim_ptp_read_system_postts(self.0) };
        result
    }
}

#[pin_data]
struct Inner<T: Clock> {
    #[pin]
    info: Opaque<bindings::ptp_clock_info>,
    #[pin]
    clock: T,
    #[pin]
    _pin: PhantomPinned,
}

impl<T: Clock> Inner<T> {
    /// What the core knows of it. `owner` is the driver's module.
    fn info(owner: &'static ThisModule) -> bindings::ptp_clock_info {
        let mut name: [c_char; 32] = [0; 32];

        // The last one stays 0.
        for (to, &from) in name.iter_mut().take(31).zip(T::NAME.to_bytes()) {
            // CAST: A byte is a byte.
            *to = from as c_char;
        }
        bindings::ptp_clock_info {
            owner: owner.as_ptr().cast(),
            name,
            max_adj: T::MAX_ADJUSTMENT,
            adjfine: Some(Self::adjfine),
            adjtime: Some(Self::adjtime),
            gettimex64: Some(Self::gettimex64),
            settime64: Some(Self::settime64),
            do_aux_work: Some(Self::do_aux_work),
            ..pin_init::zeroed()
        }
    }

    /// # Safety
    ///
    /// `info` must be that of an `Inner<T>` that lives as long as the result is used.
    unsafe fn clock<'a>(info: *mut bindings::ptp_clock_info) -> &'a T {
        // SAFETY: As this function requires.
        unsafe { &(*container_of!(Opaque::cast_from(info), Self, info)).clock }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `adjfine`.
    unsafe extern "C" fn adjfine(info: *mut bindings::ptp_clock_info, scaled_ppm: c_long) -> c_int {
        // SAFETY: The core calls with what was registered, and as long as it is.
        unsafe { Self::clock(info) }.set_rate(scaled_ppm as i64);
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `adjtime`.
    unsafe extern "C" fn adjtime(info: *mut bindings::ptp_clock_info, delta: i64) -> c_int {
        // SAFETY: As above.
        unsafe { Self::clock(info) }.shift(delta);
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `gettimex64`.
    unsafe extern "C" fn gettimex64(
        info: *mut bindings::ptp_clock_info,
        ts: *mut bindings::timespec64,
        sts: *mut bindings::ptp_system_timestamp,
    ) -> c_int {
        // SAFETY: As above.
        let time = unsafe { Self::clock(info) }.time(SystemTime(sts, PhantomData));

        // SAFETY: The core calls with a valid structure. CAST: The quotient has 35 bits.
        unsafe {
            (*ts).tv_sec = (time / NANOSECONDS) as i64;
            (*ts).tv_nsec = (time % NANOSECONDS) as c_long;
        }
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `settime64`.
    unsafe extern "C" fn settime64(
        info: *mut bindings::ptp_clock_info,
        ts: *const bindings::timespec64,
    ) -> c_int {
        // SAFETY: The core calls with a valid structure.
        let (seconds, nanoseconds) = unsafe { ((*ts).tv_sec, (*ts).tv_nsec) };
        // CAST: The core lets no negative ones through; what does not fit wraps.
        let time = (seconds as u64)
            .wrapping_mul(NANOSECONDS)
            .wrapping_add(nanoseconds as u64);

        // SAFETY: As above.
        unsafe { Self::clock(info) }.set(time);
        0
    }

    /// # Safety
    ///
    /// Only the core may call it, as `do_aux_work`.
    unsafe extern "C" fn do_aux_work(info: *mut bindings::ptp_clock_info) -> c_long {
        // SAFETY: As above.
        let after = unsafe { Self::clock(info) }.work();

        // At least one tick later. CAST: Milliseconds in 32 bits are fewer jiffies than that.
        msecs_to_jiffies(after) as c_long
    }
}

/// A registered clock, which is used through this; dropping it waits until nobody uses it any more,
/// so that may sleep.
///
/// # Invariants
///
/// `ptp` is registered, with the `info` of `inner`.
pub struct Registration<'bound, T: Clock> {
    ptp: NonNull<bindings::ptp_clock>,
    inner: Pin<KBox<Inner<T>>>,
    _parent: PhantomData<&'bound Device<Bound>>,
}

// SAFETY: The core's functions may be called from any thread; `T` is `Send` and `Sync`.
unsafe impl<T: Clock> Send for Registration<'_, T> {}
// SAFETY: As above.
unsafe impl<T: Clock> Sync for Registration<'_, T> {}

impl<'bound, T: Clock + 'bound> Registration<'bound, T> {
    /// Registers a clock of `parent`; `None` if the kernel is built without any.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what `ptp_clock_register()` says.
    ///
    /// # Safety
    ///
    /// The caller must not `mem::forget()` the result or otherwise keep it from being dropped before
    /// the parent device is unbound.
    pub unsafe fn new(
        parent: &'bound Device<Bound>,
        clock: impl PinInit<T, Error>,
        owner: &'static ThisModule,
    ) -> Result<Option<Self>> {
        let inner = KBox::try_pin_init(
            try_pin_init!(Inner {
                info: Opaque::new(Inner::<T>::info(owner)),
                clock <- clock,
                _pin: PhantomPinned,
            }? Error),
            GFP_KERNEL,
        )?;
        // SAFETY: `inner` lives longer than the registration, at the same place; `Device` is a
        // transparent wrapper of `struct device`.
        let ptp = from_err_ptr(unsafe {
            bindings::net_shim_ptp_register(
                inner.info.get(),
                core::ptr::from_ref(parent).cast_mut().cast(),
            )
        })?;

        // INVARIANT: Registered above.
        let registration = NonNull::new(ptp).map(|ptp| Self {
            ptp,
            inner,
            _parent: PhantomData,
        });
        if let Some(registration) = &registration {
            registration.schedule();
        }
        Ok(registration)
    }

    /// Which of the system's clocks it is: `/dev/ptp` has this number behind it.
    pub fn index(&self) -> u32 {
        // SAFETY: Registered by the type invariant. CAST: Those that are have one.
        unsafe { bindings::net_shim_ptp_index(self.ptp.as_ptr()) as u32 }
    }

    /// Has [`Clock::work`] called now. May be called from any context.
    pub fn schedule(&self) {
        // SAFETY: Registered by the type invariant.
        unsafe { bindings::net_shim_ptp_schedule_worker(self.ptp.as_ptr()) };
    }

    /// Has [`Clock::work`] called no more until [`Self::schedule`], and waits until it has returned. The
    /// kernel's thread that calls it is not frozen before the system sleeps. May sleep.
    pub fn cancel(&self) {
        // SAFETY: Registered by the type invariant.
        unsafe { bindings::net_shim_ptp_cancel_worker(self.ptp.as_ptr()) };
    }
}

impl<T: Clock> Deref for Registration<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner.clock
    }
}

impl<T: Clock> Drop for Registration<'_, T> {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant; on return no callback runs any more.
        unsafe { bindings::net_shim_ptp_unregister(self.ptp.as_ptr()) };
    }
}
