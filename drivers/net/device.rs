// SPDX-License-Identifier: GPL-2.0

//! Net devices: what a driver implements, and how it registers.
//!
//! C header: `include/linux/netdevice.h`

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    device::{
        Bound,
        Device, //
    },
    error::to_result,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use net_bindings as bindings;

use crate::{
    ethtool::{
        self,
        Ethtool, //
    },
    ops,
    queue::{
        self,
        QueueManagement, //
    },
    stats::{
        self,
        LinkStats,
        QueueStats, //
    },
    tx::{
        Transmit,
        TxQueue, //
    },
};

/// A MAC address.
pub type MacAddress = [u8; 6];

/// Offload features of a device (`NETIF_F_*`), as a set.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    /// Scatter-gather on transmit; without it no frame can have unreadable fragments.
    pub const SG: Self = Self(bindings::NET_SHIM_F_SG);
    /// TCP and UDP checksums over IPv4 by the device.
    pub const IP_CSUM: Self = Self(bindings::NET_SHIM_F_IP_CSUM);
    /// TCP and UDP checksums over IPv6 by the device.
    pub const IPV6_CSUM: Self = Self(bindings::NET_SHIM_F_IPV6_CSUM);
    /// TCP segmentation over IPv4.
    pub const TSO: Self = Self(bindings::NET_SHIM_F_TSO);
    /// TCP segmentation over IPv6.
    pub const TSO6: Self = Self(bindings::NET_SHIM_F_TSO6);
    /// Receive checksums by the device.
    pub const RXCSUM: Self = Self(bindings::NET_SHIM_F_RXCSUM);
    /// The receive hash in the descriptor is passed on.
    pub const RXHASH: Self = Self(bindings::NET_SHIM_F_RXHASH);
    /// DMA from all of memory.
    pub const HIGHDMA: Self = Self(bindings::NET_SHIM_F_HIGHDMA);

    /// Returns whether all of `other` is in this set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns both sets together.
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this set less `other`.
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub(crate) const fn as_raw(self) -> u64 {
        self.0
    }
}

