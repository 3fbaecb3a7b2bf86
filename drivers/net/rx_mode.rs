// SPDX-License-Identifier: GPL-2.0

//! Which frames a device must receive beside those for its own address.
//!
//! C header: `include/linux/netdevice.h`

use core::marker::PhantomData;

use kernel::container_of;
use net_bindings as bindings;

use crate::device::MacAddress;

/// What users and protocols want to receive.
pub struct RxMode<'a> {
    /// All frames (`IFF_PROMISC`).
    pub promiscuous: bool,
    /// All multicast frames (`IFF_ALLMULTI`).
    pub all_multicast: bool,
    /// Frames for these addresses, too.
    pub unicast: Addresses<'a>,
    /// Frames for these multicast addresses.
    pub multicast: Addresses<'a>,
}

/// Addresses in a list of the core.
///
/// # Invariants
///
/// The list is valid and nobody changes it for `'a`; `next` is its head or an entry.
#[derive(Clone)]
pub struct Addresses<'a> {
    head: *const bindings::list_head,
    next: *const bindings::list_head,
    _list: PhantomData<&'a ()>,
}

impl Addresses<'_> {
    /// # Safety
    ///
    /// `list` must be valid and unchanged as long as the result is used.
    pub(crate) unsafe fn of(list: *const bindings::netdev_hw_addr_list) -> Self {
        // SAFETY: As this function requires.
        let head = unsafe { &raw const (*list).list };

        // INVARIANT: As this function requires. The head's `next` is the first entry.
        Self {
            head,
            // SAFETY: As above.
            next: unsafe { (*head).next },
            _list: PhantomData,
        }
    }
}

impl Iterator for Addresses<'_> {
    type Item = MacAddress;

    fn next(&mut self) -> Option<MacAddress> {
        if self.next == self.head {
            return None;
        }
        // SAFETY: By the type invariant `next` is an entry's.
        let entry = unsafe { container_of!(self.next, bindings::netdev_hw_addr, list) };

        // SAFETY: As above; an address has at least 6 bytes.
        unsafe {
            // INVARIANT: An entry's `next` is the one after it, or the head.
            self.next = (*self.next).next;
            Some((&raw const (*entry).addr).cast::<MacAddress>().read())
        }
    }
}
