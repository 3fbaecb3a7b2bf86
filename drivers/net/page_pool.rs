// SPDX-License-Identifier: GPL-2.0

//! Page pools and the memory that they hand out: pages, or device memory.
//!
//! A pool has one consumer at a time. At first that is the control path; once it is attached to a
//! NAPI ([`PagePool::attach`]), it is the polls of that NAPI, and frees in them go straight to the
//! pool's cache. An [`Allocator`] proves that its user is the consumer. Its memory may be
//! dropped anywhere.
//!
//! C header: `include/net/page_pool/helpers.h`, `include/net/netmem.h`

mod netmem;

use core::{
    marker::PhantomData,
    num::NonZero,
    ptr::NonNull, //
};

use kernel::{
    device::{
        Bound,
        Device, //
    },
    error::from_err_ptr,
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
    napi::{
        Attachment,
        Disabled, //
    },
};

pub(crate) use self::netmem::net_iov;
pub use self::netmem::Netmem;

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
/// Pages that the stack holds are recycled in bursts, when an application reads; a pool without
/// room for them would free them, and allocate others.
const KEEP: u32 = 8;

/// How much memory a pool keeps for reuse beside its ring's, at most, in bytes: as much as a
/// receive window of TCP's takes (`net.ipv4.tcp_rmem`, 6 MiB of payload), and no more, as a device
/// may have many rings. A ring's own memory is kept in any case, so that a new ring costs nothing.
const KEEP_BYTES: u32 = 12 << 20;

/// How many pieces of memory of `page_size` a pool keeps whose ring takes `size`.
const fn keep(size: u32, page_size: PageSize) -> u32 {
    let most = match KEEP_BYTES.checked_shr(page_size.0.trailing_zeros()) {
        Some(most) => most,
        None => 0,
    };
    let wanted = size.saturating_mul(KEEP);

    if wanted <= most {
        wanted
    } else if size < most {
        most
    } else {
        size
    }
}

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

/// Where memory may be allocated from a pool: in the control path, or in a poll. An [`Allocator`] relies on
/// it.
pub trait Context: Sealed {
    /// The NAPI that is being polled; null in the control path.
    #[doc(hidden)]
    fn polls(&self) -> *const bindings::napi_struct;
}

mod sealed {
    /// Keeps drivers from implementing [`Context`](super::Context).
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

impl<T: Driver> Sealed for Locked<'_, T> {}

impl<T: Driver> Context for Locked<'_, T> {
    #[inline]
    fn polls(&self) -> *const bindings::napi_struct {
        core::ptr::null()
    }
}

/// A pool of memory that one RX queue's device may write.
///
/// # Invariants
///
/// `raw` is a page pool that this owns. It recycles directly in the polls of the NAPI that it is
/// attached to, and of no other.
pub struct PagePool<T: Driver> {
    raw: NonNull<bindings::page_pool>,
    attached: Option<Attachment<T>>,
}

// SAFETY: A page pool may be used by any one thread at a time.
unsafe impl<T: Driver> Send for PagePool<T> {}

