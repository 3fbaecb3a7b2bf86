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

use crate::device::{
    Driver,
    Locked, //
};

/// A driver that can restart single RX queues.
pub trait QueueManagement: Driver {
    /// All that one stopped RX queue owns: its ring, buffers and pools. Dropping it frees them.
    type Memory: Send;

    /// Allocates the memory of RX queue `index`. Nothing that runs may be changed, and the
    /// interface may be down.
    ///
    /// # Errors
    ///
    /// Any; the queue stays as it is.
    fn queue_alloc(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        index: u32,
    ) -> Result<Self::Memory>;

    /// Starts RX queue `index` on `memory`.
    ///
    /// # Errors
    ///
    /// Gives the memory back.
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
    /// The queue runs on.
    fn queue_stop(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        index: u32,
    ) -> Result<Self::Memory>;
}

/// What the core keeps of a queue: a zeroed block of its own, in which a `Memory` may lie.
#[repr(C)]
struct Slot<M> {
    /// `None` is not all zeroes for every `M`, so say it apart.
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
            ndo_queue_get_dma_dev: Some(Self::dma_dev),
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
    /// Only the core may call it, as `ndo_queue_mem_alloc`.
    unsafe extern "C" fn alloc(
        dev: *mut bindings::net_device,
        _config: *mut bindings::netdev_queue_config,
        mem: *mut c_void,
        index: c_int,
    ) -> c_int {
        // SAFETY: The core calls with a device of `T`, its lock held, and a block for the queue.
        let ((locked, control), slot) = unsafe { (Locked::<T>::new(dev), Self::slot(mem)) };

        from_result(|| {
            slot.put(T::queue_alloc(locked, control, u32::try_from(index)?)?);
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

    /// The device that does the queue's DMA: the net device's parent.
    ///
    /// # Safety
    ///
    /// Only the core may call it, as `ndo_queue_get_dma_dev`.
    unsafe extern "C" fn dma_dev(
        dev: *mut bindings::net_device,
        _index: c_int,
    ) -> *mut bindings::device {
        // SAFETY: The core calls with a valid device.
        unsafe { (*dev).dev.parent }
    }
}
