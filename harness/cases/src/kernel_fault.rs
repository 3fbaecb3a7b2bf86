// SPDX-License-Identifier: MIT OR Apache-2.0

//! Bugs in the kernel itself, which a case runs into whatever the driver is.

use std::fmt;

use libc::ENOENT;
use vm::{Verdict, scan::Finding};

use crate::{CaseError, Refusal, Result, Testbed};

/// What reading or writing its files fails with where the kernel has no DMA debugging.
const NO_DMA_DEBUGGING: Option<i32> = Some(ENOENT);

/// A bug in Linux 7.3 that no driver can avoid. Only the debug kernel reports these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFault {
    /// A binding that outlives its device keeps the dma-buf mapped for it until its user closes it:
    /// the core holds the mapping, and no driver could drop it. DMA debugging takes it for one that
    /// the driver leaked.
    MappingOutlivesDriver,
    /// When such a binding is closed after the device itself is gone, the core unmaps the dma-buf
    /// for a `struct device` that was freed, as it held no reference
    /// (`__net_devmem_dmabuf_binding_free()` in `net/core/devmem.c`).
    UnmapForFreedDevice,
    /// When a slot is emptied, pciehp takes `reset_lock` and `pci_rescan_remove_lock` in one order,
    /// and then in the opposite order within `pciehp_unconfigure_device()`.
    PciehpLockOrder,
    /// io_uring syncs the net_iovs of a ring's area for the device, even those of a dma-buf
    /// (`zcrx_sync_for_device()` in `io_uring/zcrx.c`); `net/core/devmem.c` turns that off for its
    /// own. Between two devices behind a switch they are bus addresses, which were never mapped.
    /// DMA debugging searches all mappings for each of them, for a good part of a second, with
    /// softirqs off: nothing else gets done. See
    /// [`Options::without_dma_debugging`](crate::Options::without_dma_debugging).
    SyncOfBusAddresses,
}

/// The line that DMA debugging adds to a report: where the memory was mapped.
const MAPPED_AT: &[&str] = &["DMA-API: Mapped at:"];

impl KernelFault {
    const ALL: [Self; 4] = [
        Self::MappingOutlivesDriver,
        Self::UnmapForFreedDevice,
        Self::PciehpLockOrder,
        Self::SyncOfBusAddresses,
    ];

    /// The kernel's reports of it: strings that each report contains, all of them.
    #[must_use]
    pub fn complaints(self) -> &'static [&'static [&'static str]] {
        match self {
            // DMA debugging describes only one of the mappings it counts. Only dma-bufs are mapped
            // as scatterlists: the driver maps pages and buffers, or allocates coherent memory.
            Self::MappingOutlivesDriver => &[
                &[
                    "device driver has pending DMA allocations",
                    "[mapped as scatter-gather]",
                ],
                MAPPED_AT,
            ],
            Self::UnmapForFreedDevice => &[&["KASAN: slab-use-after-free in dma_direct_unmap_sg"]],
            Self::PciehpLockOrder => &[&["(&ctrl->reset_lock){"]],
            // Matched with its backtrace: the core syncs on behalf of any memory provider.
            Self::SyncOfBusAddresses => &[&[
                "device driver tries to sync DMA memory it has not allocated",
                "io_pp_zc_alloc_netmems",
            ]],
        }
    }

    /// Whether this bug explains a finding.
    fn explains(self, finding: &Finding) -> bool {
        self.complaints().iter().any(|parts| finding.has(parts))
    }

    /// Prints which of them a guest ran into.
    pub(crate) fn tell(verdict: &Verdict) {
        for fault in Self::ALL {
            if verdict.allowed.iter().any(|found| fault.explains(found)) {
                println!("a bug in the kernel itself: {fault}");
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
            Self::PciehpLockOrder => "pciehp takes two locks in both orders",
            Self::SyncOfBusAddresses => {
                "a dma-buf is synced that was never mapped (io_uring/zcrx.c)"
            }
        })
    }
}

/// The debugfs directory of DMA debugging.
const DMA_DEBUGGING: &str = "/sys/kernel/debug/dma-api";

impl Testbed {
    /// Declares that this case runs into bugs in the kernel itself.
    pub fn allow_faults(&self, faults: &[KernelFault]) -> Result {
        for parts in faults.iter().flat_map(|fault| fault.complaints()) {
            self.guest.allow_log(parts);
        }
        // By default DMA debugging describes one error only, which may be the allowed one.
        match self.write_file(format!("{DMA_DEBUGGING}/all_errors"), "1") {
            Err(error) if error.errno() == NO_DMA_DEBUGGING => Ok(()),
            told => told,
        }
    }

