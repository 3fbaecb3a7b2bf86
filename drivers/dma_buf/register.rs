// SPDX-License-Identifier: GPL-2.0

//! A register of another device, for a device to write.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    devres::Devres,
    dma::DmaAddress,
    io::PhysAddr,
    pci,
    prelude::*,
    sync::aref::ARef, //
};

use crate::{
    bindings,
    peer::as_raw, //
};

/// Bytes of a register.
const SIZE: usize = 4;

/// Base address registers of a PCI device (`PCI_STD_NUM_BARS`).
const BARS: u32 = 6;

/// Whether a register at `at` is in a BAR of this device's.
fn is_in_bar(device: &pci::Device, bar: u32, at: PhysAddr) -> bool {
    let range = (device.resource_start(bar), device.resource_len(bar));
    let (Ok(start), Ok(len)) = range else {
        return false;
    };
    // SAFETY: The device is valid.
    let resources = unsafe { &(*as_raw(device)).resource };
    let flags = resources.get(bar as usize).map_or(0, |bar| bar.flags);

    // Not of I/O ports, nor without an address.
    if flags & (bindings::IORESOURCE_MEM | bindings::IORESOURCE_UNSET) as usize
        != bindings::IORESOURCE_MEM as usize
    {
        return false;
    }
    at.checked_sub(start).is_some_and(|offset| {
        len.checked_sub(offset)
            .is_some_and(|left| left >= SIZE as u64)
    })
}

/// A register of another device's that a device writes to, as long as this lives.
///
/// # Invariants
///
/// `address` is where `dev` has it mapped.
pub struct PeerRegister {
    dev: ARef<Device>,
    address: DmaAddress,
}

// SAFETY: A mapping belongs to no thread.
unsafe impl Send for PeerRegister {}
// SAFETY: It is not changed.
unsafe impl Sync for PeerRegister {}

impl PeerRegister {
    /// Maps the register at a physical address, in a BAR of `owner`'s, for `dev`. It is unmapped when `dev` is
    /// unbound at the latest, when its driver must have stopped DMA.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it isn't in one of its BARs, `EXDEV` if there is no peer-to-peer path between the two
    /// devices, `EIO` if it can't be mapped, `ENOMEM`.
    pub fn new(dev: &Device<Bound>, owner: &pci::Device, at: PhysAddr) -> Result<Devres<Self>> {
        let in_bar = (0..BARS).any(|bar| is_in_bar(owner, bar, at));
        if !in_bar {
            return Err(EINVAL);
        }
        let raw: *mut bindings::device = core::ptr::from_ref::<Device>(dev).cast_mut().cast();
        let mut client = raw;
        // SAFETY: Both devices are valid.
        let distance =
            unsafe { bindings::pci_p2pdma_distance_many(as_raw(owner), &mut client, 1, true) };
        if distance < 0 {
            return Err(EXDEV);
        }
        // SAFETY: The device is bound, and what is mapped is a PCI device's.
        let address = unsafe {
            bindings::dma_map_resource(
                raw,
                at,
                SIZE,
                bindings::dma_data_direction::DMA_BIDIRECTIONAL,
                0,
            )
        };
        // What `dma_mapping_error()` looks for.
        if address == DmaAddress::MAX {
            return Err(EIO);
        }
        // INVARIANT: As mapped above.
        let this = Self {
            dev: dev.into(),
            address,
        };
        Devres::new(dev, Ok::<_, Error>(this))
    }

    /// Where the device finds it.
    pub fn address(&self) -> DmaAddress {
        self.address
    }
}

impl Drop for PeerRegister {
    fn drop(&mut self) {
        let raw: *mut bindings::device = core::ptr::from_ref::<Device>(&self.dev).cast_mut().cast();

        // SAFETY: By the type invariant, and the device writes there no more.
        unsafe {
            bindings::dma_unmap_resource(
                raw,
                self.address,
                SIZE,
                bindings::dma_data_direction::DMA_BIDIRECTIONAL,
                0,
            );
        }
    }
}
