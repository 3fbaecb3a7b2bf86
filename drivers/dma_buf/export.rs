// SPDX-License-Identifier: GPL-2.0

//! dma-bufs, from the exporter's side.
//!
//! C header: `include/linux/dma-buf.h`

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

use kernel::{
    device::Device,
    error::{
        from_err_ptr,
        from_result, //
    },
    fs::File,
    module::this_module,
    prelude::*,
    sync::aref::ARef, //
};

use crate::{
    bindings,
    peer::PeerRange, //
};

/// The direction of an access.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The memory is read.
    Read,
    /// The memory is written.
    Write,
    /// Both.
    Both,
}

impl Direction {
    /// The kernel names CPU accesses from the device's point of view: a CPU read is from the device.
    fn of_cpu(raw: bindings::dma_data_direction) -> Self {
        match raw {
            bindings::dma_data_direction::DMA_FROM_DEVICE => Self::Read,
            bindings::dma_data_direction::DMA_TO_DEVICE => Self::Write,
            _ => Self::Both,
        }
    }
}

/// A driver's data of each dma-buf. It is dropped with the last reference to the dma-buf, when its
/// memory is no longer mapped or used, and frees the memory.
#[vtable]
pub trait Exporter: Send + Sync + 'static {
    /// The exporter's name, which `/proc/<pid>/fdinfo` and debugfs show.
    const NAME: &'static CStr;

    /// The CPU is about to access the memory through an `mmap()` (`DMA_BUF_SYNC_START`).
    ///
    /// # Errors
    ///
    /// The ioctl fails with what this returns.
    fn begin_cpu_access(&self, _direction: Direction) -> Result {
        kernel::build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// The CPU is done with the memory (`DMA_BUF_SYNC_END`).
    ///
    /// # Errors
    ///
    /// The ioctl fails with what this returns.
    fn end_cpu_access(&self, _direction: Direction) -> Result {
        kernel::build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }
}

/// The type that a dma-buf's `priv` points to.
struct Exported<T> {
    /// Dropped first: a driver must free the range while it still holds off unbinding.
    data: T,
    range: PeerRange,
}

/// A dma-buf that has no file descriptor yet.
///
/// # Invariants
///
/// The pointer is a dma-buf, and this owns a reference to its file.
pub struct DmaBuf(NonNull<bindings::dma_buf>);

/// Exports `range` with the driver's data, for a file with these `flags` (`O_RDWR` …).
///
/// # Errors
///
/// `ENOMEM`; `ENOENT` if the module is being unloaded. `data` and `range` are then dropped.
pub fn export<T: Exporter>(range: PeerRange, data: T, flags: u32) -> Result<DmaBuf> {
    let size = range.size();
    let exported = KBox::into_raw(KBox::new(Exported { data, range }, GFP_KERNEL)?);
    let info = bindings::dma_buf_export_info {
        exp_name: T::NAME.as_char_ptr(),
        owner: this_module::<T::OwnerModule>().as_ptr(),
        ops: Vtable::<T>::build(),
        size,
        // CAST: The kernel has them as `int`.
        flags: flags as c_int,
        resv: core::ptr::null_mut(),
        priv_: exported.cast(),
    };

    // SAFETY: The operations match the type that `priv` points to, which lives until `release`.
    match from_err_ptr(unsafe { bindings::dma_buf_export(&info) }) {
        // INVARIANT: A new dma-buf's only reference is the caller's.
        Ok(dmabuf) => Ok(DmaBuf(NonNull::new(dmabuf).ok_or(ENOMEM)?)),
        Err(err) => {
            // SAFETY: It was made above, and no dma-buf has it.
            drop(unsafe { KBox::from_raw(exported) });
            Err(err)
        }
    }
}

impl DmaBuf {
    /// The dma-buf's file, to be installed as a file descriptor.
    pub fn into_file(self) -> ARef<File> {
        let this = ManuallyDrop::new(self);
        // SAFETY: By the type invariant the dma-buf is valid; its file is set when it is made.
        let file: NonNull<File> = unsafe { NonNull::new_unchecked((*this.0.as_ptr()).file) }.cast();

        // SAFETY: The reference that `self` owned is transferred. The file is not installed as a
        // descriptor yet, so there is no active `fdget_pos` of it.
        unsafe { ARef::from_raw(file) }
    }
}

impl Drop for DmaBuf {
    fn drop(&mut self) {
        // SAFETY: By the type invariant we own a reference.
        unsafe { bindings::dma_buf_put(self.0.as_ptr()) };
    }
}

/// The operations of dma-bufs with a `T`.
struct Vtable<T>(PhantomData<T>);

