// SPDX-License-Identifier: GPL-2.0

//! The system is shut down, or sleeps and wakes up.

use core::pin::Pin;

use kernel::{
    device::Core,
    pci,
    prelude::*, //
};
use net::device::Locked;
use pci_driver::{
    ChannelState,
    ErsResult, //
};

use crate::{
    driver::{
        Bound,
        Rigb, //
    },
    netdev::{
        Adapter,
        Control,
        Pending,
        Rings, //
    },
    recovery, //
};

#[vtable]
impl pci_driver::Driver for Rigb {
    fn shutdown<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Bound<'bound>>) {
        this.netdev.with_locked(Adapter::detach);
        pci_driver::clear_master(dev);
    }

    fn suspend<'bound>(_dev: &'bound pci::Device<Core<'_>>, this: Pin<&Bound<'bound>>) -> Result {
        this.netdev.with_locked(Adapter::detach);
        Ok(())
    }

    fn resume<'bound>(dev: &'bound pci::Device<Core<'_>>, this: Pin<&Bound<'bound>>) -> Result {
        dev.set_master();
        this.netdev.with_locked(|netdev, control| {
            netdev.device().driver().hw.reset()?;
            Adapter::attach(netdev, control)
        })
    }

    fn error_detected<'bound>(
        dev: &'bound pci::Device<Core<'_>>,
        this: Pin<&Bound<'bound>>,
        state: ChannelState,
    ) -> ErsResult {
        recovery::error_detected(dev, &this, state)
    }

    fn slot_reset<'bound>(
        dev: &'bound pci::Device<Core<'_>>,
        this: Pin<&Bound<'bound>>,
    ) -> ErsResult {
        recovery::slot_reset(dev, &this)
    }

    fn error_resume<'bound>(_dev: &'bound pci::Device<Core<'_>>, this: Pin<&Bound<'bound>>) {
        recovery::error_resume(&this);
    }
}

impl<'bound> Adapter<'bound> {
    /// Stops the device, and keeps the core from using it. What users have set stays, and what is
    /// bound stays bound.
    pub(crate) fn detach(dev: Locked<'_, Self>, control: &mut Control) {
        dev.detach();
        if dev.is_running() {
            Self::halt(dev, control, Pending::Drop);
            Self::give_up(dev, control);
        }
        if let Some(clock) = &dev.device().driver().clock {
            clock.cancel();
        }
    }

    /// Undoes [`Self::detach`], on a device that was reset.
    ///
    /// # Errors
    ///
    /// As for [`Self::reconfigure`]; the core does not use the device.
    pub(crate) fn attach(dev: Locked<'_, Self>, control: &mut Control) -> Result {
        let clock = &dev.device().driver().clock;

        if dev.is_running() {
            // A queue may have been started meanwhile, because its AF_XDP socket went.
            Self::halt(dev, control, Pending::Drop);
            Rings::for_all(dev, control, &control.settings)
                .and_then(|rings| Self::start(dev, control, rings))
                .inspect_err(|_| Self::give_up(dev, control))?;
        } else if let Some(clock) = clock {
            clock.start(&control.timestamping);
        }
        if let Some(clock) = clock {
            clock.schedule();
        }
        dev.attach();
        Ok(())
    }
}
