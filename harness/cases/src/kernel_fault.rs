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
    /// io_uring has the pieces of a ring's area synced for the device, also those of a dma-buf
    /// (`zcrx_sync_for_device()` in `io_uring/zcrx.c`), which `net/core/devmem.c` turns off for its
    /// own. Between two devices behind a switch they are addresses of the bus, which nobody has
    /// mapped. DMA debugging looks for each of them in all that is mapped, for a good part of a
    /// second, with softirqs off: nothing else gets done. See
    /// [`Options::without_dma_debugging`](crate::Options::without_dma_debugging).
    SyncOfBusAddresses,
}

impl KernelFault {
    const ALL: [Self; 4] = [
        Self::MappingOutlivesDriver,
        Self::UnmapForFreedDevice,
        Self::PciehpLockOrder,
        Self::SyncOfBusAddresses,
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
            // The complaint, and its backtrace: the core syncs, whoever asked it for memory.
            Self::SyncOfBusAddresses => &[
                "device driver tries to sync DMA memory it has not allocated",
                "io_pp_zc_alloc_netmems",
            ],
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
            Self::SyncOfBusAddresses => {
                "a dma-buf is synced that nobody has mapped (io_uring/zcrx.c)"
            }
        })
    }
}
