// SPDX-License-Identifier: GPL-2.0

//! Queue management: one RX queue is restarted while the others run.
//!
//! This is how a queue is bound to device memory. The core allocates the new queue's memory while
//! the old queue still runs, stops the old, starts the new, and frees the old; whatever fails
//! leaves the old queue running (`net/core/netdev_rx_queue.c`).
//!
//! C header: `include/net/netdev_queues.h`

use core::marker::PhantomData;

use kernel::{
    error::from_result,
    prelude::*, //
};
use net_bindings as bindings;

use crate::{
    device::{
        Driver,
        Locked,
        NetDevice, //
    },
    ethtool::ExtAck,
    page_pool::PageSize, //
};

/// How a queue is configured (`struct netdev_queue_config`).
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Config {
    /// Size of the buffers for payload.
    pub rx_page_size: PageSize,
}

impl Config {
    fn from_raw(raw: &bindings::netdev_queue_config) -> Result<Self> {
        Ok(Self {
            rx_page_size: PageSize::new(raw.rx_page_size).ok_or(EINVAL)?,
        })
    }
}

/// Parameters of a [`Config`] that a user may set (`QCFG_*`), as a set.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Parameters(u32);

impl Parameters {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// [`Config::rx_page_size`].
    pub const RX_PAGE_SIZE: Self = Self(bindings::QCFG_RX_PAGE_SIZE);
}

/// A driver that can restart single RX queues.
pub trait QueueManagement: Driver {
    /// All that one stopped RX queue owns: its ring, buffers and pools. Dropping it frees them.
    type Memory: Send;

    /// The parameters that a user may set.
    const PARAMETERS: Parameters;

    /// How a queue is configured whose parameters no user has set.
    fn queue_default(dev: &NetDevice<Self>) -> Config;

    /// Checks that the device can do `config`.
    ///
    /// # Errors
    ///
    /// `ERANGE`; the queue stays as it is.
    fn queue_validate(dev: &NetDevice<Self>, config: &Config, extack: &ExtAck<'_>) -> Result;

    /// Allocates the memory of RX queue `index`, to be configured as `config` says.
    /// Nothing that runs may be changed, and the interface may be down.
    ///
    /// Other code that allocates a queue's memory must ask [`Locked::queue_config`].
    ///
    /// # Errors
    ///
    /// Any; the queue stays as it is.
    fn queue_alloc(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        config: &Config,
        index: u32,
    ) -> Result<Self::Memory>;

    /// Starts RX queue `index` on `memory`.
    ///
    /// If this fails, the core can only start the queue on its old memory, and warns if that fails,
    /// too. A driver that resets the device instead, and starts all queues afterwards, drops the
    /// memory and returns `Ok`.
    ///
    /// # Errors
    ///
    /// The memory is returned with any error, and the queue stays stopped.
    fn queue_start(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        index: u32,
        memory: Self::Memory,
    ) -> core::result::Result<(), (Error, Self::Memory)>;

    /// Stops RX queue `index` and returns what it owns. The device does no DMA to it any more.
    ///
    /// # Errors
    ///
    /// `ENETDOWN` if it does not run; with any other the queue runs on.
    fn queue_stop(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        index: u32,
    ) -> Result<Self::Memory>;
}

impl<T: QueueManagement> Locked<'_, T> {
    /// How RX queue `index` is configured: as the user set it for the memory provider that is bound
    /// to it, else as [`QueueManagement::queue_default`].
    ///
    /// # Errors
    ///
    /// `EINVAL`: there is no such queue, or queue management was not registered.
    pub fn queue_config(&self, index: u32) -> Result<Config> {
        let dev = self.device().as_raw();
        let mut raw = bindings::netdev_queue_config { rx_page_size: 0 };

        // SAFETY: The device is valid.
        let (queues, ops) = unsafe { ((*dev).num_rx_queues, (*dev).queue_mgmt_ops) };
        if index >= queues || ops.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: The device has operations and the queue, as checked, and the lock that guards
        // the provider is held. CAST: The number of a queue is small.
        unsafe { bindings::netdev_queue_config(dev, index as c_int, &mut raw) };
        Config::from_raw(&raw)
    }
}

/// What the core keeps of a queue: a zeroed block of its own, in which a `Memory` may lie.
#[repr(C)]
struct Slot<M> {
    /// `None` is not all zeroes for every `M`.
    present: bool,
    memory: core::mem::MaybeUninit<M>,
}

impl<M> Slot<M> {
    fn put(&mut self, memory: M) {
        self.memory.write(memory);
        self.present = true;
    }