/// Which frames beside its own a device shall receive.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct RxMode {
    /// All frames (`IFF_PROMISC`).
    pub promiscuous: bool,
    /// All multicast frames: asked for by `IFF_ALLMULTI`, or multicast addresses are set.
    pub multicast: bool,
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

    /// Sets which frames are received (`ndo_set_rx_mode_async`).
    fn set_rx_mode(dev: Locked<'_, Self>, control: &mut Self::Control, mode: RxMode) -> Result;

    /// Tells the device its MAC address, which the core has validated (`ndo_set_mac_address`).
    fn set_mac_address(dev: Locked<'_, Self>, control: &mut Self::Control, addr: &MacAddress);

    /// Takes note of a new MTU, which is within the registered limits (`ndo_change_mtu`).
    fn change_mtu(dev: Locked<'_, Self>, control: &mut Self::Control, mtu: u32) -> Result;

    /// The features that can be used for `skb` of those in `features` (`ndo_features_check`).
    fn features_check(skb: &crate::skb::SkBuffRef<'_>, features: Features) -> Features;

    /// Adds up the device's statistics (`ndo_get_stats64`). Called without a lock.
    fn link_stats(&self) -> LinkStats;
}

/// A `struct net_device` whose driver is `T`.
///
/// # Invariants
///
/// The pointed-to net device was allocated by [`Unregistered::new`] with `T`.
#[repr(transparent)]
pub struct NetDevice<T: Driver>(Opaque<bindings::net_device>, PhantomData<T>);

// SAFETY: What is reachable through a shared reference is `T`, which is `Sync`, and C functions
// that may be called from any context.
unsafe impl<T: Driver> Sync for NetDevice<T> {}

/// What the abstraction keeps in `netdev_priv()`.
pub(crate) struct Private<T: Driver> {
    driver: T,
    control: UnsafeCell<T::Control>,
    tx: KVec<UnsafeCell<Option<T::Tx>>>,
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
        // SAFETY: The vector itself is never changed after registration.
        let queues = unsafe { &(*self.private()).tx };

        queues.get(index).map(UnsafeCell::get)
    }

    /// Says whether the link is up: while it is, the core sends.
    pub fn set_carrier(&self, up: bool) {
        // SAFETY: By the type invariant the device is valid.
        unsafe { set_carrier(self.as_raw(), up) };
    }

    /// TX queue `index`, for flow control.
    pub fn tx_queue(&self, index: u32) -> TxQueue<'_> {
        // SAFETY: By the type invariant the device is valid.
        unsafe { TxQueue::of(self.as_raw(), index) }
    }
}

/// # Safety
///
/// `dev` must be an allocated net device.
unsafe fn set_carrier(dev: *mut bindings::net_device, up: bool) {
    // SAFETY: As this function requires; callable from any context.
    unsafe {
        if up {
            bindings::netif_carrier_on(dev);
        } else {
            bindings::netif_carrier_off(dev);
        }
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
    /// # Safety
    ///
    /// The instance lock of `dev` must be held by this thread for `'a`.
    pub(crate) unsafe fn new(dev: &'a NetDevice<T>) -> Self {
        Self {
            dev,
            _not_send: PhantomData,
        }
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

/// What a driver says of its device when it registers.
pub struct Config {
    /// RX queues.
    pub rx_queues: u32,
    /// TX queues.
    pub tx_queues: u32,
    /// The device's own MAC address; a random one is used where it is not valid.
    pub mac_address: MacAddress,
    /// Smallest MTU in bytes.
    pub min_mtu: u32,
    /// Largest MTU in bytes.
    pub max_mtu: u32,
    /// Features that are always on.
    pub fixed_features: Features,
    /// Features that are on at first and that the user may turn off.
    pub features: Features,
    /// The transmit path takes frames whose fragments are device memory (`NETMEM_TX_DMA`).
    pub netmem_tx: bool,
}

/// The memory of a net device: freed when the last owner is gone.
///
/// # Invariants
///
/// The pointer came from `alloc_etherdev_mqs()` with room for `Private<T>`.
struct Allocation<T: Driver>(NonNull<bindings::net_device>, PhantomData<T>);

// SAFETY: The allocation gives no access to what is in it.
unsafe impl<T: Driver> Send for Allocation<T> {}
// SAFETY: As above.
unsafe impl<T: Driver> Sync for Allocation<T> {}

impl<T: Driver> Drop for Allocation<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; `Registration` has unregistered the device before it
        // lets go of its share, and nobody else has one.
        unsafe { bindings::free_netdev(self.0.as_ptr()) };
    }
}

/// A share in a net device's memory, for what may live as long as the device: NAPIs, interrupt
/// handlers. The device may not be registered yet, or not any more.
pub struct DeviceRef<T: Driver>(Arc<Allocation<T>>);

impl<T: Driver> Clone for DeviceRef<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Driver> DeviceRef<T> {
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0 .0.as_ptr()
    }

    /// Says whether the link is up: while it is, the core sends.
    ///
    /// May be called from any context, also before the device is registered.
    pub fn set_carrier(&self, up: bool) {
        // SAFETY: The memory is valid; a device that is not registered only changes a flag.
        unsafe { set_carrier(self.as_raw(), up) };
    }

    /// TX queue `index`, for flow control from a completion path.
    pub fn tx_queue(&self, index: u32) -> TxQueue<'_> {
        // SAFETY: The memory is valid as long as `self` is.
        unsafe { TxQueue::of(self.as_raw(), index) }
    }

    /// The features in use now.
    #[inline]
    pub fn features(&self) -> Features {
        // SAFETY: The memory is valid.
        Features::from_raw(unsafe { bindings::net_shim_features(self.as_raw()) })
    }
}

/// A net device that the core does not know yet.
pub struct Unregistered<'bound, T: Driver> {
    dev: DeviceRef<T>,
    config: Config,
    _parent: PhantomData<&'bound Device<Bound>>,
}

