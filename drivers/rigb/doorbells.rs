// SPDX-License-Identifier: GPL-2.0

//! Doorbells of TX queues, which other devices' drivers may let these devices ring.

use doorbell::Doorbell;
#[cfg(CONFIG_AUXILIARY_BUS)]
use doorbell::Doorbells;
use i82576::{
    limits,
    regs, //
};
#[cfg(CONFIG_AUXILIARY_BUS)]
use kernel::{
    auxiliary,
    module::this_module,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        },
    },
    ModuleMetadata, //
};
use kernel::{
    device::Bound,
    pci,
    prelude::*,
    sync::Arc, //
};

use crate::hw::Hw;

/// Those of a device's TX queues.
///
/// # Errors
///
/// `ENOMEM`.
pub(crate) fn new(pdev: &pci::Device<Bound>) -> Result<KVec<Arc<Doorbell>>> {
    let registers = pdev.resource_start(0)?;
    let mut doorbells = KVec::with_capacity(limits::MAX_TX_QUEUES.into(), GFP_KERNEL)?;

    for queue in 0..limits::MAX_TX_QUEUES {
        // CAST: An offset in the BAR.
        let register = regs::tdt(queue).offset() as u64;

        doorbells.push(Doorbell::new(registers + register)?, GFP_KERNEL)?;
    }
    Ok(doorbells)
}

/// Offers them, as auxiliary device `rigb.doorbell.<N>`, until it is dropped.
pub(crate) struct Offer<'bound> {
    #[cfg(CONFIG_AUXILIARY_BUS)]
    _registration: auxiliary::Registration<'bound, doorbell::Data>,
    #[cfg(not(CONFIG_AUXILIARY_BUS))]
    _bound: core::marker::PhantomData<&'bound ()>,
}

impl<'bound> Offer<'bound> {
    /// Of a device.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of `auxiliary_device_add()`.
    #[cfg(CONFIG_AUXILIARY_BUS)]
    pub(crate) fn new(pdev: &'bound pci::Device<Bound>, hw: &Hw<'bound>) -> Result<Self> {
        static NUMBER: Atomic<u32> = Atomic::new(0);
        let mut queues = KVec::with_capacity(hw.doorbells.len(), GFP_KERNEL)?;

        for doorbell in &hw.doorbells {
            queues.push(doorbell.clone(), GFP_KERNEL)?;
        }
        let doorbells = Doorbells {
            pdev: ARef::from(pdev),
            module: this_module::<crate::LocalModule>(),
            queues,
        };
        Ok(Self {
            _registration: auxiliary::Registration::new(
                pdev.as_ref(),
                doorbell::NAME,
                NUMBER.fetch_add(1, Relaxed),
                crate::LocalModule::NAME,
                Arc::new(doorbells, GFP_KERNEL)?,
            )?,
        })
    }

    /// Without an auxiliary bus there is no other driver that could bind.
    #[cfg(not(CONFIG_AUXILIARY_BUS))]
    pub(crate) fn new(_: &'bound pci::Device<Bound>, _: &Hw<'bound>) -> Result<Self> {
        Ok(Self {
            _bound: core::marker::PhantomData,
        })
    }
}
