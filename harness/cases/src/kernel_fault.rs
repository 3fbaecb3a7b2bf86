// SPDX-License-Identifier: MIT OR Apache-2.0

//! Faults of the kernel's own, which a case comes across whatever the driver is.

use std::fmt;

use vm::Verdict;

/// A fault of Linux 7.3 that no driver can avoid. Only the debug kernel reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFault {
    /// A binding that outlives its device still has the dma-buf mapped for it, until its user closes
    /// it: the core holds the mapping, and no driver could drop it. DMA debugging takes it for one
    /// that the driver forgot.
    MappingOutlivesDriver,
    /// When such a binding is closed after the device itself is gone, the core unmaps the dma-buf for
    /// a `struct device` that was freed: nobody held it (`__net_devmem_dmabuf_binding_free()` in
    /// `net/core/devmem.c`).
    UnmapForFreedDevice,
    /// The PCI core takes `reset_lock` and `pci_rescan_remove_lock` in one order when a slot is
    /// emptied, and in the other within (`pciehp_unconfigure_device()`).
    PciehpLockOrder,
}

impl KernelFault {
    const ALL: [Self; 3] = [
        Self::MappingOutlivesDriver,
        Self::UnmapForFreedDevice,
        Self::PciehpLockOrder,
    ];

    /// What reports of it contain, each one of these.
    #[must_use]
    pub fn patterns(self) -> &'static [&'static str] {
        match self {
            Self::MappingOutlivesDriver => &[
                "device driver has pending DMA allocations",
                "dma_debug_device_change",
                "DMA-API: Mapped at:",
            ],
            Self::UnmapForFreedDevice => &["KASAN: slab-use-after-free in dma_direct_unmap_sg"],
            Self::PciehpLockOrder => &["(&ctrl->reset_lock){"],
        }
    }

    /// Says which of them a guest came across.
    pub(crate) fn tell(verdict: &Verdict) {
        for fault in Self::ALL {
            let seen = |pattern: &&str| verdict.allowed.iter().any(|f| f.text.contains(*pattern));
            if fault.patterns().iter().any(seen) {
                println!("the kernel's own fault: {fault}");
            }
        }
    }
}

impl fmt::Display for KernelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MappingOutlivesDriver => {
                "DMA debugging reports the mapping of a binding that outlives its device"
            }
            Self::UnmapForFreedDevice => {
                "a dma-buf is unmapped for a device that is gone (net/core/devmem.c)"
            }
            Self::PciehpLockOrder => "pciehp takes two locks in either order",
        })
    }
}
