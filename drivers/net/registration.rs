// SPDX-License-Identifier: GPL-2.0

//! How a driver registers and unregisters a net device.
//!
//! [`Unregistered`] is allocated and configured; [`Unregistered::register`] makes it known to the
//! core; dropping the [`Registration`] takes the interface down and unregisters it.

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
    ffi::c_ulong,
    prelude::*,
    sync::Arc, //
};
use net_bindings as bindings;

use crate::{
    device::{
        fields,
        Allocation,
        DeviceRef,
        Driver,
        Locked,
        MacAddress,
        NetDevice,
        Owner,
        Private, //
    },
    ethtool::{
        table::{
            self,
            Table, //
        },
        FlowRules, //
    },
    features::Features,
    napi::{
        self,
        Poll,
        Scheduler, //
    },
    ops,
    queue::{
        self,
        QueueManagement, //
    },
    stats::{
        self,
        QueueStats, //
    },
    xdp::{
        self,
        Xdp, //
        Xsk,
    },
};

/// What a driver says of its device when it registers.
pub struct Config {
    /// RX queues.
    pub rx_queues: u32,
    /// TX queues.
    pub tx_queues: u32,
    /// How many RX queues are in use at first.
    pub rx_in_use: u32,
    /// How many TX queues are in use at first.
    pub tx_in_use: u32,
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
    /// Features that are off at first and that the user may turn on.
    pub optional_features: Features,
    /// How long a frame to be cut into segments may be, in bytes, if the device has a limit that is
    /// below the core's.
    pub max_tso: Option<u32>,
    /// The transmit path takes frames whose fragments are device memory (`NETMEM_TX_DMA`).
    pub netmem_tx: bool,
    /// The device filters further unicast addresses (`IFF_UNICAST_FLT`).
    pub unicast_filter: bool,
    /// The MAC address may change while the interface is up (`IFF_LIVE_ADDR_CHANGE`).
    pub live_address_change: bool,
    /// The core keeps the device's packet statistics, as they are reported with
    /// [`NetDevice::count_received`] and [`TxQueue::count_sent`](crate::tx::TxQueue::count_sent),
    /// where the driver has no [`Driver::link_stats`].
    pub software_stats: bool,
}

impl Config {
    /// An Ethernet device with so many RX and TX queues, all of them in use, and no features.
    pub const fn new(rx_queues: u32, tx_queues: u32) -> Self {
        Self {
            rx_queues,
            tx_queues,
            rx_in_use: rx_queues,
            tx_in_use: tx_queues,
            mac_address: [0; 6],
            min_mtu: 68,
            max_mtu: 1500,
            fixed_features: Features::NONE,
            features: Features::NONE,
            optional_features: Features::NONE,
            max_tso: None,
            netmem_tx: false,
            unicast_filter: false,
            live_address_change: false,
            software_stats: false,
        }
    }

    fn set_flags(&self, dev: &mut bindings::net_device) {
        // SAFETY: All of the union is plain data.
        let flags = unsafe { &mut dev.__bindgen_anon_1.__bindgen_anon_1 };

        if self.netmem_tx {
            // CAST: Values of small enumerations, here and below.
            flags.set_netmem_tx(bindings::netmem_tx_mode_NETMEM_TX_DMA as c_ulong);
        }
        for (set, flag) in [
            (
                self.unicast_filter,
                bindings::netdev_priv_flags_IFF_UNICAST_FLT,
            ),
            (
                self.live_address_change,
                bindings::netdev_priv_flags_IFF_LIVE_ADDR_CHANGE,
            ),
        ] {
            if set {
                flags.set_priv_flags(flags.priv_flags() | flag as c_ulong);
            }
        }
        if self.software_stats {
            dev.set_pcpu_stat_type(bindings::netdev_stat_type_NETDEV_PCPU_STAT_TSTATS);
        }
    }
}

/// A net device that the core does not know yet.
///
/// `E` lists what it offers to ethtool; `()` is what every device has.
pub struct Unregistered<'bound, T: Driver, E = ()> {
    owner: Owner<T>,
    _parent: PhantomData<&'bound Device<Bound>>,
    _ethtool: PhantomData<E>,
}

