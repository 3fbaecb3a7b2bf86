// SPDX-License-Identifier: GPL-2.0

//! Net devices: what a driver implements, and what it gets.
//!
//! C header: `include/linux/netdevice.h`

pub(crate) mod fields;
mod reference;

use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};

use kernel::{
    sync::ArcBorrow,
    types::Opaque, //
};
use net_bindings as bindings;

use crate::{
    features::Features,
    napi::Instance,
    tx::{
        Kept,
        TxSlot, //
    }, //
};

pub use self::reference::DeviceRef;
pub(crate) use self::reference::{
    Allocation,
    Owner, //
};
pub use crate::driver::Driver;

/// A MAC address.
pub type MacAddress = [u8; 6];

/// A `struct net_device` whose driver is `T`.
///
/// # Invariants
///
/// The pointed-to net device was allocated by [`Unregistered::new`](crate::registration::Unregistered::new) with `T`.
#[repr(transparent)]
pub struct NetDevice<T: Driver>(Opaque<bindings::net_device>, PhantomData<T>);

// SAFETY: What is reachable through a shared reference is `T`, which is `Sync`, and C functions
// that may be called from any context.
unsafe impl<T: Driver> Sync for NetDevice<T> {}

/// What the abstraction keeps in `netdev_priv()`.
///
/// # Invariants
///
/// `allocation` is the device's memory, which is in an `Arc`.
pub(crate) struct Private<T: Driver> {
    pub(crate) driver: T,
    pub(crate) control: UnsafeCell<T::Control>,
    pub(crate) allocation: *const Allocation<T>,
}

impl<T: Driver> NetDevice<T> {
    /// # Safety
    ///
    /// `dev` must be a net device of driver `T` that is valid for `'a`.
    pub(crate) unsafe fn from_raw<'a>(dev: *mut bindings::net_device) -> &'a Self {
        // SAFETY: `NetDevice` is transparent; the rest is what this function requires.
        unsafe { &*dev.cast() }
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    fn private(&self) -> *mut Private<T> {
        // SAFETY: By the type invariant the device has a private area for `Private<T>`.
        unsafe { fields::private(self.as_raw()) }
    }

    /// The driver's shared state.
    #[inline]
    pub fn driver(&self) -> &T {
        // SAFETY: Callbacks come only after `register` has written the private area, and it is
        // dropped only after they have ended.
        unsafe { &(*self.private()).driver }
    }

    /// # Safety
    ///
    /// The caller must hold the instance lock for `'a` and call this once in that time.
    #[expect(clippy::mut_from_ref, reason = "the instance lock makes it exclusive")]
    pub(crate) unsafe fn control(&self) -> &mut T::Control {
        // SAFETY: The instance lock makes this access exclusive.
        unsafe { &mut *(*self.private()).control.get() }
    }

    fn allocation(&self) -> &Allocation<T> {
        // SAFETY: By the invariant of `Private`; the memory lives as long as the device.
        unsafe { &*(*self.private()).allocation }
    }

    /// TX queue `index`.
    #[inline]
    pub(crate) fn tx(&self, index: u32) -> Option<&TxSlot<T>> {
        self.allocation().tx(index)
    }

    /// How many TX queues the core may choose from.
    #[inline]
    pub(crate) fn kept_tx(&self) -> &Kept {
        self.allocation().kept_tx()
    }

    /// NAPI `index`.
    pub(crate) fn napi(&self, index: u32) -> Option<&Instance<T::Napi>> {
        self.allocation().napi(index)
    }

    /// A reference to the device's memory.
    pub fn hold(&self) -> DeviceRef<T> {
        // SAFETY: By the invariant of `Private` it is in an `Arc`, which has an owner as long as
        // the device is registered.
        let allocation = unsafe { ArcBorrow::from_raw((*self.private()).allocation) };

        DeviceRef::new(allocation.into())
    }

    /// The features in use now.
    pub fn features(&self) -> Features {
        // SAFETY: By the type invariant the device is valid.
        unsafe { Features::of(self.as_raw()) }
    }

    /// The MAC address.
    pub fn mac_address(&self) -> MacAddress {
        // SAFETY: By the type invariant the device is valid; an address has at least 6 bytes.
        unsafe { *(*self.as_raw()).dev_addr.cast() }
    }

    /// Says whether the link is up: while it is, the core sends.
    pub fn set_carrier(&self, up: bool) {
        // SAFETY: By the type invariant the device is valid.
        unsafe { fields::set_carrier(self.as_raw(), up) };
    }

    /// Counts a packet of `len` bytes that was received, for a device with
    /// [`Config::software_stats`](crate::registration::Config::software_stats), while it is registered.
    pub fn count_received(&self, len: u32) {
        // SAFETY: By the type invariant the device is valid.
        unsafe { bindings::net_shim_count_rx(self.as_raw(), len) };
    }

    /// Returns whether the link is up.
    pub fn has_carrier(&self) -> bool {
        // SAFETY: By the type invariant the device is valid.
        unsafe { fields::has_carrier(self.as_raw()) }
    }
}

/// A net device whose instance lock is held: proof for what may only be done under it.
pub struct Locked<'a, T: Driver> {
    dev: &'a NetDevice<T>,
    /// The lock is held by this thread.
    _not_send: PhantomData<*mut ()>,
}

impl<T: Driver> Copy for Locked<'_, T> {}

impl<T: Driver> Clone for Locked<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, T: Driver> Locked<'a, T> {
    /// The device and its control state, for a callback of the core.
    ///
    /// # Safety
    ///
    /// `dev` must be a device of driver `T` whose instance lock this thread holds for `'a`, and
    /// the control state must not be in use.
    pub(crate) unsafe fn new(dev: *mut bindings::net_device) -> (Self, &'a mut T::Control) {
        // SAFETY: As this function requires.
        let dev = unsafe { NetDevice::<T>::from_raw(dev) };
        let locked = Self {
            dev,
            _not_send: PhantomData,
        };

        // SAFETY: As this function requires.
        (locked, unsafe { dev.control() })
    }

    /// The device, without the proof.
    #[inline]
    pub fn device(&self) -> &'a NetDevice<T> {
        self.dev
    }

    /// Returns whether the interface is up.
    pub fn is_running(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { fields::is_running(self.dev.as_raw()) }
    }

    /// Detaches the device from the core, for while it can't be accessed
    /// (`netif_device_detach()`): the core sends nothing and refuses users' requests.
    pub fn detach(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::netif_device_detach(self.dev.as_raw()) };
    }

    /// Undoes [`Self::detach`]. If the interface is up, its queues must be running again.
    pub fn attach(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::netif_device_attach(self.dev.as_raw()) };
    }

    /// Returns whether RX queue `index` is bound to memory that the CPU cannot read.
    pub fn has_unreadable_provider(&self, index: u32) -> bool {
        // SAFETY: The device is valid and locked; the function checks the index.
        unsafe { bindings::netif_rxq_has_unreadable_mp(self.dev.as_raw(), index) }
    }
}

/// Proof that this thread holds rtnl, for `'a`.
#[derive(Copy, Clone)]
pub struct Rtnl<'a>(PhantomData<(&'a (), *mut ())>);

impl Rtnl<'_> {
    /// # Safety
    ///
    /// This thread must hold rtnl as long as the result or a copy of it is used.
    pub(crate) unsafe fn new() -> Self {
        Self(PhantomData)
    }
}
