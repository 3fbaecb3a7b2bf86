// SPDX-License-Identifier: GPL-2.0

//! What helps to find out what is wrong: register dump, self-test, a light that blinks, how much
//! the driver says (`ethtool -d`, `-t`, `-p`, `-s msglvl`), and wake-on-LAN.

use kernel::prelude::*;
use net_bindings as bindings;

use super::Table;
use crate::device::{
    Driver,
    Locked, //
};

/// The driver says that the link goes up or down (`NETIF_MSG_LINK`), in
/// [`Diagnostics::message_level`].
pub const MESSAGE_LINK: u32 = bindings::NET_SHIM_MSG_LINK;

/// The light by which a device is found.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Light {
    /// It will be turned on and off, some times a second.
    Begin,
    /// On.
    On,
    /// Off.
    Off,
    /// It shows again what it showed before.
    End,
}

/// Times a second that the light goes on and off.
const BLINKS: c_int = 2;

/// Wake-on-LAN (`WAKE_*`), as sets.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct WakeOnLan {
    /// What can wake the system.
    pub supported: u32,
    /// What does.
    pub enabled: u32,
}

/// A driver that helps to find out what is wrong.
pub trait Diagnostics: Driver {
    /// Says how registers are laid out in the dump.
    const REGISTERS_VERSION: u32;

    /// How many registers are dumped.
    const REGISTERS: usize;

    /// Dumps registers, without side effects; `out` has room for [`Self::REGISTERS`].
    fn registers(dev: Locked<'_, Self>, control: &mut Self::Control, out: &mut [u32]);

    /// Names of the self-tests.
    const TESTS: &'static [&'static CStr];

    /// Tests the device, with what interrupts traffic if `offline` says so; `results` has one for
    /// each of [`Self::TESTS`], all 0, which means that a test was passed or not made. On return
    /// the interface is as before.
    ///
    /// # Errors
    ///
    /// Any, if something is wrong.
    fn self_test(
        dev: Locked<'_, Self>,
        control: &mut Self::Control,
        offline: bool,
        results: &mut [u64],
    ) -> Result;

    /// Sets the light by which the device is found.
    fn set_light(dev: Locked<'_, Self>, control: &mut Self::Control, light: Light);

    /// Wake-on-LAN.
    fn wake_on_lan(control: &Self::Control) -> WakeOnLan;

    /// What the driver says in the log (`NETIF_MSG_*`), as a set.
    fn message_level(&self) -> u32;

    /// Has the driver say `level`.
    fn set_message_level(&self, level: u32);
}

impl<T: Diagnostics> Table<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `get_regs_len`.
    pub(super) unsafe extern "C" fn get_regs_len(_dev: *mut bindings::net_device) -> c_int {
        // CAST: A small constant.
        (T::REGISTERS * size_of::<u32>()) as c_int
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_regs`.
    pub(super) unsafe extern "C" fn get_regs(
        dev: *mut bindings::net_device,
        regs: *mut bindings::ethtool_regs,
        out: *mut c_void,
    ) {
        // SAFETY: The core holds the lock, and calls with room for what `get_regs_len` says, which
        // it has zeroed, from vzalloc().
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);

            (*regs).version = T::REGISTERS_VERSION;
            T::registers(
                dev,
                control,
                core::slice::from_raw_parts_mut(out.cast(), T::REGISTERS),
            );
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `self_test`.
    pub(super) unsafe extern "C" fn self_test(
        dev: *mut bindings::net_device,
        test: *mut bindings::ethtool_test,
        results: *mut u64,
    ) {
        // SAFETY: The core holds the lock, and calls with a valid structure and room for as many
        // results as `get_sset_count` says, all 0.
        unsafe {
            let (dev, control) = Locked::<T>::new(dev);
            let flags = &mut (*test).flags;
            let offline = *flags & bindings::ethtool_test_flags_ETH_TEST_FL_OFFLINE != 0;
            let results = core::slice::from_raw_parts_mut(results, T::TESTS.len());

            if T::self_test(dev, control, offline, results).is_err() {
                *flags |= bindings::ethtool_test_flags_ETH_TEST_FL_FAILED;
            }
        }
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_phys_id`.
    pub(super) unsafe extern "C" fn set_phys_id(
        dev: *mut bindings::net_device,
        state: bindings::ethtool_phys_id_state,
    ) -> c_int {
        // SAFETY: The core holds the lock.
        let (dev, control) = unsafe { Locked::<T>::new(dev) };
        let (light, result) = match state {
            bindings::ethtool_phys_id_state_ETHTOOL_ID_ACTIVE => (Light::Begin, BLINKS),
            bindings::ethtool_phys_id_state_ETHTOOL_ID_ON => (Light::On, 0),
            bindings::ethtool_phys_id_state_ETHTOOL_ID_OFF => (Light::Off, 0),
            bindings::ethtool_phys_id_state_ETHTOOL_ID_INACTIVE => (Light::End, 0),
            _ => return EINVAL.to_errno(),
        };

        T::set_light(dev, control, light);
        result
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_wol`.
    pub(super) unsafe extern "C" fn get_wol(
        dev: *mut bindings::net_device,
        out: *mut bindings::ethtool_wolinfo,
    ) {
        // SAFETY: The core holds the lock and calls with a valid structure.
        let ((_, control), out) = unsafe { (Locked::<T>::new(dev), &mut *out) };
        let wol = T::wake_on_lan(control);

        out.supported = wol.supported;
        out.wolopts = wol.enabled;
    }

    /// # Safety
    ///
    /// Only the core may call it, as `get_msglevel`.
    pub(super) unsafe extern "C" fn get_msglevel(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core holds the lock.
        let (dev, _) = unsafe { Locked::<T>::new(dev) };

        dev.device().driver().message_level()
    }

    /// # Safety
    ///
    /// Only the core may call it, as `set_msglevel`.
    pub(super) unsafe extern "C" fn set_msglevel(dev: *mut bindings::net_device, level: u32) {
        // SAFETY: The core holds the lock.
        let (dev, _) = unsafe { Locked::<T>::new(dev) };

        dev.device().driver().set_message_level(level);
    }
}