impl<T: Exporter> Vtable<T> {
    const OPS: bindings::dma_buf_ops = bindings::dma_buf_ops {
        attach: Some(Self::attach),
        map_dma_buf: Some(Self::map_dma_buf),
        unmap_dma_buf: Some(Self::unmap_dma_buf),
        release: Some(Self::release),
        mmap: Some(Self::mmap),
        begin_cpu_access: if T::HAS_BEGIN_CPU_ACCESS {
            Some(Self::begin_cpu_access)
        } else {
            None
        },
        end_cpu_access: if T::HAS_END_CPU_ACCESS {
            Some(Self::end_cpu_access)
        } else {
            None
        },
        ..pin_init::zeroed()
    };

    const fn build() -> &'static bindings::dma_buf_ops {
        &Self::OPS
    }

    /// # Safety
    ///
    /// `dmabuf` must be a dma-buf of these operations that is not released for `'a`.
    unsafe fn exported<'a>(dmabuf: *mut bindings::dma_buf) -> &'a Exported<T> {
        // SAFETY: `export` has set it, and `release` alone drops it.
        unsafe { &*(*dmabuf).priv_.cast() }
    }

    /// # Safety
    ///
    /// Only the dma-buf core may call it, as `attach`.
    unsafe extern "C" fn attach(
        dmabuf: *mut bindings::dma_buf,
        attach: *mut bindings::dma_buf_attachment,
    ) -> c_int {
        // SAFETY: The core calls with a dma-buf that lives.
        let exported = unsafe { Self::exported(dmabuf) };
        // SAFETY: The core calls with an attachment whose device is valid.
        let (importer, dynamic, peer2peer) = unsafe {
            (
                Device::from_raw((*attach).dev),
                !(*attach).importer_ops.is_null(),
                (*attach).peer2peer,
            )
        };

        from_result(|| {
            // A static importer has no way to tell whether it supports memory without pages.
            if dynamic && !peer2peer {
                return Err(EOPNOTSUPP);
            }
            exported.range.check_reachable(importer)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the dma-buf core may call it, as `map_dma_buf`.
    unsafe extern "C" fn map_dma_buf(
        attach: *mut bindings::dma_buf_attachment,
        direction: bindings::dma_data_direction,
    ) -> *mut bindings::sg_table {
        // SAFETY: The core calls with an attachment to a dma-buf that lives.
        let exported = unsafe { Self::exported((*attach).dmabuf) };

        // SAFETY: As above, and with the reservation lock held.
        unsafe { exported.range.map_dma(attach, direction) }.unwrap_or_else(|err| err.to_ptr())
    }

    /// # Safety
    ///
    /// Only the dma-buf core may call it, as `unmap_dma_buf`.
    unsafe extern "C" fn unmap_dma_buf(
        attach: *mut bindings::dma_buf_attachment,
        table: *mut bindings::sg_table,
        direction: bindings::dma_data_direction,
    ) {
        // SAFETY: The core calls with what `map_dma_buf` returned, with the reservation lock held.
        unsafe { bindings::dma_buf_free_sgt(attach, table, direction) };
    }

    /// # Safety
    ///
    /// Only the dma-buf core may call it, as `release`.
    unsafe extern "C" fn release(dmabuf: *mut bindings::dma_buf) {
        // SAFETY: `export` has made it, and the core calls this once and last.
        drop(unsafe { KBox::<Exported<T>>::from_raw((*dmabuf).priv_.cast()) });
    }

    /// # Safety
    ///
    /// Only the dma-buf core may call it, as `mmap`.
    unsafe extern "C" fn mmap(
        dmabuf: *mut bindings::dma_buf,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: The core calls with a dma-buf that lives.
        let exported = unsafe { Self::exported(dmabuf) };

        // SAFETY: The area is being set up for the dma-buf's file, which has the range.
        from_result(|| unsafe { exported.range.mmap(vma) }.map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the dma-buf core may call it, as `begin_cpu_access`.
    unsafe extern "C" fn begin_cpu_access(
        dmabuf: *mut bindings::dma_buf,
        direction: bindings::dma_data_direction,
    ) -> c_int {
        // SAFETY: The core calls with a dma-buf that lives.
        let exported = unsafe { Self::exported(dmabuf) };

        from_result(|| {
            exported
                .data
                .begin_cpu_access(Direction::of_cpu(direction))
                .map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Only the dma-buf core may call it, as `end_cpu_access`.
    unsafe extern "C" fn end_cpu_access(
        dmabuf: *mut bindings::dma_buf,
        direction: bindings::dma_data_direction,
    ) -> c_int {
        // SAFETY: The core calls with a dma-buf that lives.
        let exported = unsafe { Self::exported(dmabuf) };

        from_result(|| {
            exported
                .data
                .end_cpu_access(Direction::of_cpu(direction))
                .map(|()| 0)
        })
    }
}
