// SPDX-License-Identifier: GPL-2.0

//! Errors on the bus (PCIe AER), and what follows them.
//!
//! C documentation: `Documentation/PCI/pci-error-recovery.rst`

use kernel::{
    device::Core,
    pci,
    prelude::*, //
};
use pci_driver::{
    ChannelState,
    ErsResult, //
};

use crate::{
    driver::Bound,
    netdev::Adapter, //
};

/// Quiesces the device. It is reset afterwards, regardless of the error.
pub(crate) fn error_detected(
    dev: &pci::Device<Core<'_>>,
    bound: &Bound<'_>,
    state: ChannelState,
) -> ErsResult {
    // Its queues may not stop, but their memory is freed.
    pci_driver::clear_master(dev);
    bound.netdev.with_locked(Adapter::detach);
    match state {
        ChannelState::Normal | ChannelState::Frozen => ErsResult::NeedReset,
        ChannelState::PermanentFailure => ErsResult::Disconnect,
    }
}

/// Makes the device accessible again.
pub(crate) fn slot_reset(dev: &pci::Device<Core<'_>>, bound: &Bound<'_>) -> ErsResult {
    let hw = &bound.netdev.device().driver().hw;
    let outcome = pci_driver::restore_state(dev).and_then(|()| hw.reset());

    match outcome {
        Ok(()) => {
            dev.set_master();
            ErsResult::Recovered
        }
        Err(error) => {
            dev_err!(dev, "not reset after a bus error: {error:?}\n");
            ErsResult::Disconnect
        }
    }
}

/// Resumes what [`error_detected`] has stopped.
pub(crate) fn error_resume(bound: &Bound<'_>) {
    let outcome = bound.netdev.with_locked(Adapter::attach);

    if let Err(error) = outcome {
        dev_err!(
            bound.netdev.device().driver().parent,
            "not started after a bus error: {error:?}\n"
        );
    }
}
