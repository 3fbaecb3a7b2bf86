// SPDX-License-Identifier: GPL-2.0

//! Page pools and the memory that they hand out: pages, or device memory.
//!
//! C header: `include/net/page_pool/helpers.h`, `include/net/netmem.h`

use core::{
    num::NonZero,
    ptr::NonNull, //
};

use kernel::{
    device::{
        Bound,
        Device, //
    },
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*, //
};
use net_bindings as bindings;

use crate::{
    device::{
        Driver,
        Locked, //
    },
    napi, //
};

/// The size of one allocation: a power of two, and a page at least.
///
/// # Invariants
///
/// A power of two that is not less than `PAGE_SIZE`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageSize(u32);

impl PageSize {
    /// One page.
    // INVARIANT: `PAGE_SIZE` is a power of two. CAST: It is small.
    pub const PAGE: Self = Self(PAGE_SIZE as u32);

    /// `bytes`, if that is such a size.
    pub const fn new(bytes: u32) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= Self::PAGE.0 {
            // INVARIANT: Checked just above.
            Some(Self(bytes))
        } else {
            None
        }
    }

    /// The smallest such size that is not less than `bytes`.
    pub const fn at_least(bytes: u32) -> Option<Self> {
        match bytes.checked_next_power_of_two() {
            Some(bytes) if bytes > Self::PAGE.0 => Self::new(bytes),
            Some(_) => Some(Self::PAGE),
            None => None,
        }
    }

    /// The size in bytes.
    #[inline]
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// The size as the page allocator knows it: `PAGE_SIZE << order` bytes.
    #[inline]
    pub const fn order(self) -> u32 {
        // CAST: A small constant.
        self.0.trailing_zeros() - PAGE_SHIFT as u32
    }
}

/// How many times its ring's memory a pool keeps for reuse, at most.
///
/// What the stack holds comes back in bursts, when an application reads; a pool without room for
/// it would free it, and allocate it again.
const KEEP: u32 = 8;

/// What a pool is for.
pub struct Config {
    /// How many pieces of memory the ring takes.
    pub size: u32,
    /// The size of each.
    pub page_size: PageSize,
    /// The RX queue that it serves.
    pub queue: u32,
    /// Take memory from the queue's memory provider, if it has one: the CPU may not be able to
    /// read it. Never for headers.
    pub allow_unreadable: bool,
}

/// A pool of memory that one RX queue's device may write.
///
/// # Invariants
///
/// The pointer is a page pool that this owns.
pub struct PagePool(NonNull<bindings::page_pool>);

// SAFETY: A page pool may be used by any one thread at a time.
unsafe impl Send for PagePool {}

impl PagePool {
    /// Makes a pool whose memory is mapped for `parent`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue, `ENOMEM`, or what the queue's memory provider says.
    pub fn new<T: Driver>(
        dev: Locked<'_, T>,
        parent: &Device<Bound>,
        config: &Config,
    ) -> Result<Self> {
        // SAFETY: The device is valid; the number never changes.
        if config.queue >= unsafe { (*dev.device().as_raw()).num_rx_queues } {
            return Err(EINVAL);
        }

        let mut flags = bindings::NET_PP_FLAG_DMA_MAP | bindings::NET_PP_FLAG_DMA_SYNC_DEV;
        if config.allow_unreadable {
            flags |= bindings::NET_PP_FLAG_ALLOW_UNREADABLE_NETMEM;
        }

        // SAFETY: All zero is a valid value; the fields that matter follow.
        let mut params: bindings::page_pool_params = unsafe { core::mem::zeroed() };
        {
            // SAFETY: Both members of the union are the same fields.
            let fast = unsafe { &mut params.__bindgen_anon_1.fast };
            fast.order = config.page_size.order();
            fast.pool_size = config.size.saturating_mul(KEEP);
            fast.nid = -1;
            fast.dev = core::ptr::from_ref(parent).cast_mut().cast();
            fast.dma_dir = bindings::dma_data_direction::DMA_FROM_DEVICE;
            fast.max_len = config.page_size.bytes();
        }
        {
            // SAFETY: As above.
            let slow = unsafe { &mut params.__bindgen_anon_2.slow };
            slow.netdev = dev.device().as_raw();
            slow.queue_idx = config.queue;
            slow.flags = flags;
        }

        // SAFETY: The parameters are complete; the instance lock is held, which a memory provider
        // needs.
        let raw = unsafe { bindings::page_pool_create(&params) };
        // SAFETY: Any pointer may be asked.
        if unsafe { bindings::net_shim_is_err(raw.cast()) } {
            // SAFETY: It is an error pointer. CAST: An errno fits in `i32`.
            let errno = unsafe { bindings::net_shim_ptr_err(raw.cast()) } as i32;
            return Err(Error::from_errno(errno));
        }

        // INVARIANT: Created above.
        NonNull::new(raw).map(Self).ok_or(ENOMEM)
    }