impl<'bound, T: Driver + 'bound> Unregistered<'bound, T> {
    /// Allocates a net device on `parent`, which does its DMA.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if more queues are to be in use than there are, or none.
    pub fn new(parent: &'bound Device<Bound>, config: Config) -> Result<Self> {
        Self::alloc(Some(parent), config)
    }

    fn alloc(parent: Option<&'bound Device<Bound>>, config: Config) -> Result<Self> {
        const {
            // alloc_netdev_mqs() aligns the private area to a cache line, and no further.
            assert!(core::mem::align_of::<Private<T>>() <= bindings::NET_SHIM_CACHE_BYTES as usize);
        }
        // SAFETY: Allocates; any size will do.
        let raw = unsafe {
            bindings::alloc_etherdev_mqs(
                core::mem::size_of::<Private<T>>() as i32,
                config.tx_queues,
                config.rx_queues,
            )
        };
        // SAFETY: Allocated above, with room for `Private<T>`.
        let allocation =
            unsafe { Allocation::new(NonNull::new(raw).ok_or(ENOMEM)?, config.tx_queues)? };
        let dev = DeviceRef::new(Arc::new(allocation, GFP_KERNEL)?);
        let features = config.features.with(config.fixed_features);

        // SAFETY: `dev` was just allocated; before it is registered no lock is wanted.
        to_result(unsafe {
            bindings::netif_set_real_num_queues(raw, config.tx_in_use, config.rx_in_use)
        })?;
        // SAFETY: `dev` is not published yet; `Device` is a transparent wrapper of `struct device`.
        unsafe {
            if let Some(parent) = parent {
                (*raw).dev.parent = core::ptr::from_ref(parent).cast_mut().cast();
            }
            (*raw).netdev_ops = ops::Table::<T>::NETDEV;
            (*raw).request_ops_lock = true;
            (*raw).min_mtu = config.min_mtu;
            (*raw).max_mtu = config.max_mtu;
            (*raw).hw_features = config.features.with(config.optional_features).as_raw();
            (*raw).vlan_features = features
                .with(config.optional_features)
                .without(Features::RXHASH)
                .without(Features::VLAN_INSERT)
                .without(Features::VLAN_STRIP)
                .without(Features::VLAN_FILTER)
                .as_raw();
            (*raw).features = features.as_raw();
            if let Some(max) = config.max_tso {
                bindings::netif_set_tso_max_size(raw, max);
            }
            config.set_flags(&mut *raw);
            // The core says of a link only that it changed: up is a change from down.
            fields::set_carrier(raw, false);
            fields::set_address(raw, config.mac_address);
        }

        Ok(Self {
            // SAFETY: The device was just allocated; the `Registration` that the owner goes to
            // unregisters the device first.
            owner: unsafe { Owner::new(dev) },
            _parent: PhantomData,
            _ethtool: PhantomData,
        })
    }
}

