// SPDX-License-Identifier: GPL-2.0

//! Memory that a page pool has handed out.
//!
//! C header: `include/net/netmem.h`

use core::{
    num::NonZero,
    ptr::NonNull, //
};

use kernel::page::PAGE_SIZE;
use net_bindings as bindings;

use crate::{
    device::Driver,
    napi::Receive, //
};

/// A piece of memory from a pool: pages, or a `net_iov` of device memory.
///
/// # Invariants
///
/// Holds one reference to what has a `struct netmem_desc`, which is recycled on drop.
pub struct Netmem(NonZero<bindings::netmem_ref>);

impl Netmem {
    /// Pages and net_iovs begin with the same fields (`netmem_to_nmdesc()`).
    #[inline]
    pub(super) fn descriptor(&self) -> *mut bindings::netmem_desc {
        (self.0.get() & !NET_IOV) as *mut _
    }

    /// The address as the device sees it (`page_pool_get_dma_addr_netmem()`, on 64-bit).
    #[inline]
    pub fn dma_address(&self) -> u64 {
        // SAFETY: Valid by the type invariant. CAST: Of the same size.
        unsafe { (*self.descriptor()).dma_addr as u64 }
    }

    #[inline]
    fn pool(&self) -> *const bindings::page_pool {
        // SAFETY: Valid by the type invariant.
        unsafe { (*self.descriptor()).pp }
    }

    /// Returns whether `len` bytes at `offset` lie in it.
    #[inline]
    pub(crate) fn has(&self, offset: u32, len: u32) -> bool {
        // SAFETY: The pool is valid as long as memory of it is out.
        let order = unsafe { (*self.pool()).p.order };

        u64::from(offset) + u64::from(len) <= (PAGE_SIZE as u64) << (order & 31)
    }

    /// Returns whether it is a `net_iov`.
    #[inline]
    pub(crate) fn is_net_iov(&self) -> bool {
        net_iov(self.as_raw()).is_some()
    }

    /// # Safety
    ///
    /// `raw` must be a reference from a pool that the caller gives away.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonZero<bindings::netmem_ref>) -> Self {
        // INVARIANT: As this function requires.
        Self(raw)
    }

    /// Makes what the device wrote visible to the CPU, of `len` bytes at `offset`; does nothing for
    /// unreadable memory, or if they do not lie in it.
    pub fn sync_for_cpu(&self, offset: u32, len: u32) {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_netmem_sync_for_cpu(self.as_raw(), offset, len) };
    }

    /// As [`Self::sync_for_cpu`], in a poll: where no device needs it, for nothing.
    #[inline]
    pub(crate) fn sync_received<T: Driver>(&self, offset: u32, len: u32, napi: &Receive<'_, T>) {
        if self.needs_sync(napi) {
            self.sync_for_cpu(offset, len);
        }
    }

    /// As [`Self::sync_for_device`], in a poll: where no device needs it, for nothing.
    #[inline]
    pub(crate) fn sync_to_post<T: Driver>(&self, offset: u32, len: u32, napi: &Receive<'_, T>) {
        if self.needs_sync(napi) {
            self.sync_for_device(offset, len);
        }
    }

    #[inline]
    fn needs_sync<T: Driver>(&self, _napi: &Receive<'_, T>) -> bool {
        // SAFETY: Valid by the type invariant; so is the pool. A poll is an RCU reader, for which
        // page_pool_destroy() waits before it unmaps.
        unsafe {
            let pool = self.pool();

            (*pool).dma_sync() && needs_sync((*pool).p.dev)
        }
    }

    /// Lets the device write `len` bytes at `offset` that were made visible to the CPU, for memory
    /// that is posted again; does nothing for unreadable memory, or if they do not lie in it.
    pub fn sync_for_device(&self, offset: u32, len: u32) {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_netmem_sync_for_device(self.as_raw(), offset, len) };
    }

    /// Where the CPU reads it; `None` for device memory.
    #[inline]
    pub fn address(&self) -> Option<NonNull<u8>> {
        // SAFETY: Valid by the type invariant.
        NonNull::new(unsafe { bindings::net_shim_netmem_address(self.as_raw()) }.cast())
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> bindings::netmem_ref {
        self.0.get()
    }

    /// Gives the reference away.
    #[inline]
    pub(crate) fn into_raw(self) -> bindings::netmem_ref {
        let raw = self.as_raw();

        core::mem::forget(self);
        raw
    }
}

/// Set in a `netmem_ref` of a net_iov.
const NET_IOV: bindings::netmem_ref = 1;

/// What a net_iov begins with; `None` for a page (`netmem_is_net_iov()`).
#[inline]
pub(crate) fn net_iov(netmem: bindings::netmem_ref) -> Option<*const bindings::netmem_desc> {
    (netmem & NET_IOV != 0).then_some((netmem & !NET_IOV) as *const _)
}

/// Whether memory that is mapped for `dev` may need to be synced (`dma_dev_need_sync()`).
///
/// # Safety
///
/// `dev` must be valid.
#[inline]
unsafe fn needs_sync(dev: *const bindings::device) -> bool {
    if cfg!(CONFIG_DMA_API_DEBUG) {
        return true;
    }
    #[cfg(CONFIG_DMA_NEED_SYNC)]
    {
        let skip = kernel::bindings::struct_device_flags_DEV_FLAG_DMA_SKIP_SYNC;
        // SAFETY: As this function requires. The core changes single bits.
        let flags = unsafe { (&raw const (*dev).flags[0]).read_volatile() };

        flags & (1 << skip) == 0
    }
    #[cfg(not(CONFIG_DMA_NEED_SYNC))]
    {
        false
    }
}

impl Drop for Netmem {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant. From any context: in hard interrupts it is put off.
        unsafe { bindings::net_shim_pp_put(self.as_raw()) };
    }
}