    /// Returns whether the CPU cannot read this pool's memory.
    pub fn is_unreadable(&self) -> bool {
        // SAFETY: The pool is valid by the type invariant.
        unsafe { bindings::net_shim_pp_is_unreadable(self.0.as_ptr()) }
    }

    /// Lets frees in the NAPI's context go straight to the pool's cache.
    ///
    /// The queue's receive path starts to use the pool: call it before the NAPI is enabled.
    ///
    /// # Safety
    ///
    /// Until that ends, by [`Self::disable_direct_recycling`] or the end of the pool, the NAPI must
    /// live, and while it is enabled nobody but its polls may use the pool. That is so for a pool in
    /// the NAPI's own state.
    pub unsafe fn enable_direct_recycling<P: napi::Poll>(&mut self, napi: &napi::Disabled<P>) {
        // SAFETY: Both are valid, a disabled NAPI uses no pool, and the rest is required.
        unsafe {
            bindings::page_pool_enable_direct_recycling(self.0.as_ptr(), napi.as_raw());
        }
    }

    /// Ends what [`Self::enable_direct_recycling`] began.
    pub fn disable_direct_recycling<P: napi::Poll>(&mut self, _napi: &napi::Disabled<P>) {
        // SAFETY: The pool is valid, and its NAPI is disabled.
        unsafe { bindings::page_pool_disable_direct_recycling(self.0.as_ptr()) };
    }

    /// Takes one piece of memory; `None` if there is none.
    #[inline]
    pub fn alloc(&mut self) -> Option<Netmem> {
        let mut dma = 0;
        // SAFETY: The pool is valid, and `&mut self` makes this the only consumer.
        let raw = unsafe { bindings::net_shim_pp_alloc(self.0.as_ptr(), &mut dma) };

        // INVARIANT: A reference from a pool, which is ours.
        NonZero::new(raw).map(|raw| Netmem { raw, dma })
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::page_pool {
        self.0.as_ptr()
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        // SAFETY: Owned by the type invariant. Memory that is still out keeps what it needs.
        unsafe { bindings::page_pool_destroy(self.0.as_ptr()) };
    }
}

/// A piece of memory from a pool: pages, or a `net_iov` of device memory.
///
/// # Invariants
///
/// Holds one reference, which goes back to the pool on drop. `dma` is where the device sees it.
pub struct Netmem {
    raw: NonZero<bindings::netmem_ref>,
    dma: u64,
}

impl Netmem {
    /// The address as the device sees it.
    #[inline]
    pub fn dma_address(&self) -> u64 {
        self.dma
    }

    /// # Safety
    ///
    /// `raw` must be a reference from a pool that the caller gives away, and `dma` where the device
    /// sees that memory.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: NonZero<bindings::netmem_ref>, dma: u64) -> Self {
        // INVARIANT: As this function requires.
        Self { raw, dma }
    }

    /// Makes what the device wrote visible to the CPU, of `len` bytes at `offset`; does nothing for
    /// unreadable memory, or if they do not lie in it.
    #[inline]
    pub fn sync_for_cpu(&self, offset: u32, len: u32) {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_netmem_sync_for_cpu(self.raw.get(), offset, len) };
    }

    /// Where the CPU reads it; `None` for device memory.
    #[inline]
    pub fn address(&self) -> Option<NonNull<u8>> {
        // SAFETY: Valid by the type invariant.
        NonNull::new(unsafe { bindings::net_shim_netmem_address(self.raw.get()) }.cast())
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> bindings::netmem_ref {
        self.raw.get()
    }

    /// Gives the reference away.
    #[inline]
    pub(crate) fn into_raw(self) -> bindings::netmem_ref {
        let raw = self.as_raw();

        core::mem::forget(self);
        raw
    }
}

impl Drop for Netmem {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_pp_put(self.raw.get(), false) };
    }
}
