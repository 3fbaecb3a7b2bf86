// SPDX-License-Identifier: GPL-2.0

//! A PCI device's memory, as other devices and user space access it.
//!
//! C header: `include/linux/pci-p2pdma.h`

use core::ptr::NonNull;

use kernel::{
    device::{
        Bound,
        Device, //
    },
    devres,
    error::{
        from_err_ptr,
        to_result, //
    },
    io::PhysAddr,
    mm::virt::{
        flags,
        VmaNew, //
    },
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    pci,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use crate::{
    bindings,
    gate::Gate, //
};

/// A memory BAR that is available for peer-to-peer DMA.
///
/// # Invariants
///
/// Behind the BAR there is memory, and nothing that acts on an access.
///
/// While `users` is open or has users, the device is bound to its driver, `provider` is that of
/// BAR `bar`, and `start..start + size` are that BAR's addresses.
#[pin_data]
pub struct PeerMemory {
    pdev: ARef<pci::Device>,
    bar: u32,
    provider: NonNull<bindings::p2pdma_provider>,
    start: PhysAddr,
    size: u64,
    #[pin]
    users: Gate,
}

// SAFETY: The provider is not changed after its creation.
unsafe impl Send for PeerMemory {}
// SAFETY: As above.
unsafe impl Sync for PeerMemory {}

impl PeerMemory {
    /// Reserves BAR `bar` of `pdev` under the driver's `name`, and sets up peer-to-peer DMA to it.
    /// Nothing is mapped for the CPU.
    ///
    /// Unbinding will wait for all exports of it (see the [crate]).
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no such BAR, or the device does not say that it may be treated as memory
    /// (prefetchable), `EBUSY` if it is already reserved, `EOPNOTSUPP` if the device's BARs cannot be
    /// mapped, `ENOMEM`.
    ///
    /// # Safety
    ///
    /// Behind the BAR of each device that the driver binds to there must be memory: programs, the
    /// CPU's caches, and other devices read and write all of it whenever they like. A device's
    /// registers must not be reached that way.
    pub unsafe fn new(
        pdev: &pci::Device<Bound>,
        bar: u32,
        name: &'static CStr,
    ) -> Result<Arc<Self>> {
        /// Memory without side effects, as the device says.
        const MEMORY: usize = (bindings::IORESOURCE_MEM | bindings::IORESOURCE_PREFETCH) as usize;
        let (start, size) = (pdev.resource_start(bar)?, pdev.resource_len(bar)?);
        let raw = as_raw(pdev);
        // SAFETY: The device is valid, and does not change its BARs while it is bound.
        let resources = unsafe { &(*raw).resource };
        let flags = resources.get(bar as usize).map_or(0, |bar| bar.flags);

        if size == 0 || flags & MEMORY != MEMORY {
            dev_err!(pdev, "BAR {} is not prefetchable memory\n", bar);
            return Err(ENODEV);
        }
        // CAST: A valid BAR's index is small.
        let index = bar as c_int;

        // SAFETY: The device is bound, so its driver may do this; devres undoes it.
        to_result(unsafe { bindings::pcim_request_region(raw, index, name.as_char_ptr()) })?;
        // SAFETY: As above.
        to_result(unsafe { bindings::pcim_p2pdma_init(raw) })?;
        // SAFETY: As above, and peer-to-peer DMA is set up.
        let provider = unsafe { bindings::pcim_p2pdma_provider(raw, index) };

        // INVARIANT: As this function requires. The guard below closes the gate and waits until it is
        // empty before devres, which works in reverse order, undoes the setup above.
        let memory = Arc::pin_init(
            try_pin_init!(Self {
                pdev: pdev.into(),
                bar,
                provider: NonNull::new(provider).ok_or(ENODEV)?,
                start,
                size,
                users <- Gate::new(),
            }),
            GFP_KERNEL,
        )?;
        devres::register(pdev.as_ref(), HoldOff(memory.clone()), GFP_KERNEL)?;

        Ok(memory)
    }

    /// The physical address of the memory, as the CPU sees it.
    pub fn start(&self) -> PhysAddr {
        self.start
    }

    /// Bytes of memory.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The `size` bytes from `offset`: both are multiples of the page size.
    ///
    /// # Errors
    ///
    /// `EINVAL` if they are not, or not within the memory; `ENODEV` if the device is going away.
    pub fn range(self: &Arc<Self>, offset: u64, size: usize) -> Result<PeerRange> {
        // CAST: `usize` has at most 64 bits.
        let end = offset.checked_add(size as u64).ok_or(EINVAL)?;
        let aligned = (offset | size as u64) % PAGE_SIZE as u64 == 0;

        if !aligned || size == 0 || end > self.size {
            return Err(EINVAL);
        }
        self.users.enter()?;

        // INVARIANT: The range was checked, and we are a user.
        Ok(PeerRange {
            memory: self.clone(),
            offset,
            size,
        })
    }
}

/// Dropped by devres when the device is unbound.
struct HoldOff(Arc<PeerMemory>);

impl Drop for HoldOff {
    fn drop(&mut self) {
        let memory = &self.0;
        let users = memory.users.close();

        if users > 0 {
            dev_warn!(
                memory.pdev,
                "unbinding waits for the dma-bufs of BAR {}: {} in use\n",
                memory.bar,
                users
            );
        }
        memory.users.wait();
    }
}

/// Pages of a [`PeerMemory`]. While there is one, its device stays bound to its driver.
///
/// Ranges may overlap: the driver decides who may use which one.
///
/// # Invariants
///
/// `offset` and `size` are multiples of the page size, the range is within the memory, and it is
/// one user of it.
pub struct PeerRange {
    memory: Arc<PeerMemory>,
    offset: u64,
    size: usize,
}

impl Drop for PeerRange {
    fn drop(&mut self) {
        self.memory.users.leave();
    }
}

impl PeerRange {
    /// Bytes of the range.
    pub fn size(&self) -> usize {
        self.size
    }

    fn start(&self) -> PhysAddr {
        self.memory.start + self.offset
    }

    /// Zeroes the range with the CPU.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if it cannot be mapped.
    pub fn clear(&self) -> Result {
        // CAST: The flag is a small number.
        let how = bindings::MEMREMAP_WB as c_ulong;
        // SAFETY: The range is a bound device's memory that its driver has reserved.
        let mapped = unsafe { bindings::memremap(self.start(), self.size, how) };
        if mapped.is_null() {
            return Err(ENOMEM);
        }

        // SAFETY: That much is mapped, as ordinary memory, and no reference to it exists.
        unsafe { core::ptr::write_bytes(mapped.cast::<u8>(), 0, self.size) };
        // SAFETY: It was mapped above.
        unsafe { bindings::memunmap(mapped) };
        Ok(())
    }

    /// Checks that `importer` can do DMA to this range; if it can't, logs the reason.
    ///
    /// # Errors
    ///
    /// `EXDEV` if there is no peer-to-peer path between the two devices.
    pub(crate) fn check_reachable(&self, importer: &Device) -> Result {
        let pdev = &self.memory.pdev;
        let mut client = core::ptr::from_ref(importer).cast_mut().cast();
        // SAFETY: The importer's device is valid, and by the type invariants ours is bound, as
        // one that has set up peer-to-peer DMA.
        let distance =
            unsafe { bindings::pci_p2pdma_distance_many(as_raw(pdev), &mut client, 1, true) };

        if distance < 0 {
            dev_err!(
                pdev,
                "no peer-to-peer DMA from {} to BAR {}: put both devices behind one PCIe switch \
                 that doesn't redirect (ACS), or use a host bridge or processor that the kernel \
                 trusts to route it\n",
                importer.name(),
                self.memory.bar
            );
            return Err(EXDEV);
        }
        dev_dbg!(pdev, "{} is {} away\n", importer.name(), distance);
        Ok(())
    }

    /// Maps the range for DMA by an attachment's device. There are no pages in the table, only
    /// DMA addresses.
    ///
    /// # Errors
    ///
    /// Errors of the DMA API; the log explains them.
    ///
    /// # Safety
    ///
    /// `attach` must be an attachment to a dma-buf of this range, with the reservation lock held.
    pub(crate) unsafe fn map_dma(
        &self,
        attach: *mut bindings::dma_buf_attachment,
        direction: bindings::dma_data_direction,
    ) -> Result<*mut bindings::sg_table> {
        let mut range = bindings::phys_vec {
            paddr: self.start(),
            len: self.size,
        };
        let provider = self.memory.provider.as_ptr();

        // SAFETY: By the type invariants the provider is valid and the range is memory of it; the
        // caller sees to the rest.
        from_err_ptr(unsafe {
            bindings::dma_buf_phys_vec_to_sgt(attach, provider, &mut range, 1, self.size, direction)
        })
        .inspect_err(|err| {
            // SAFETY: An attachment's device is valid.
            let importer: &Device = unsafe { Device::from_raw((*attach).dev) };

            dev_err!(
                self.memory.pdev,
                "no DMA from {} to {:#x} bytes at {:#x}, error {}: swiotlb=force does that, or a \
                 DMA mask too narrow for the address\n",
                importer.name(),
                self.size,
                self.start(),
                err.to_errno()
            );
        })
    }

    /// Maps a part of the range into user space, as `vma` describes, write-back.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a private mapping or one beyond the end, `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `vma` must be one that is being set up by `mmap()`, for a file that keeps the range.
    pub(crate) unsafe fn mmap(&self, vma: *mut bindings::vm_area_struct) -> Result {
        // SAFETY: By this function's safety requirements.
        let area = unsafe { VmaNew::from_raw(vma) };
        // SAFETY: As above; it is not changed concurrently.
        let (first, protection) = unsafe { ((*vma).vm_pgoff, (*vma).vm_page_prot) };
        let pages = (area.end() - area.start()) >> PAGE_SHIFT;
        let end = first.checked_add(pages).ok_or(EINVAL)?;

        // A copy would be host memory.
        if area.flags() & flags::SHARED == 0 || end > self.size >> PAGE_SHIFT {
            return Err(EINVAL);
        }
        // CAST: `usize` has 64 bits, as addresses have.
        let page = (self.start() >> PAGE_SHIFT) as usize + first;

        // SAFETY: The area is being set up, and the pages are within the range.
        to_result(unsafe {
            bindings::remap_pfn_range(vma, area.start(), page, pages << PAGE_SHIFT, protection)
        })
    }
}

pub(crate) fn as_raw<Ctx: kernel::device::DeviceContext>(
    pdev: &pci::Device<Ctx>,
) -> *mut bindings::pci_dev {
    // `pci::Device` is transparent.
    core::ptr::from_ref(pdev).cast_mut().cast()
}
