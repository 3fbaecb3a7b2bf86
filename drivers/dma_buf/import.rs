// SPDX-License-Identifier: GPL-2.0

//! dma-bufs, from the importer's side.
//!
//! C header: `include/linux/dma-buf.h`

use core::ptr::NonNull;

use kernel::{
    device::{
        Bound,
        Device, //
    },
    devres::Devres,
    dma::DmaAddress,
    error::from_err_ptr,
    prelude::*,
    scatterlist::SGTable,
    sync::aref::ARef, //
};

use crate::bindings;

/// A dma-buf that a device does DMA to and from, as long as this lives: its exporter must not move it.
///
/// # Invariants
///
/// `attach` is an attachment of the device to a dma-buf, of which this owns a reference, and `table` its
/// mapping.
pub struct Imported {
    attach: NonNull<bindings::dma_buf_attachment>,
    table: NonNull<bindings::sg_table>,
    /// The attachment has a pointer to it.
    _dev: ARef<Device>,
}

// SAFETY: Attachments belong to no thread.
unsafe impl Send for Imported {}
// SAFETY: The mapping is not changed.
unsafe impl Sync for Imported {}

impl Imported {
    /// Maps the dma-buf behind a file descriptor for DMA in both directions by `dev`. It is unmapped when
    /// the device is unbound at the latest, when its driver must have stopped DMA.
    ///
    /// # Errors
    ///
    /// `EBADF` or `EINVAL` if there is no dma-buf, and the exporter's errors: `EXDEV` if the device has no
    /// peer-to-peer path to it.
    pub fn new(dev: &Device<Bound>, fd: i32) -> Result<Devres<Self>> {
        // SAFETY: Any number may be asked for.
        let dmabuf = from_err_ptr(unsafe { bindings::dma_buf_get(fd) })?;
        // `Device` is transparent.
        let raw = core::ptr::from_ref::<Device>(dev).cast_mut().cast();

        // SAFETY: We own a reference to the dma-buf, and the device is bound.
        let attach = from_err_ptr(unsafe { bindings::dma_buf_attach(dmabuf, raw) })
            // SAFETY: The reference is ours, and nothing else has it.
            .inspect_err(|_| unsafe { bindings::dma_buf_put(dmabuf) })?;
        // SAFETY: The attachment is valid, and the reservation lock is not held.
        let table = unsafe {
            bindings::dma_buf_map_attachment_unlocked(
                attach,
                bindings::dma_data_direction::DMA_BIDIRECTIONAL,
            )
        };
        let mapped = from_err_ptr(table)
            .and_then(|table| NonNull::new(table).ok_or(ENOMEM))
            .inspect_err(|_| {
                // SAFETY: As above; it is not mapped.
                unsafe {
                    bindings::dma_buf_detach(dmabuf, attach);
                    bindings::dma_buf_put(dmabuf);
                }
            })?;

        // INVARIANT: As made above. An attachment that is no error is not null.
        let this = Self {
            attach: NonNull::new(attach).ok_or(ENOMEM)?,
            table: mapped,
            _dev: dev.into(),
        };
        Devres::new(dev, Ok::<_, Error>(this))
    }

    /// The range of DMA addresses that it is, if it is one: where it begins, and how many bytes it has.
    pub fn contiguous(&self) -> Option<(DmaAddress, u64)> {
        // SAFETY: Valid by the type invariant, and not modified.
        let table = unsafe { SGTable::from_raw(self.table.as_ptr()) };
        let mut pieces = table
            .iter()
            .map(|piece| (piece.dma_address(), piece.dma_len()));
        let first = pieces.next()?;

        pieces.try_fold(first, |(start, len), (next, more)| {
            (start.checked_add(len)? == next).then_some((start, len.checked_add(more)?))
        })
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        let attach = self.attach.as_ptr();

        // SAFETY: By the type invariant, and nothing has the mapping any more. The reservation lock is
        // not held. The last reference to the dma-buf may be ours, so it is put last.
        unsafe {
            let dmabuf = (*attach).dmabuf;
            bindings::dma_buf_unmap_attachment_unlocked(
                attach,
                self.table.as_ptr(),
                bindings::dma_data_direction::DMA_BIDIRECTIONAL,
            );
            bindings::dma_buf_detach(dmabuf, attach);
            bindings::dma_buf_put(dmabuf);
        }
    }
}
