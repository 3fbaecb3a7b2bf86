// SPDX-License-Identifier: GPL-2.0

//! How a [`Driver`] is registered, and called.

use core::{
    marker::PhantomData,
    mem::offset_of, //
};

use kernel::{
    bindings,
    device::{
        AsBusDevice,
        CoreInternal, //
    },
    driver::{
        DriverLayout,
        RegistrationOps, //
    },
    error::from_result,
    pci,
    prelude::*,
    types::Opaque,
    ThisModule, //
};

use crate::{
    ChannelState,
    Driver, //
};

/// An adapter for the registration of PCI drivers that are a [`Driver`].
pub struct Adapter<T: Driver>(PhantomData<T>);

// SAFETY: All is as for `pci::Adapter<T>`, which registers the driver.
unsafe impl<T: Driver> DriverLayout for Adapter<T> {
    type DriverType = bindings::pci_driver;
    type DriverData<'bound> = T::Data<'bound>;
    const DEVICE_DRIVER_OFFSET: usize = offset_of!(Self::DriverType, driver);
}

// SAFETY: Both functions are those of `pci::Adapter<T>`.
unsafe impl<T: Driver> RegistrationOps for Adapter<T> {
    unsafe fn register(
        pdrv: &Opaque<Self::DriverType>,
        name: &'static CStr,
        module: &'static ThisModule,
    ) -> Result {
        // SAFETY: It's safe to set the fields of `struct pci_driver` on initialization; what they
        // point to is static.
        unsafe {
            if T::HAS_SHUTDOWN {
                (*pdrv.get()).shutdown = Some(Self::shutdown_callback);
            }
            (*pdrv.get()).driver.pm = &Self::PM_OPS;
            (*pdrv.get()).err_handler = &Self::ERROR_HANDLERS;
        }

        // SAFETY: As this function requires. It sets other fields and registers the driver.
        unsafe { <pci::Adapter<T> as RegistrationOps>::register(pdrv, name, module) }
    }

    unsafe fn unregister(pdrv: &Opaque<Self::DriverType>) {
        // SAFETY: As this function requires.
        unsafe { <pci::Adapter<T> as RegistrationOps>::unregister(pdrv) };
    }
}

/// Calls `$function` of the driver with the device `$pdev`, a `*mut pci_dev`, and its data.
///
/// It is a macro because the data's lifetime is that of the device's reference.
macro_rules! call {
    ($pdev:expr, $function:path $(, $argument:expr)*) => {{
        // SAFETY: The callers' requirements: the device is valid and bound for the duration of the
        // callback, and its lock is held.
        let pdev = unsafe { &*$pdev.cast::<pci::Device<CoreInternal<'_>>>() };
        // SAFETY: A device that is bound has been probed, and `pci::Adapter<T>` has stored a
        // `Pin<KBox<T::Data<'_>>>` then, which goes after `remove()`, under the lock.
        let data = unsafe { pdev.as_ref().drvdata_borrow::<T::Data<'_>>() };

        $function(pdev, data $(, $argument)*)
    }};
}

impl<T: Driver> Adapter<T> {
    /// As `DEFINE_SIMPLE_DEV_PM_OPS()` does it.
    const PM_OPS: bindings::dev_pm_ops = {
        let suspend: Option<unsafe extern "C" fn(*mut bindings::device) -> c_int> =
            if T::HAS_SUSPEND {
                Some(Self::suspend_callback)
            } else {
                None
            };
        let resume: Option<unsafe extern "C" fn(*mut bindings::device) -> c_int> = if T::HAS_RESUME
        {
            Some(Self::resume_callback)
        } else {
            None
        };

        bindings::dev_pm_ops {
            suspend,
            freeze: suspend,
            poweroff: suspend,
            resume,
            thaw: resume,
            restore: resume,
            ..pin_init::zeroed()
        }
    };

    const ERROR_HANDLERS: bindings::pci_error_handlers = bindings::pci_error_handlers {
        error_detected: if T::HAS_ERROR_DETECTED {
            Some(Self::error_detected_callback)
        } else {
            None
        },
        mmio_enabled: if T::HAS_MMIO_ENABLED {
            Some(Self::mmio_enabled_callback)
        } else {
            None
        },
        slot_reset: if T::HAS_SLOT_RESET {
            Some(Self::slot_reset_callback)
        } else {
            None
        },
        resume: if T::HAS_ERROR_RESUME {
            Some(Self::error_resume_callback)
        } else {
            None
        },
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Only the PCI core may call it, as `shutdown`: for a bound device whose lock it holds.
    unsafe extern "C" fn shutdown_callback(pdev: *mut bindings::pci_dev) {
        call!(pdev, T::shutdown);
    }

    /// # Safety
    ///
    /// Only the PCI core may call it, as `error_detected`: for a bound device whose lock it holds.
    unsafe extern "C" fn error_detected_callback(
        pdev: *mut bindings::pci_dev,
        state: bindings::pci_channel_state_t,
    ) -> bindings::pci_ers_result_t {
        call!(pdev, T::error_detected, ChannelState::from_raw(state)).into_raw()
    }

    /// # Safety
    ///
    /// Only the PCI core may call it, as `mmio_enabled`: for a bound device whose lock it holds.
    unsafe extern "C" fn mmio_enabled_callback(
        pdev: *mut bindings::pci_dev,
    ) -> bindings::pci_ers_result_t {
        call!(pdev, T::mmio_enabled).into_raw()
    }

    /// # Safety
    ///
    /// Only the PCI core may call it, as `slot_reset`: for a bound device whose lock it holds.
    unsafe extern "C" fn slot_reset_callback(
        pdev: *mut bindings::pci_dev,
    ) -> bindings::pci_ers_result_t {
        call!(pdev, T::slot_reset).into_raw()
    }

    /// # Safety
    ///
    /// Only the PCI core may call it, as `resume`: for a bound device whose lock it holds.
    unsafe extern "C" fn error_resume_callback(pdev: *mut bindings::pci_dev) {
        call!(pdev, T::error_resume);
    }

    /// # Safety
    ///
    /// Only the PM core may call it, for a bound PCI device whose lock it holds.
    unsafe extern "C" fn suspend_callback(dev: *mut bindings::device) -> c_int {
        // SAFETY: `dev` is part of a `struct pci_dev`.
        let pdev = unsafe { Self::pci_dev(dev) };

        from_result(|| call!(pdev, T::suspend).map(|()| 0))
    }

    /// # Safety
    ///
    /// As for [`Self::suspend_callback`].
    unsafe extern "C" fn resume_callback(dev: *mut bindings::device) -> c_int {
        // SAFETY: `dev` is part of a `struct pci_dev`.
        let pdev = unsafe { Self::pci_dev(dev) };

        from_result(|| call!(pdev, T::resume).map(|()| 0))
    }

    /// # Safety
    ///
    /// `dev` must be the `dev` of a `struct pci_dev`.
    unsafe fn pci_dev(dev: *mut bindings::device) -> *mut bindings::pci_dev {
        let offset = <pci::Device as AsBusDevice<kernel::device::Normal>>::OFFSET;

        // SAFETY: As this function requires.
        unsafe { dev.byte_sub(offset) }.cast()
    }
}
