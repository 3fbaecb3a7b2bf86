// SPDX-License-Identifier: GPL-2.0

//! A device's interrupt vectors with their handlers.

use core::pin::Pin;

use kernel::{
    device::Bound,
    irq::{
        Flags,
        Handler,
        IrqRequest,
        Registration, //
    },
    pci,
    prelude::*, //
};

/// The interrupt vectors of a device, and the handlers on them, which are of one type.
///
/// # Invariants
///
/// The handlers' lifetimes are extended to `'bound`; they borrow from `allocation`, which is
/// boxed, so that it does not move, and declared last, so that it is dropped after them.
pub struct Vectors<'bound, H: Handler> {
    handlers: KVec<Pin<KBox<Registration<'bound, H>>>>,
    allocation: KBox<pci::IrqVectorRegistration<'bound>>,
}

impl<'bound, H: Handler + Send + 'bound> Vectors<'bound, H> {
    /// Allocates `min` to `max` vectors of one of `types`: the best that the device has, in the
    /// order MSI-X, MSI, INTx.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if there are fewer than `min`, `ENOMEM`.
    pub fn new(
        dev: &'bound pci::Device<Bound>,
        types: pci::IrqTypes,
        min: u32,
        max: u32,
    ) -> Result<Self> {
        Ok(Self {
            handlers: KVec::new(),
            allocation: KBox::new(dev.alloc_irq_vectors(min, max, types)?, GFP_KERNEL)?,
        })
    }

    /// How many vectors there are.
    pub fn count(&self) -> u32 {
        // CAST: At most 2048 by the PCI specification.
        self.allocation.len() as u32
    }

    /// Of which type the vectors are.
    pub fn irq_type(&self) -> pci::IrqType {
        self.allocation.irq_type()
    }

    /// The interrupt number of vector `index`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such vector.
    pub fn irq(&self, index: u32) -> Result<u32> {
        let request: IrqRequest<'_> = self.allocation.index(index as usize)?.into();

        Ok(request.irq())
    }

    /// Waits until no handler runs that has begun before.
    pub fn synchronize(&self) {
        for handler in &self.handlers {
            handler.synchronize();
        }
    }

    /// Registers `handler` on vector `index` until `self` is dropped.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such vector, `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The caller must not `mem::forget()` the vectors or otherwise keep them from being dropped
    /// before the device is unbound.
    pub unsafe fn handle(&mut self, index: u32, name: &'static CStr, handler: H) -> Result {
        let request: IrqRequest<'_> = self.allocation.index(index as usize)?.into();
        let flags = match self.irq_type() {
            // The line may be other devices', too.
            pci::IrqType::Intx => Flags::SHARED,
            pci::IrqType::Msi | pci::IrqType::MsiX => Flags::TRIGGER_NONE,
        };
        // SAFETY: By the type invariant what is borrowed lives as long as `self`, and the handler
        // does not get out of it.
        let request: IrqRequest<'bound> = unsafe { core::mem::transmute(request) };
        // SAFETY: The registration goes into `self.handlers` and is dropped with it, which the
        // caller sees to.
        let registration = unsafe { Registration::new(request, flags, name, Ok(handler)) };
        let registration = KBox::pin_init(registration, GFP_KERNEL)?;

        // INVARIANT: The handler is dropped before the allocation.
        self.handlers.push(registration, GFP_KERNEL)?;
        Ok(())
    }
}
