// SPDX-License-Identifier: GPL-2.0

//! Pages of a device's registers that programs map: the doorbells of their queues.
//!
//! C header: `include/linux/mm.h`

use core::ptr::NonNull;

use kernel::{
    device::Bound,
    io::PhysAddr,
    mm::virt::{
        flags,
        VmaNew, //
    },
    new_mutex,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    pci,
    prelude::*,
    sync::Mutex, //
};

use crate::bindings;

/// A page of registers.
///
/// # Invariants
///
/// As long as the device is bound to its driver, programs that were given the page may read and write
/// it whenever they like.
#[derive(Copy, Clone)]
pub struct Portal(PhysAddr);

impl Portal {
    /// The page at `offset` of BAR `bar`.
    ///
    /// # Errors
    ///
    /// `ENODEV` without such a BAR, `EINVAL` if there is no such page: pages may be larger than the device
    /// thinks. `EOPNOTSUPP` where the architecture does not know by itself that registers are not cached.
    ///
    /// # Safety
    ///
    /// Whatever is read and written there, while the device is bound, must reach no more than the program
    /// may that the page is given to.
    pub unsafe fn new(pdev: &pci::Device<Bound>, bar: u32, offset: u64) -> Result<Self> {
        let (start, size) = (pdev.resource_start(bar)?, pdev.resource_len(bar)?);
        // CAST: A small number.
        let page = PAGE_SIZE as u64;
        let end = offset.checked_add(page).ok_or(EINVAL)?;

        // x86 goes by the address (PAT). Elsewhere it takes `pgprot_noncached()`, a macro.
        if cfg!(not(CONFIG_X86_PAT)) {
            return Err(EOPNOTSUPP);
        }
        if (start | offset) % page != 0 || end > size {
            return Err(EINVAL);
        }
        // INVARIANT: As this function requires.
        Ok(Self(start + offset))
    }

    /// Maps the page where it was touched.
    ///
    /// # Safety
    ///
    /// `vmf` must be a fault in an area of [`set_up`], and the device must be bound.
    pub(crate) unsafe fn map(self, vmf: *mut bindings::vm_fault) -> bindings::vm_fault_t {
        // SAFETY: A fault is not changed while it is handled.
        let at = unsafe { (*vmf).__bindgen_anon_1 };

        // SAFETY: The area is shared, and for pages without a `struct page`. By the type invariant the
        // program may have this one. CAST: Addresses have 64 bits.
        unsafe { bindings::vmf_insert_pfn(at.vma, at.address, (self.0 >> PAGE_SHIFT) as usize) }
    }
}

/// Prepares an area for a portal, which is of the process that maps it alone: a child does not inherit
/// it.
///
/// # Errors
///
/// `EINVAL` for a private mapping, one of more than a page, or one that is to be executed.
///
/// # Safety
///
/// `vma` must be one that is being set up by `mmap()`, and `ops` must handle its faults by
/// [`Portal::map`].
pub(crate) unsafe fn set_up(
    vma: *mut bindings::vm_area_struct,
    ops: &'static bindings::vm_operations_struct,
) -> Result {
    // SAFETY: As this function requires.
    let area = unsafe { VmaNew::from_raw(vma) };
    // SAFETY: As above; it is not changed concurrently.
    let first = unsafe { (*vma).vm_pgoff };

    if first != 0 || area.end() - area.start() != PAGE_SIZE || area.flags() & flags::SHARED == 0 {
        return Err(EINVAL);
    }
    area.try_clear_mayexec()?;
    area.set_io();
    area.set_dontexpand();
    area.set_dontcopy();
    area.set_dontdump();
    // SAFETY: As above, and a shared area may be for pages without a `struct page`.
    unsafe {
        (*vma).__bindgen_anon_2.vm_flags |= flags::PFNMAP;
        (*vma).vm_ops = ops;
    }
    Ok(())
}

/// The mappings of open files.
///
/// # Invariants
///
/// Each is that of a file that is open.
#[pin_data]
pub(crate) struct Mappings {
    #[pin]
    all: Mutex<KVec<NonNull<bindings::address_space>>>,
}

// SAFETY: Mappings have locks of their own.
unsafe impl Send for Mappings {}
// SAFETY: As above.
unsafe impl Sync for Mappings {}

impl Mappings {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            all <- new_mutex!(KVec::new()),
        })
    }

    /// Adds that of a file, which several may have in common.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The file must be open until [`Self::remove`] is called for it.
    pub(crate) unsafe fn add(&self, file: *mut bindings::file) -> Result {
        // SAFETY: As this function requires.
        let mapping = NonNull::new(unsafe { (*file).f_mapping }).ok_or(ENODEV)?;

        // INVARIANT: As this function requires.
        Ok(self.all.lock().push(mapping, GFP_KERNEL)?)
    }

    /// Removes what was added for a file.
    ///
    /// # Safety
    ///
    /// The file must be one that was added, and is about to be closed.
    pub(crate) unsafe fn remove(&self, file: *mut bindings::file) {
        // SAFETY: As this function requires.
        let mapping = unsafe { (*file).f_mapping };
        let mut all = self.all.lock();

        if let Some(index) = all.iter().position(|one| one.as_ptr() == mapping) {
            let _ = all.remove(index);
        }
    }

    /// Takes all pages from all programs.
    pub(crate) fn zap(&self) {
        for mapping in &*self.all.lock() {
            // SAFETY: By the type invariant, as no file is removed meanwhile.
            unsafe { bindings::unmap_mapping_range(mapping.as_ptr(), 0, 0, 1) };
        }
    }
}
