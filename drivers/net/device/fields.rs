// SPDX-License-Identifier: GPL-2.0

//! What C's static inlines do with the fields of a `struct net_device`.
//!
//! C headers: `include/linux/netdevice.h`, `include/linux/etherdevice.h`

use kernel::{
    cpu::CpuId,
    cpumask::CpumaskVar,
    ffi::c_int,
    prelude::*,
    sync::rcu, //
};
use net_bindings as bindings;

use super::{
    Driver,
    MacAddress,
    Private, //
};
use crate::once::{
    read_once,
    test_bit, //
};

/// The driver's part of a net device (`netdev_priv()`).
///
/// # Safety
///
/// `dev` must be valid.
#[inline]
pub(crate) unsafe fn private<T: Driver>(dev: *mut bindings::net_device) -> *mut Private<T> {
    // SAFETY: As this function requires; only computes a place behind it.
    unsafe { &raw mut (*dev).priv_ }.cast()
}

/// Whether the interface is up, or is being brought up (`netif_running()`).
///
/// # Safety
///
/// `dev` must be valid.
pub(super) unsafe fn is_running(dev: *mut bindings::net_device) -> bool {
    let bit = bindings::netdev_state_t___LINK_STATE_START;

    // SAFETY: As this function requires.
    unsafe { test_bit(bit, &raw const (*dev).state) }
}

/// Whether the link is up (`netif_carrier_ok()`).
///
/// # Safety
///
/// `dev` must be valid.
pub(super) unsafe fn has_carrier(dev: *mut bindings::net_device) -> bool {
    let bit = bindings::netdev_state_t___LINK_STATE_NOCARRIER;

    // SAFETY: As this function requires.
    unsafe { !test_bit(bit, &raw const (*dev).state) }
}

/// Whether a device is being unregistered, or was.
///
/// # Safety
///
/// `dev` must be valid.
pub(crate) unsafe fn is_unregistering(dev: *mut bindings::net_device) -> bool {
    // SAFETY: As this function requires.
    let state = u32::from(unsafe { read_once(&raw const (*dev).reg_state) });

    state > bindings::netdev_reg_state_NETREG_REGISTERED
}

/// Says whether the link is up; does nothing to a device that is being unregistered.
///
/// # Safety
///
/// `dev` must be valid.
pub(crate) unsafe fn set_carrier(dev: *mut bindings::net_device, up: bool) {
    // The core looks at the device later, for which it must be there: one that is being
    // unregistered is not waited for any more.
    let _rcu = rcu::read_lock();

    // SAFETY: As this function requires.
    unsafe {
        if is_unregistering(dev) {
            return;
        }
        if up {
            bindings::netif_carrier_on(dev);
        } else {
            bindings::netif_carrier_off(dev);
        }
    }
}

/// Sets the address of a device that is not registered yet (`eth_hw_addr_set()`), or a random one
/// if it is not valid (`eth_hw_addr_random()`).
///
/// # Safety
///
/// `dev` must be valid, and not registered yet.
pub(crate) unsafe fn set_address(dev: *mut bindings::net_device, mut address: MacAddress) {
    let multicast = address[0] & 1 != 0;

    if multicast || address == [0; 6] {
        // SAFETY: There is room for as many bytes.
        unsafe { bindings::get_random_bytes(address.as_mut_ptr().cast(), address.len()) };
        // Of one station, and administered locally.
        address[0] = address[0] & !1 | 2;
        // SAFETY: As this function requires. CAST: A small number.
        unsafe { (*dev).addr_assign_type = bindings::NET_ADDR_RANDOM as u8 };
    }
    // SAFETY: As this function requires; an address has at least 6 bytes.
    unsafe { bindings::dev_addr_mod(dev, 0, address.as_ptr().cast(), address.len()) };
}

/// Has interrupt `irq` handled by the `index`-th of the processors that are near the device. Users
/// may move it.
///
/// # Errors
///
/// `ENOMEM`.
///
/// # Safety
///
/// `dev` must be valid.
pub(super) unsafe fn spread_irq(dev: *mut bindings::net_device, irq: u32, index: u32) -> Result {
    let mut mask = CpumaskVar::new_zero(GFP_KERNEL)?;

    // SAFETY: The core returns the number of a processor; a mask has room for each. The function
    // copies it.
    unsafe {
        mask.set(CpuId::from_u32_unchecked(bindings::cpumask_local_spread(
            index,
            node(dev),
        )));
        // Where interrupts have no affinity they stay where they are.
        bindings::irq_set_affinity(irq, mask.as_raw());
    }
    Ok(())
}

/// The device's NUMA node (`dev_to_node()`).
///
/// # Safety
///
/// `dev` must be valid.
unsafe fn node(_dev: *mut bindings::net_device) -> c_int {
    #[cfg(CONFIG_NUMA)]
    // SAFETY: As this function requires; the parent outlives it.
    if let Some(parent) = unsafe { (*_dev).dev.parent.as_ref() } {
        return parent.numa_node;
    }
    bindings::NUMA_NO_NODE
}

/// Takes the instance lock (`netdev_lock()`).
///
/// # Safety
///
/// `dev` must be valid. In a context that may sleep.
pub(crate) unsafe fn lock(dev: *mut bindings::net_device) {
    // SAFETY: As this function requires.
    unsafe { bindings::mutex_lock(&raw mut (*dev).lock) };
}

/// Releases the instance lock (`netdev_unlock()`).
///
/// # Safety
///
/// `dev` must be valid, and this thread hold the lock.
pub(crate) unsafe fn unlock(dev: *mut bindings::net_device) {
    // SAFETY: As this function requires.
    unsafe { bindings::mutex_unlock(&raw mut (*dev).lock) };
}