impl<T: Driver> PagePool<T> {
    /// Makes a pool whose memory is mapped for `parent`, if a device does DMA to it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue, `ENOMEM`, or what the queue's memory provider says.
    pub fn new(
        dev: Locked<'_, T>,
        parent: Option<&Device<Bound>>,
        config: &Config,
    ) -> Result<Self> {
        // SAFETY: The device is valid; the number never changes.
        if config.queue >= unsafe { (*dev.device().as_raw()).num_rx_queues } {
            return Err(EINVAL);
        }

        let mut flags = 0;
        if parent.is_some() {
            flags |= bindings::NET_PP_FLAG_DMA_MAP | bindings::NET_PP_FLAG_DMA_SYNC_DEV;
        }
        if config.allow_unreadable {
            flags |= bindings::NET_PP_FLAG_ALLOW_UNREADABLE_NETMEM;
        }

        // SAFETY: The device is valid and locked, and has the queue.
        let provided = config.allow_unreadable
            && unsafe {
                bindings::netif_rxq_has_unreadable_mp(dev.device().as_raw(), config.queue)
            };

        // SAFETY: All zero is a valid value; the fields that matter follow.
        let mut params: bindings::page_pool_params = unsafe { core::mem::zeroed() };
        {
            // SAFETY: Both members of the union are the same fields.
            let fast = unsafe { &mut params.__bindgen_anon_1.fast };
            fast.order = config.page_size.order();
            fast.pool_size = if provided {
                // The memory is there in any case.
                config.size.saturating_mul(KEEP)
            } else {
                keep(config.size, config.page_size)
            };
            fast.nid = -1;
            fast.dev = parent.map_or(core::ptr::null_mut(), |parent| {
                core::ptr::from_ref(parent).cast_mut().cast()
            });
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
        let raw = from_err_ptr(unsafe { bindings::page_pool_create(&params) })?;

        // INVARIANT: Created above, and attached to no NAPI.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            attached: None,
        })
    }

    /// Returns whether the CPU cannot read this pool's memory.
    pub fn is_unreadable(&self) -> bool {
        // SAFETY: The pool is valid by the type invariant; its provider never changes
        // (`page_pool_is_unreadable()`).
        unsafe { !(*self.as_raw()).mp_ops.is_null() }
    }

    /// Makes the polls of `napi` the pool's consumer, until [`Self::detach`].
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is attached already.
    pub fn attach(&mut self, napi: &Disabled<'_, T>) -> Result {
        if self.attached.is_some() {
            return Err(EBUSY);
        }
        // SAFETY: Both are valid. The NAPI is disabled, its memory lives as long as the
        // attachment, and none but its polls get an allocator from now on.
        unsafe { bindings::page_pool_enable_direct_recycling(self.as_raw(), napi.as_raw()) };
        // INVARIANT: Enabled above.
        self.attached = Some(Attachment::new(napi));
        Ok(())
    }

    /// Makes the control path the pool's consumer again. A pool that is attached to another NAPI
    /// stays so.
    pub fn detach(&mut self, napi: &Disabled<'_, T>) {
        let attached = self.attached.take_if(|to| to.as_raw() == napi.as_raw());

        if attached.is_some() {
            // SAFETY: The pool is valid, and its NAPI is disabled. INVARIANT: It recycles directly
            // nowhere.
            unsafe { bindings::page_pool_disable_direct_recycling(self.as_raw()) };
        }
    }

    /// The right to allocate, if the pool is that context's: attached to the NAPI that is being
    /// polled, or to none in the control path.
    #[inline]
    pub fn allocator(&mut self, context: &impl Context) -> Option<Allocator<'_>> {
        let attached = match &self.attached {
            Some(napi) => napi.as_raw().cast_const(),
            None => core::ptr::null(),
        };

        // INVARIANT: `&mut self` makes this the only one in that context, and there is no other
        // context.
        (context.polls() == attached).then_some(Allocator(self.raw, PhantomData))
    }

    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::page_pool {
        self.raw.as_ptr()
    }
}

impl<T: Driver> Drop for PagePool<T> {
    fn drop(&mut self) {
        if self
            .attached
            .as_ref()
            .is_some_and(Attachment::may_be_polled)
        {
            pr_err!("a page pool is dropped while it is attached to a NAPI: it stays\n");
            // The NAPI's memory stays with it.
            core::mem::forget(self.attached.take());
            return;
        }
        // SAFETY: Owned by the type invariant, and its NAPI, if it has one, is not polled any
        // more. Memory and users that are still out keep what they need of the pool, which forgets the
        // NAPI: they may outlive it.
        unsafe {
            if self.attached.is_some() {
                bindings::page_pool_disable_direct_recycling(self.as_raw());
            }
            bindings::page_pool_destroy(self.as_raw());
        }
    }
}

/// The right to allocate from a pool.
///
/// # Invariants
///
/// The pool is valid, and this is its only consumer.
pub struct Allocator<'a>(NonNull<bindings::page_pool>, PhantomData<&'a mut ()>);

impl Allocator<'_> {
    /// Takes one piece of memory; `None` if there is none.
    #[inline]
    pub fn alloc(&mut self) -> Option<Netmem> {
        // SAFETY: By the type invariants.
        let raw = unsafe { bindings::page_pool_alloc_netmems(self.0.as_ptr(), GFP) };

        // SAFETY: A reference from a pool, which is ours.
        NonZero::new(raw).map(|raw| unsafe { Netmem::from_raw(raw) })
    }

    /// Takes one piece of readable memory with `count` references: those, and where the CPU sees it.
    pub(crate) fn alloc_shared(
        &mut self,
        count: u32,
    ) -> Option<(NonZero<bindings::netmem_ref>, NonNull<u8>)> {
        let netmem = self.alloc()?;
        // A pool without a provider has pages only.
        let address = netmem.address()?;

        // SAFETY: The memory is nobody else's yet (`page_pool_fragment_netmem()`). CAST: A page has
        // few fragments.
        unsafe {
            (&raw mut (*netmem.descriptor()).pp_ref_count.counter).write_volatile(count.into());
        }
        Some((NonZero::new(netmem.into_raw())?, address))
    }
}

/// Without waiting, and without a complaint where there is none.
const GFP: bindings::gfp_t = bindings::NET_SHIM_GFP_POOL;
