// SPDX-License-Identifier: GPL-2.0

//! Register dumps (`ethtool -d`).

use kernel::prelude::*;
use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    Driver,
    Locked, //
};

/// A driver that dumps registers.
pub trait Registers: Driver {
    /// Says how registers are laid out in the dump.
    const REGISTERS_VERSION: u32;

    /// How many registers are dumped.
    const REGISTERS: usize;

    /// Dumps registers, without side effects; `out` has room for [`Self::REGISTERS`].
    fn registers(dev: Locked<'_, Self>, control: &mut Self::Control, out: &mut [u32]);
}

impl<T: Registers> Callbacks<T> {
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
}
