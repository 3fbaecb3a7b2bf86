// SPDX-License-Identifier: GPL-2.0

//! Raw bindings to the kernel's networking core.
//!
//! The only place that sees C names; the crate `net` turns them into safe types. What is in here
//! is listed in `bindgen_parameters`; static inlines and macros come as `net_shim_*` (`shims/`).
//! bindgen's layout tests are kept: a struct that Rust sees differently fails the build.

#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    rustdoc::all,
    unnameable_types,
    unnecessary_transmutes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    reason = "generated from C headers"
)]

pub use kernel::bindings::{
    clear_bit,
    cpumask_local_spread,
    device,
    dma_buf,
    init_work_with_key,
    irq_set_affinity,
    jiffies,
    module,
    mutex,
    mutex_lock,
    mutex_unlock,
    pci_dev,
    pci_driver,
    refcount_inc,
    work_struct, //
};

#[allow(non_camel_case_types, reason = "C names")]
mod ctypes {
    pub type __kernel_size_t = usize;
    pub type __kernel_ssize_t = isize;
    pub type __kernel_ptrdiff_t = isize;
}
pub use ctypes::*;

use pin_init::MaybeZeroable;

include!(concat!(env!("NET_BINDINGS_OBJ"), "/bindings_generated.rs"));

// SAFETY: A bitfield unit is its storage.
unsafe impl<Storage: pin_init::Zeroable> pin_init::Zeroable for __BindgenBitfieldUnit<Storage> {}
