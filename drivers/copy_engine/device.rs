// SPDX-License-Identifier: GPL-2.0

//! The registers, and which queues are in use.

use dma_buf::portal::Portal;
use engine::{
    pci as ids,
    regs, //
};
use kernel::{
    device::Core,
    io::Io,
    new_condvar,
    new_mutex,
    new_spinlock_irq,
    pci,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex,
        SpinLockIrq, //
    }, //
};

const QUEUES: usize = regs::QUEUES as usize;

/// What waits for a queue's interrupt.
#[pin_data]
pub(crate) struct Event {
    /// The device is there. What is waited for is looked at with the lock held, so that no interrupt is
    /// missed.
    #[pin]
    pub(crate) present: SpinLockIrq<bool>,
    #[pin]
    pub(crate) changed: CondVar,
}

impl Event {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                present <- new_spinlock_irq!(true),
                changed <- new_condvar!(),
            }),
            GFP_KERNEL,
        )
    }

    /// An interrupt has come.
    pub(crate) fn notify(&self) {
        let _present = self.present.lock();

        self.changed.notify_all();
    }

    fn end(&self) {
        *self.present.lock() = false;
        self.changed.notify_all();
    }
}

/// What queues share.
struct Shared {
    /// The device is there and may do DMA.
    present: bool,
    /// Queues that have a user: a bit each.
    used: u32,
}

/// A device.
#[pin_data]
pub(crate) struct Device {
    bar: pci::DevresBar<{ regs::BAR_SIZE }>,
    events: KVec<Arc<Event>>,
    portals: KVec<Portal>,
    #[pin]
    shared: Mutex<Shared>,
}

impl Device {
    /// Maps the registers and resets the device.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it is another device, or has another interface; `EBUSY`, `ENOMEM`, and those of
    /// [`Portal::new`].
    pub(crate) fn new(pdev: &pci::Device<Core<'_>>) -> Result<Arc<Self>> {
        let bar =
            pdev.iomap_region_sized::<{ regs::BAR_SIZE }>(ids::BAR_REGISTERS, c"copy_engine")?;
        let mut events = KVec::with_capacity(QUEUES, GFP_KERNEL)?;
        let mut portals = KVec::with_capacity(QUEUES, GFP_KERNEL)?;
        for queue in 0..regs::QUEUES {
            let offset = u64::from(regs::portal(queue));

            events.push(Event::new()?, GFP_KERNEL)?;
            // SAFETY: It has the queue execute descriptors and nothing else. They reach what was
            // imported into the queue by the program whose it is.
            let portal = unsafe { Portal::new(pdev, ids::BAR_REGISTERS, offset)? };
            portals.push(portal, GFP_KERNEL)?;
        }

        let this = Arc::pin_init(
            try_pin_init!(Self {
                events,
                portals,
                bar: bar.into_devres()?,
                shared <- new_mutex!(Shared { present: true, used: 0 }),
            }),
            GFP_KERNEL,
        )?;
        let (id, capabilities) = (this.read(regs::ID)?, this.read(regs::CAPABILITIES)?);
        if id != regs::ID_VALUE || capabilities != regs::CAPABILITIES_VALUE {
            dev_err!(pdev, "unknown interface: {id:#x}, {capabilities:#x}\n");
            return Err(ENODEV);
        }
        this.write(regs::RESET, 1)?;
        Ok(this)
    }

    /// What waits for a queue's interrupt.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue.
    pub(crate) fn event(&self, queue: u32) -> Result<&Arc<Event>> {
        self.events.get(queue as usize).ok_or(EINVAL)
    }

    /// The portal of a queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue.
    pub(crate) fn portal(&self, queue: u32) -> Result<Portal> {
        self.portals.get(queue as usize).copied().ok_or(EINVAL)
    }

    /// Reads a register.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the device is not bound any more.
    pub(crate) fn read(&self, register: u32) -> Result<u32> {
        let bar = self.bar.try_access().ok_or(ENODEV)?;

        (&*bar).try_read32(register as usize)
    }

    /// Writes a register, after all earlier writes to memory.
    ///
    /// # Errors
    ///
    /// As for [`Self::read`].
    pub(crate) fn write(&self, register: u32, value: u32) -> Result {
        let bar = self.bar.try_access().ok_or(ENODEV)?;

        (&*bar).try_write32(value, register as usize)
    }

    /// Does something that may end in DMA, while the device is not stopped.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it is, and those of `act`.
    pub(crate) fn while_present<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let shared = self.shared.lock();

        if !shared.present {
            return Err(ENODEV);
        }
        act()
    }

    /// Allocates an unused queue.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the device is stopped, `EBUSY` if there is no such queue.
    pub(crate) fn take_queue(&self) -> Result<u32> {
        let mut shared = self.shared.lock();
        let queue = shared.used.trailing_ones();

        if !shared.present {
            return Err(ENODEV);
        }
        if queue >= regs::QUEUES {
            return Err(EBUSY);
        }
        shared.used |= 1 << queue;
        Ok(queue)
    }

    /// Frees a queue, which must not run or have windows.
    pub(crate) fn release_queue(&self, queue: u32) {
        self.shared.lock().used &= !(1 << queue);
    }

    /// Ends all DMA, and wakes up all who wait for an interrupt, to fail with `ENODEV`.
    pub(crate) fn stop(&self) {
        let mut shared = self.shared.lock();

        shared.present = false;
        // It is bound yet; without a device there is no DMA, either.
        let _ = self.write(regs::RESET, 1);
        // Writes are posted: what is answered comes after them.
        let _ = self.read(regs::ID);
        drop(shared);
        for event in &self.events {
            event.end();
        }
    }
}