    /// Fails if a driver that is gone has left DMA mappings of a device: the kernel's report
    /// describes only one of those left, which may be a binding's.
    pub fn check_mappings(&self, device: &str) -> Result {
        let dump = match self.read_file(format!("{DMA_DEBUGGING}/dump")) {
            Err(error) if error.errno() == NO_DMA_DEBUGGING => return Ok(()),
            dump => dump?,
        };
        match forgotten(&dump, device) {
            Some(line) => Err(CaseError::new(format!("the driver leaked: {line}"))),
            None => Ok(()),
        }
    }
}

/// A mapping of the device in DMA debugging's dump that is not a dma-buf's.
fn forgotten<'a>(dump: &'a str, device: &str) -> Option<&'a str> {
    dump.lines().find(|line| {
        // Driver or bus, device, kind.
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(device) && words.next() != Some("scatter-gather")
    })
}

#[cfg(test)]
mod tests {
    use vm::scan::scan;

    use super::*;

    /// DMA debugging's report of a device that has mappings but no driver any more
    /// (`dma_debug_device_change()` in `kernel/dma/debug.c`).
    fn pending(cut: &str, details: &str) -> Vec<Finding> {
        scan(&format!(
            "\
{cut}[   36.0] DMA-API: pci 0000:01:00.0: device driver has pending DMA allocations while released from device [count=2]
[   36.0] One of leaked entries details: [device address=0x0000000011e40000] [size=65536 bytes] {details}
[   36.0] WARNING: kernel/dma/debug.c:889 at dma_debug_device_change+0x210/0x620, CPU#0: x/93
[   36.0] RIP: 0010:dma_debug_device_change+0x3a4/0x620
[   36.0] Call Trace:
[   36.0] ---[ end trace 0000000000000000 ]---
[   36.0] DMA-API: Mapped at:
[   36.0]  debug_dma_map_phys+0x6b/0x180
"
        ))
    }

    /// Whether the log of a case that runs into `fault` may have these findings.
    fn allowed(fault: KernelFault, findings: &[Finding]) -> bool {
        assert!(!findings.is_empty());
        findings.iter().all(|finding| fault.explains(finding))
    }

    #[test]
    fn a_mapping_that_the_driver_forgot_is_not_the_kernels_fault() {
        let fault = KernelFault::MappingOutlivesDriver;
        // The "cut here" line is in the log when the console shows all messages.
        for cut in ["", "[   36.0] ------------[ cut here ]------------\n"] {
            for (kind, expected) in [
                (
                    "[mapped with DMA_BIDIRECTIONAL] [mapped as scatter-gather]",
                    true,
                ),
                ("[mapped with DMA_FROM_DEVICE] [mapped as phy]", false),
                ("[mapped with DMA_TO_DEVICE] [mapped as single]", false),
                (
                    "[mapped with DMA_BIDIRECTIONAL] [mapped as coherent]",
                    false,
                ),
            ] {
                assert_eq!(allowed(fault, &pending(cut, kind)), expected, "{cut}{kind}");
            }
        }
    }

    #[test]
    fn a_sync_of_the_drivers_own_is_not_the_kernels_fault() {
        let syncs = |caller: &str| {
            scan(&format!(
                "\
[   36.0] DMA-API: rigb 0000:01:00.0: device driver tries to sync DMA memory it has not allocated [device address=0x0000000011e40000] [size=4096 bytes]
[   36.0] WARNING: kernel/dma/debug.c:1118 at check_sync+0x210/0x620, CPU#0: x/93
[   36.0] Call Trace:
[   36.0]  {caller}+0x6b/0x180
[   36.0] ---[ end trace 0000000000000000 ]---
"
            ))
        };
        let fault = KernelFault::SyncOfBusAddresses;
        assert!(allowed(fault, &syncs("io_pp_zc_alloc_netmems")));
        assert!(!allowed(fault, &syncs("net_shim_dma_sync_for_cpu")));
    }

    #[test]
    fn what_the_driver_left_mapped_is_found_beside_a_dma_buf() {
        let binding = "pci 0000:01:00.0 scatter-gather idx 7 P=0x1 D=1 L=1000 cln=0x4";
        let leak = "pci 0000:01:00.0 phy idx 9 P=0x2 D=2 L=42 cln=0x8";
        let dump = format!("rigb 0000:02:00.0 phy idx 3 P=0x3\n{binding}\n{leak}\n{binding}\n");
        assert_eq!(forgotten(&dump, "0000:01:00.0"), Some(leak));
        assert_eq!(forgotten(binding, "0000:01:00.0"), None);
    }
}
