// SPDX-License-Identifier: GPL-2.0

//! Net devices: what a driver implements, and what it gets.
//!
//! C header: `include/linux/netdevice.h`

mod reference;

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    types::Opaque, //
};
use net_bindings as bindings;

use crate::{
    ethtool::ExtAck,
    features::Features,
    hwtstamp::{
        Capabilities,
        Stamping,
        TxStampStats, //
    },
    rx_mode::RxMode,
    stats::LinkStats,
    tx::{
        Transmit,
        TxQueue, //
    },
};

pub(crate) use self::reference::Allocation;
pub use self::reference::DeviceRef;

/// A MAC address.
pub type MacAddress = [u8; 6];

/// What became of features that were to be set ([`Driver::set_features`]).
pub enum FeaturesSet {
    /// They are.
    All,
    /// None is, because the device turned out not to have them all. [`Driver::fix_features`] leaves
    /// those out by now, and is asked once more.
    FixAgain,
}

/// A network driver.
///
/// `Self` is what all contexts may read; it lives as long as the device is registered.
pub trait Driver: Sized + Send + Sync {
    /// The control path's state, guarded by the instance lock.
    type Control: Send;

    /// The transmit path's state of one queue, guarded by that queue's lock.
    type Tx: Transmit;

    /// Brings the interface up (`ndo_open`). On an error everything is as before.
    fn open(dev: Locked<'_, Self>, control: &mut Self::Control) -> Result;

    /// Takes the interface down (`ndo_stop`). On return the device does no DMA.
    fn stop(dev: Locked<'_, Self>, control: &mut Self::Control);

    /// Sets which frames are received (`ndo_set_rx_mode_async`). While the interface is down it
    /// only has to be remembered.
    fn set_rx_mode(dev: Locked<'_, Self>, control: &mut Self::Control, mode: &RxMode<'_>)
        -> Result;

    /// Receives frames of a VLAN, or does not any more (`ndo_vlan_rx_add_vid`). Called for a device
    /// with [`Features::VLAN_FILTER`], with the RTNL and sometimes also the instance lock held.
    fn set_vlan(&self, id: u16, receive: bool) -> Result;

    /// Makes a set of features one that the device can have together (`ndo_fix_features`). What is
    /// left out here stays off, and the core asks for it again with the next change. It must not
    /// change anything in the device, for it is called whenever the core looks.
    fn fix_features(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        features: Features,
    ) -> Features {
        let _ = (dev, control);
        features
    }

    /// Turns features on and off (`ndo_set_features`); [`NetDevice::features`] are still the old
    /// ones.
    ///
    /// # Errors
    ///
    /// Any, which the core logs: all is as before.
    fn set_features(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        features: Features,
    ) -> Result<FeaturesSet>;

    /// Tells the device its MAC address, which the core has validated (`ndo_set_mac_address`).
    fn set_mac_address(dev: Locked<'_, Self>, control: &mut Self::Control, addr: &MacAddress);

    /// Takes note of a new MTU, which is within the registered limits (`ndo_change_mtu`).
    fn change_mtu(dev: Locked<'_, Self>, control: &mut Self::Control, mtu: u32) -> Result;

    /// Gets the device to send again (`ndo_tx_timeout`): a TX queue was stopped for longer than the
    /// core allows, which it has logged. Called while the interface is up. If nothing comes of it,
    /// it is called again.
    fn tx_timeout(dev: Locked<'_, Self>, control: &mut Self::Control);

    /// The features that can be used for `skb` of those in `features` (`ndo_features_check`).
    fn features_check(skb: &crate::skb::SkBuffRef<'_>, features: Features) -> Features;

    /// What the device stamps with a clock of its own; `None` for nothing.
    fn stamps(&self) -> Option<Capabilities> {
        None
    }

    /// What is stamped now (`ndo_hwtstamp_get`).
    fn stamping(dev: Locked<'_, Self>, control: &mut Self::Control) -> Stamping {
        let _ = (dev, control);
        Stamping::OFF
    }

    /// Stamps this from now on (`ndo_hwtstamp_set`); also while the interface is down. Called for a
    /// device that has [`Self::stamps`]. Returns what is stamped, which may be more than was asked
    /// for.
    ///
    /// # Errors
    ///
    /// `ERANGE` if the device cannot; all is as before.
    fn set_stamping(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        stamping: Stamping,
        extack: &ExtAck<'_>,
    ) -> Result<Stamping> {
        let _ = (dev, control, stamping, extack);
        Err(EOPNOTSUPP)
    }

    /// How it went with the frames that were to be stamped when they were sent. Called for a device
    /// that has [`Self::stamps`].
    fn tx_stamp_stats(&self) -> TxStampStats {
        TxStampStats::default()
    }

    /// Adds up the device's statistics (`ndo_get_stats64`). Called without a lock.
    fn link_stats(&self) -> LinkStats;
}

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

/// The transmit path's state of each queue, guarded by that queue's lock.
pub(crate) type TxStates<T> = [UnsafeCell<Option<<T as Driver>::Tx>>];

/// What the abstraction keeps in `netdev_priv()`.
///
/// # Invariants
///
/// `tx` are the device's [`Allocation`]'s.
pub(crate) struct Private<T: Driver> {
    pub(crate) driver: T,
    pub(crate) control: UnsafeCell<T::Control>,
    pub(crate) tx: NonNull<TxStates<T>>,
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
        unsafe { bindings::net_shim_netdev_priv(self.as_raw()) }.cast()
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

    /// # Safety
    ///
    /// The caller must hold the lock of TX queue `index` while it uses the pointer.
    pub(crate) unsafe fn tx(&self, index: usize) -> Option<*mut Option<T::Tx>> {
        // SAFETY: They live as long as the device's memory by the invariant of `Private`.
        let queues = unsafe { (*self.private()).tx.as_ref() };

        queues.get(index).map(UnsafeCell::get)
    }

    /// The features in use now.
    pub fn features(&self) -> Features {
        // SAFETY: By the type invariant the device is valid.
        Features::from_raw(unsafe { bindings::net_shim_features(self.as_raw()) })
    }

    /// The MAC address.
    pub fn mac_address(&self) -> MacAddress {
        // SAFETY: By the type invariant the device is valid; an address has at least 6 bytes.
        unsafe { *(*self.as_raw()).dev_addr.cast() }
    }

    /// Says whether the link is up: while it is, the core sends.
    pub fn set_carrier(&self, up: bool) {
        // SAFETY: By the type invariant the device is valid.
        unsafe { bindings::net_shim_set_carrier(self.as_raw(), up) };
    }

    /// TX queue `index`, for flow control.
    pub fn tx_queue(&self, index: u32) -> TxQueue<'_> {
        // SAFETY: By the type invariant the device is valid.
        unsafe { TxQueue::of(self.as_raw(), index) }
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
        unsafe { bindings::net_shim_netif_running(self.dev.as_raw()) }
    }

    /// Returns whether RX queue `index` is bound to memory that the CPU cannot read.
    pub fn has_unreadable_provider(&self, index: u32) -> bool {
        // SAFETY: The device is valid and locked; the function checks the index.
        unsafe { bindings::netif_rxq_has_unreadable_mp(self.dev.as_raw(), index) }
    }

    /// Gives all TX queues their time anew: one that is stopped for as long as others are changed
    /// does not hang, and the core's watchdog must not take it for one that does.
    pub fn restart_watchdog(&self) {
        // SAFETY: The device is valid; the number never changes.
        let queues = unsafe { (*self.dev.as_raw()).num_tx_queues };

        for index in 0..queues {
            self.dev.tx_queue(index).used();
        }
    }

    /// Gives the transmit path of queue `index` its state, or takes it away, and returns what was
    /// there. While there is none, frames for the queue are dropped.
    pub fn replace_tx(&self, index: u32, state: Option<T::Tx>) -> Option<T::Tx> {
        let queue = self.dev.tx_queue(index);

        queue.locked(|| {
            // SAFETY: The queue's lock is held inside this closure.
            match unsafe { self.dev.tx(index as usize) } {
                // SAFETY: The lock makes the access exclusive.
                Some(slot) => core::mem::replace(unsafe { &mut *slot }, state),
                None => state,
            }
        })
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