impl<'bound, T: Driver + 'bound, E> Unregistered<'bound, T, E> {
    /// Offers rules that say to which queue packets go, and [`Features::NTUPLE`] to turn them off.
    pub fn with_flow_rules(self) -> Unregistered<'bound, T, (E, table::FlowRules)>
    where
        T: FlowRules,
    {
        let ntuple = Features::NTUPLE.as_raw();

        // SAFETY: The core does not know the device yet.
        unsafe {
            (*self.owner.device().as_raw()).hw_features |= ntuple;
            (*self.owner.device().as_raw()).features |= ntuple;
        }
        self.with_flow_rule_operations()
    }

    /// Offers the ethtool operations of `L`, too.
    pub(crate) fn with_operations<L>(self) -> Unregistered<'bound, T, (E, L)> {
        Unregistered {
            owner: self.owner,
            _parent: PhantomData,
            _ethtool: PhantomData,
        }
    }

    /// Offers queue management: device memory TCP and io_uring zero-copy receive need it.
    pub fn with_queue_management(self) -> Self
    where
        T: QueueManagement,
    {
        // SAFETY: As above.
        unsafe { (*self.owner.device().as_raw()).queue_mgmt_ops = queue::Table::<T>::OPS };
        self
    }

    /// Offers statistics per queue.
    pub fn with_queue_stats(self) -> Self
    where
        T: QueueStats,
    {
        // SAFETY: As above.
        unsafe { (*self.owner.device().as_raw()).stat_ops = stats::Table::<T>::OPS };
        self
    }

    /// Offers XDP.
    pub fn with_xdp(self) -> Self
    where
        T: Xdp,
    {
        // SAFETY: As above.
        unsafe {
            (*self.owner.device().as_raw()).netdev_ops = xdp::Table::<T>::NETDEV;
            (*self.owner.device().as_raw()).xdp_features = xdp::Table::<T>::FEATURES;
            (*self.owner.device().as_raw()).xdp_metadata_ops = xdp::MetadataTable::<T>::OPS;
        }
        self
    }

    /// Offers AF_XDP without copies; after [`Self::with_xdp`].
    pub fn with_xsk(self) -> Self
    where
        T: Xsk,
    {
        // SAFETY: As above.
        unsafe {
            (*self.owner.device().as_raw()).netdev_ops = xdp::XskTable::<T>::NETDEV;
            (*self.owner.device().as_raw()).xdp_features |= xdp::XSK_FEATURES;
        }
        self
    }

    /// A reference to the device, for the interrupt handlers that must exist before it is
    /// registered.
    pub fn device(&self) -> DeviceRef<T> {
        self.owner.device().clone()
    }

    /// Adds a NAPI; the first one has number 0. Returns what schedules it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn add_napi(
        &mut self,
        config: napi::Config,
        interrupt: <T::Napi as Poll>::Interrupt,
        state: T::Napi,
    ) -> Result<Scheduler<T>> {
        // SAFETY: The device is not registered yet.
        unsafe { self.owner.add_napi(config, interrupt, state) }
    }

    /// Registers the device with the driver's shared and control state.
    ///
    /// The interface comes up with the link down; [`NetDevice::set_carrier`] changes that.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what `register_netdev()` says.
    ///
    /// # Safety
    ///
    /// The caller must not `mem::forget()` the returned [`Registration`] or otherwise keep it
    /// from being dropped before the parent device is unbound, or the module is unloaded.
    pub unsafe fn register(self, driver: T, control: T::Control) -> Result<Registration<'bound, T>>
    where
        E: Table<T>,
    {
        let raw = self.owner.device().as_raw();
        let allocation = self.owner.device().allocation();

        // SAFETY: The private area is large enough for `Private<T>` by the type invariant,
        // aligned as it needs, and written once. INVARIANT: `allocation` is the device's.
        unsafe {
            fields::private(raw).write(Private {
                driver,
                control: UnsafeCell::new(control),
                allocation,
            });
        }

        // From here on dropping `registration` undoes what was done.
        let mut registration = Registration {
            owner: self.owner,
            registered: false,
            _parent: PhantomData,
        };

        // SAFETY: The core does not know the device yet.
        unsafe { (*raw).ethtool_ops = const { &E::OPS } };
        // SAFETY: The device is complete; no lock is held.
        to_result(unsafe { bindings::register_netdev(raw) })?;
        registration.registered = true;

        Ok(registration)
    }
}

impl<T: Driver + 'static> Unregistered<'static, T> {
    /// Allocates a net device that has no parent: its driver does no DMA.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub fn new_virtual(config: Config) -> Result<Self> {
        Self::alloc(None, config)
    }
}

/// A registered net device; dropping it unregisters the device, which takes the interface down.
///
/// # Invariants
///
/// The device's private area is written.
pub struct Registration<'bound, T: Driver> {
    owner: Owner<T>,
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
        unsafe { NetDevice::from_raw(self.owner.device().as_raw()) }
    }

    /// Calls `f` with the RTNL and the instance lock held, as the core calls the driver: for what
    /// comes from elsewhere, such as the device's bus.
    ///
    /// None of the driver's callbacks may call this: they have a [`Locked`], and it would deadlock.
    pub fn with_locked<R>(&self, f: impl FnOnce(Locked<'_, T>, &mut T::Control) -> R) -> R {
        let raw = self.owner.device().as_raw();

        // SAFETY: May sleep; the device is registered as long as `self` is borrowed.
        unsafe {
            bindings::rtnl_lock();
            fields::lock(raw);
        }
        let result = {
            // SAFETY: By the type invariant the private area is written; the lock is held, and the
            // closure can't keep what it gets. No callback is using the control state, because it
            // would hold the lock.
            let (dev, control) = unsafe { Locked::new(raw) };

            f(dev, control)
        };
        // SAFETY: Taken above, by this thread.
        unsafe {
            fields::unlock(raw);
            bindings::rtnl_unlock();
        }
        result
    }
}

impl<T: Driver> Drop for Registration<'_, T> {
    fn drop(&mut self) {
        let raw = self.owner.device().as_raw();

        if self.registered {
            // SAFETY: It is registered. The core takes the interface down first and returns when no
            // callback runs any more.
            unsafe { bindings::unregister_netdev(raw) };
        }
        // Polls use what the private area has.
        self.owner.close();
        // SAFETY: By the type invariant; nothing uses it any more.
        unsafe { core::ptr::drop_in_place(fields::private::<T>(raw)) };
    }
}