    fn take(&mut self) -> Option<M> {
        // SAFETY: `present` says that it is initialised, and it is cleared.
        core::mem::take(&mut self.present).then(|| unsafe { self.memory.assume_init_read() })
    }
}

/// The C operations of `T`.
pub(crate) struct Table<T>(PhantomData<T>);

impl<T: QueueManagement> Table<T> {
    pub(crate) const OPS: &'static bindings::netdev_queue_mgmt_ops =
        &bindings::netdev_queue_mgmt_ops {
            ndo_queue_mem_size: core::mem::size_of::<Slot<T::Memory>>(),
            ndo_queue_mem_alloc: Some(Self::alloc),
            ndo_queue_mem_free: Some(Self::free),
            ndo_queue_start: Some(Self::start),
            ndo_queue_stop: Some(Self::stop),
            ndo_default_qcfg: Some(Self::default_config),
            ndo_validate_qcfg: Some(Self::validate),
            supported_params: T::PARAMETERS.0,
            ..pin_init::zeroed()
        };

    /// # Safety
    ///
    /// `mem` must be a block that the core allocated for a queue of `T`, used by one caller.
    unsafe fn slot<'a>(mem: *mut c_void) -> &'a mut Slot<T::Memory> {
        const {
            // kvzalloc() aligns that much.
            assert!(core::mem::align_of::<Slot<T::Memory>>() <= 8);
        }
        // SAFETY: As this function requires; all zeroes is an empty slot.
        unsafe { &mut *mem.cast() }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_default_qcfg`.
    unsafe extern "C" fn default_config(
        dev: *mut bindings::net_device,
        config: *mut bindings::netdev_queue_config,
    ) {
        // SAFETY: The core calls with a device of `T` and a valid structure.
        let (dev, config) = unsafe { (NetDevice::<T>::from_raw(dev), &mut *config) };

        config.rx_page_size = T::queue_default(dev).rx_page_size.bytes();
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_validate_qcfg`.
    unsafe extern "C" fn validate(
        dev: *mut bindings::net_device,
        config: *mut bindings::netdev_queue_config,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls with a device of `T`, and with valid structures; the last may be
        // null.
        let (dev, config, extack) = unsafe {
            (
                NetDevice::<T>::from_raw(dev),
                &*config,
                ExtAck::from_raw(extack),
            )
        };

        from_result(|| {
            let config = Config::from_raw(config).inspect_err(|_| {
                extack.set(c"rx_page_size is not a power of two, or less than a page");
            })?;

            T::queue_validate(dev, &config, &extack).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_queue_mem_alloc`.
    unsafe extern "C" fn alloc(
        dev: *mut bindings::net_device,
        config: *mut bindings::netdev_queue_config,
        mem: *mut c_void,
        index: c_int,
    ) -> c_int {
        // SAFETY: The core calls with a device of `T`, its lock held, and a block for the queue.
        let ((locked, control), slot) = unsafe { (Locked::<T>::new(dev), Self::slot(mem)) };
        // SAFETY: The core calls with a valid structure.
        let config = unsafe { &*config };

        from_result(|| {
            let config = Config::from_raw(config)?;

            slot.put(T::queue_alloc(
                locked,
                control,
                &config,
                u32::try_from(index)?,
            )?);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_queue_mem_free`.
    unsafe extern "C" fn free(_dev: *mut bindings::net_device, mem: *mut c_void) {
        // SAFETY: The core calls with a block that an operation above has filled or emptied.
        drop(unsafe { Self::slot(mem) }.take());
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_queue_start`.
    unsafe extern "C" fn start(
        dev: *mut bindings::net_device,
        _config: *mut bindings::netdev_queue_config,
        mem: *mut c_void,
        index: c_int,
    ) -> c_int {
        // SAFETY: As in `alloc`.
        let ((locked, control), slot) = unsafe { (Locked::<T>::new(dev), Self::slot(mem)) };

        from_result(|| {
            let index = u32::try_from(index)?;
            let memory = slot.take().ok_or(EINVAL)?;

            match T::queue_start(locked, control, index, memory) {
                Ok(()) => Ok(0),
                Err((error, memory)) => {
                    slot.put(memory);
                    Err(error)
                }
            }
        })
    }

    /// # Safety
    ///
    /// Only the core may call it, as `ndo_queue_stop`.
    unsafe extern "C" fn stop(
        dev: *mut bindings::net_device,
        mem: *mut c_void,
        index: c_int,
    ) -> c_int {
        // SAFETY: As in `alloc`.
        let ((locked, control), slot) = unsafe { (Locked::<T>::new(dev), Self::slot(mem)) };

        from_result(|| {
            slot.put(T::queue_stop(locked, control, u32::try_from(index)?)?);
            Ok(0)
        })
    }
}
