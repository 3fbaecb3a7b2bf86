// SPDX-License-Identifier: GPL-2.0

//! A light that blinks to identify the device (`ethtool -p`).

use kernel::prelude::*;
use net_bindings as bindings;

use super::Callbacks;
use crate::device::{
    fields::is_unregistering,
    Driver,
    Locked, //
};

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

/// A driver of a device with a light.
pub trait Identify: Driver {
    /// Sets the light by which the device is found. Not called when it is being unregistered, not even with
    /// [`Light::End`].
    fn set_light(dev: Locked<'_, Self>, control: &mut Self::Control, light: Light);
}

impl<T: Identify> Callbacks<T> {
    /// # Safety
    ///
    /// Only the core may call it, as `set_phys_id`.
    pub(super) unsafe extern "C" fn set_phys_id(
        dev: *mut bindings::net_device,
        state: bindings::ethtool_phys_id_state,
    ) -> c_int {
        // Blinking goes on without the lock, while the device is unregistered.
        // SAFETY: The core gives a valid device.
        if unsafe { is_unregistering(dev) } {
            return ENODEV.to_errno();
        }
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
}
