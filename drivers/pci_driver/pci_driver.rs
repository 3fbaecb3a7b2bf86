// SPDX-License-Identifier: GPL-2.0

//! Shutdown, system sleep, error recovery, and vectors with their handlers of PCI devices, which
//! `kernel::pci` lacks.
//!
//! [`Driver`] extends [`kernel::pci::Driver`], and [`Adapter`] registers both: it sets the further
//! callbacks of `struct pci_driver` and leaves the rest to [`kernel::pci::Adapter`]. Upstream these
//! would be optional functions of `pci::Driver` itself, and the functions on devices methods of
//! `pci::Device<Core>`. This crate knows no driver.
//!
//! C header: `include/linux/pci.h`

mod adapter;
mod device;
pub mod irq;

use core::pin::Pin;

use kernel::{
    bindings,
    device::Core,
    error::VTABLE_DEFAULT_ERROR,
    pci,
    prelude::*, //
};

pub use self::{
    adapter::Adapter,
    device::{
        clear_master,
        restore_state, //
    }, //
};

/// The state of the channel to a device (`pci_channel_state_t`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ChannelState {
    /// I/O works.
    Normal,
    /// I/O to the device is blocked.
    Frozen,
    /// The device is dead.
    PermanentFailure,
}

impl ChannelState {
    fn from_raw(raw: bindings::pci_channel_state_t) -> Self {
        match raw {
            bindings::pci_channel_io_normal => Self::Normal,
            bindings::pci_channel_io_frozen => Self::Frozen,
            _ => Self::PermanentFailure,
        }
    }
}

/// A driver's answer in a step of error recovery (`pci_ers_result_t`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ErsResult {
    /// The driver can recover without a reset of the slot.
    CanRecover,
    /// The driver requests a reset of the slot.
    NeedReset,
    /// The device cannot be recovered.
    Disconnect,
    /// The device is recovered and operational.
    Recovered,
}

impl ErsResult {
    fn into_raw(self) -> bindings::pci_ers_result_t {
        match self {
            Self::CanRecover => bindings::pci_ers_result_PCI_ERS_RESULT_CAN_RECOVER,
            Self::NeedReset => bindings::pci_ers_result_PCI_ERS_RESULT_NEED_RESET,
            Self::Disconnect => bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT,
            Self::Recovered => bindings::pci_ers_result_PCI_ERS_RESULT_RECOVERED,
        }
    }
}

/// A PCI driver with more callbacks than [`kernel::pci::Driver`] has.
///
/// All of them are called with the device lock held, for a device that is bound.
#[vtable]
pub trait Driver: pci::Driver {
    /// The system is about to be halted, rebooted, or replaced through kexec
    /// (`pci_driver.shutdown`). The device must do no DMA and raise no interrupt afterwards.
    fn shutdown<'bound>(_dev: &'bound pci::Device<Core<'_>>, _this: Pin<&Self::Data<'bound>>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The system is about to sleep, or a hibernation image to be made (`dev_pm_ops.suspend`,
    /// `.freeze`, `.poweroff`). The PCI core saves the configuration space afterwards and puts the
    /// device into a low-power state.
    ///
    /// # Errors
    ///
    /// Any, and the system does not sleep.
    fn suspend<'bound>(
        _dev: &'bound pci::Device<Core<'_>>,
        _this: Pin<&Self::Data<'bound>>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The system is awake again (`dev_pm_ops.resume`, `.thaw`, `.restore`). The PCI core has
    /// restored the configuration space; all other state of the device may be lost.
    ///
    /// # Errors
    ///
    /// Any, which the core logs.
    fn resume<'bound>(
        _dev: &'bound pci::Device<Core<'_>>,
        _this: Pin<&Self::Data<'bound>>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// An error was detected on the bus (`pci_error_handlers.error_detected`); the first step of
    /// recovery. A driver without it is not recovered.
    fn error_detected<'bound>(
        _dev: &'bound pci::Device<Core<'_>>,
        _this: Pin<&Self::Data<'bound>>,
        _state: ChannelState,
    ) -> ErsResult {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers can be accessed again, DMA not yet (`pci_error_handlers.mmio_enabled`): called if
    /// all affected drivers returned [`ErsResult::CanRecover`].
    fn mmio_enabled<'bound>(
        _dev: &'bound pci::Device<Core<'_>>,
        _this: Pin<&Self::Data<'bound>>,
    ) -> ErsResult {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The slot may have been reset (`pci_error_handlers.slot_reset`): called if a driver returned
    /// [`ErsResult::NeedReset`].
    fn slot_reset<'bound>(
        _dev: &'bound pci::Device<Core<'_>>,
        _this: Pin<&Self::Data<'bound>>,
    ) -> ErsResult {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// All affected drivers have recovered, and can resume operation (`pci_error_handlers.resume`).
    fn error_resume<'bound>(_dev: &'bound pci::Device<Core<'_>>, _this: Pin<&Self::Data<'bound>>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// Declares a kernel module that exposes a single PCI driver, which is a [`Driver`].
#[macro_export]
macro_rules! module_pci_driver {
    ($($f:tt)*) => {
        ::kernel::module_driver!(<T>, $crate::Adapter<T>, { $($f)* });
    };
}

const __LOG_PREFIX: &[u8] = b"pci_driver\0";
