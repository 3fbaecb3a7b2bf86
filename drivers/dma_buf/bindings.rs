// SPDX-License-Identifier: GPL-2.0

//! The C names of this crate: those of [`kernel::bindings`], and two functions that it lacks,
//! because it does not read their header.
//!
//! C header: `include/linux/dma-buf-mapping.h`

pub(crate) use kernel::bindings::*;

#[expect(improper_ctypes, reason = "C has empty structs behind these pointers")]
extern "C" {
    pub(crate) fn dma_buf_phys_vec_to_sgt(
        attach: *mut dma_buf_attachment,
        provider: *mut p2pdma_provider,
        phys_vec: *mut phys_vec,
        nr_ranges: usize,
        size: usize,
        dir: dma_data_direction,
    ) -> *mut sg_table;

    pub(crate) fn dma_buf_free_sgt(
        attach: *mut dma_buf_attachment,
        sgt: *mut sg_table,
        dir: dma_data_direction,
    );
}