impl<'bound, T: Driver + 'bound> Unregistered<'bound, T> {
    /// Allocates a net device on `parent`, which does its DMA.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(parent: &'bound Device<Bound>, config: Config) -> Result<Self> {
        // SAFETY: Allocates; any size will do.
        let raw = unsafe {
            bindings::alloc_etherdev_mqs(
                core::mem::size_of::<Private<T>>() as i32,
                config.tx_queues,
                config.rx_queues,
            )
        };
        // INVARIANT: Allocated above, with room for `Private<T>`.
        let allocation = Allocation(NonNull::new(raw).ok_or(ENOMEM)?, PhantomData);
        let dev = DeviceRef(Arc::new(allocation, GFP_KERNEL)?);
        let features = config.features.with(config.fixed_features);

        // SAFETY: `dev` was just allocated and nobody else knows it; `Device` is a transparent
        // wrapper of `struct device`.
        unsafe {
            bindings::net_shim_set_netdev_dev(raw, core::ptr::from_ref(parent).cast_mut().cast());
            (*raw).netdev_ops = ops::Table::<T>::NETDEV;
            (*raw).request_ops_lock = true;
            (*raw).min_mtu = config.min_mtu;
            (*raw).max_mtu = config.max_mtu;
            (*raw).hw_features = config.features.as_raw();
            (*raw).vlan_features = features.without(Features::RXHASH).as_raw();
            (*raw).features = features.as_raw();
            bindings::net_shim_set_priv_flags(raw, config.netmem_tx);
            if bindings::net_shim_is_valid_ether_addr(config.mac_address.as_ptr()) {
                bindings::net_shim_eth_hw_addr_set(raw, config.mac_address.as_ptr());
            } else {
                bindings::net_shim_eth_hw_addr_random(raw);
            }
        }

        Ok(Self {
            dev,
            config,
            _parent: PhantomData,
        })
    }

    /// Offers the driver's ethtool operations.
    pub fn with_ethtool(self) -> Self
    where
        T: Ethtool,
    {
        // SAFETY: The core does not know the device yet.
        unsafe { (*self.dev.as_raw()).ethtool_ops = ethtool::Table::<T>::OPS };
        self
    }

    /// Offers queue management: device memory TCP and io_uring zero-copy receive need it.
    pub fn with_queue_management(self) -> Self
    where
        T: QueueManagement,
    {
        // SAFETY: As above.
        unsafe { (*self.dev.as_raw()).queue_mgmt_ops = queue::Table::<T>::OPS };
        self
    }

    /// Offers statistics per queue.
    pub fn with_queue_stats(self) -> Self
    where
        T: QueueStats,
    {
        // SAFETY: As above.
        unsafe { (*self.dev.as_raw()).stat_ops = stats::Table::<T>::OPS };
        self
    }

    /// A share in the device, for the NAPIs and interrupt handlers that must exist before it is
    /// registered.
    pub fn device(&self) -> DeviceRef<T> {
        self.dev.clone()
    }

    /// Registers the device with the driver's shared and control state.
    ///
    /// The interface comes up with the link down; [`NetDevice::carrier_on`] changes that.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what `register_netdev()` says.
    ///
    /// # Safety
    ///
    /// The caller must not `mem::forget()` the returned [`Registration`] or otherwise keep it
    /// from being dropped before the parent device is unbound.
    pub unsafe fn register(
        self,
        driver: T,
        control: T::Control,
    ) -> Result<Registration<'bound, T>> {
        let mut tx = KVec::with_capacity(self.config.tx_queues as usize, GFP_KERNEL)?;

        for _ in 0..self.config.tx_queues {
            tx.push(UnsafeCell::new(None), GFP_KERNEL)?;
        }

        let raw = self.dev.as_raw();

        // SAFETY: The private area is large enough for `Private<T>` by the type invariant,
        // aligned to a cache line, and written once.
        unsafe {
            bindings::net_shim_netdev_priv(raw)
                .cast::<Private<T>>()
                .write(Private {
                    driver,
                    control: UnsafeCell::new(control),
                    tx,
                });
        }

        // From here on dropping `registration` undoes what was done.
        let mut registration = Registration {
            dev: self.dev,
            registered: false,
            _parent: PhantomData,
        };

        // SAFETY: The device is complete; no lock is held.
        to_result(unsafe { bindings::register_netdev(raw) })?;
        registration.registered = true;

        Ok(registration)
    }
}

/// A registered net device; dropping it unregisters the device, which takes the interface down.
///
/// # Invariants
///
/// The device's private area is written.
pub struct Registration<'bound, T: Driver> {
    dev: DeviceRef<T>,
    registered: bool,
    _parent: PhantomData<&'bound Device<Bound>>,
}

// SAFETY: A registration can be dropped on any thread that may sleep; `T` and its control state
// are `Send`.
unsafe impl<T: Driver> Send for Registration<'_, T> {}

impl<T: Driver> Registration<'_, T> {
    /// The device.
    pub fn device(&self) -> &NetDevice<T> {
        // SAFETY: By the type invariant; the device lives as long as `self`.
        unsafe { NetDevice::from_raw(self.dev.as_raw()) }
    }
}

impl<T: Driver> Drop for Registration<'_, T> {
    fn drop(&mut self) {
        let raw = self.dev.as_raw();

        // SAFETY: By the type invariant. The core takes the interface down first and returns when
        // no callback runs any more, so that the private area can go.
        unsafe {
            if self.registered {
                bindings::unregister_netdev(raw);
            }
            core::ptr::drop_in_place(bindings::net_shim_netdev_priv(raw).cast::<Private<T>>());
        }
    }
}
