// SPDX-License-Identifier: GPL-2.0

//! A device's MSI-X vectors with threaded handlers, which may sleep.

use core::pin::Pin;

use kernel::{
    device::Bound,
    irq::{
        Flags,
        IrqRequest,
        ThreadedHandler,
        ThreadedRegistration, //
    },
    pci,
    prelude::*, //
};

/// Vectors from 0 on, each with its handler.
///
/// # Invariants
///
/// The handlers' lifetimes are extended to `'bound`; they borrow from `allocation`, which is
/// boxed, so that it does not move, and declared last, so that it is dropped after them.
pub struct ThreadedVectors<'bound, H: ThreadedHandler> {
    handlers: KVec<Pin<KBox<ThreadedRegistration<'bound, H>>>>,
    allocation: KBox<pci::IrqVectorRegistration<'bound>>,
}

impl<'bound, H: ThreadedHandler + Send + 'bound> ThreadedVectors<'bound, H> {
    /// Allocates `count` vectors, and registers `handler(n)` on vector `n`.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if there are fewer, `ENOMEM`, and those of `handler`.
    ///
    /// # Safety
    ///
    /// The caller must not `mem::forget()` the vectors or otherwise keep them from being dropped
    /// before the device is unbound.
    pub unsafe fn new(
        dev: &'bound pci::Device<Bound>,
        count: u32,
        name: &'static CStr,
        handler: impl Fn(u32) -> Result<H>,
    ) -> Result<Self> {
        let types = pci::IrqTypes::default().with(pci::IrqType::MsiX);
        let mut this = Self {
            handlers: KVec::with_capacity(count as usize, GFP_KERNEL)?,
            allocation: KBox::new(dev.alloc_irq_vectors(count, count, types)?, GFP_KERNEL)?,
        };

        for index in 0..count {
            let request: IrqRequest<'_> = this.allocation.index(index as usize)?.into();
            // SAFETY: By the type invariant what is borrowed lives as long as `self`, and the handler
            // does not get out of it.
            let request: IrqRequest<'bound> = unsafe { core::mem::transmute(request) };
            let handler = handler(index)?;
            // SAFETY: The registration goes into `handlers` and is dropped with it, which the caller
            // sees to.
            let registration = unsafe {
                ThreadedRegistration::new(request, Flags::TRIGGER_NONE, name, Ok(handler))
            };

            // INVARIANT: The handler is dropped before the allocation.
            this.handlers
                .push(KBox::pin_init(registration, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(this)
    }
}
