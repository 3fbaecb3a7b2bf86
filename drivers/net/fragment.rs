// SPDX-License-Identifier: GPL-2.0

//! Parts of pages from a page pool, all of one size.
//!
//! C header: `include/net/page_pool/helpers.h` (`page_pool_fragment_netmem()`)

use core::{
    num::NonZero,
    ptr::NonNull, //
};

use kernel::{
    device::{
        Bound,
        Device, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};
use net_bindings as bindings;

use crate::{
    device::{
        Driver,
        Locked,
        NetDevice, //
    },
    napi::Disabled,
    page_pool::{
        self,
        Allocator,
        Netmem,
        PagePool,
        PageSize, //
    }, //
};

/// Pages are at least as many times as large as a fragment, so that little of them is left over.
const MIN_FRAGMENTS: u32 = 3;

/// As many share a page, and the work to get and recycle it, where it need not be larger than
/// [`USUAL_PAGE`] for that.
const USUAL_FRAGMENTS: u32 = 8;

/// Two pages, in bytes. In larger ones a failed allocation would cost a ring too many buffers: the
/// kernel's `pp_alloc_fail` has one of 512 buffers fail, and expects to see a third of that.
const USUAL_PAGE: u32 = 8 << 10;

/// The size of a fragment that was made from a page, in bytes; no part of one has it.
// CAST: A page is small.
const WHOLE: u32 = PAGE_SIZE as u32;

/// A page that is being handed out in parts.
#[derive(Copy, Clone)]
struct Page {
    raw: NonZero<bindings::netmem_ref>,
    address: NonNull<u8>,
    /// Where the next fragment starts.
    offset: u32,
}

/// A pool of readable memory in fragments of one size, that one RX queue's device may write.
/// Otherwise as a [`PagePool`].
///
/// # Invariants
///
/// `size` is not [`WHOLE`]; `used` is a multiple of it that is not more than a page of
/// `pool`. Of `page`, one reference for each `size` bytes from `offset` to `used` is ours, at least one,
/// and nobody uses those bytes.
pub struct FragmentPool<T: Driver> {
    page: Option<Page>,
    pool: PagePool<T>,
    size: NonZero<u32>,
    /// Bytes of a page that are handed out.
    used: u32,
}

// SAFETY: A pool may be used by any one thread at a time, and the page is ours.
unsafe impl<T: Driver> Send for FragmentPool<T> {}

impl<T: Driver> FragmentPool<T> {
    /// Makes a pool for about `count` fragments of at least `size` bytes, mapped for `parent` if a device
    /// does DMA to them, which serves RX queue `queue`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or `EINVAL` if `size` is 0 or far too large.
    pub fn new(
        dev: Locked<'_, T>,
        parent: Option<&Device<Bound>>,
        queue: u32,
        size: u32,
        count: u32,
    ) -> Result<Self> {
        // What is behind a fragment may be an skb's shared info, which wants a cache line's start.
        let size = size
            .checked_next_multiple_of(bindings::NET_SHIM_CACHE_BYTES)
            .map(|size| match size {
                WHOLE => WHOLE + bindings::NET_SHIM_CACHE_BYTES,
                size => size,
            })
            .and_then(NonZero::new)
            .ok_or(EINVAL)?;
        let fragments = |count| size.get().checked_mul(count);
        let page_size = fragments(MIN_FRAGMENTS)
            .zip(fragments(USUAL_FRAGMENTS))
            .and_then(|(least, usual)| PageSize::at_least(least.max(usual.min(USUAL_PAGE))))
            .ok_or(EINVAL)?;
        let per_page = NonZero::new(page_size.bytes() / size).ok_or(EINVAL)?;
        let pool = PagePool::new(
            dev,
            parent,
            &page_pool::Config {
                size: count / per_page + 1,
                page_size,
                queue,
                allow_unreadable: false,
            },
        )?;

        // INVARIANT: No page yet, as many fragments as fit, and none as large as a whole page.
        Ok(Self {
            page: None,
            pool,
            size,
            used: size.get() * per_page.get(),
        })
    }

    /// The pool that the pages are from.
    #[inline]
    pub(crate) fn pages(&self) -> &PagePool<T> {
        &self.pool
    }

    /// See [`PagePool::attach`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn attach(&mut self, napi: &Disabled<'_, T>) -> Result {
        self.pool.attach(napi)
    }

    /// See [`PagePool::detach`].
    pub fn detach(&mut self, napi: &Disabled<'_, T>) {
        self.pool.detach(napi);
    }

    /// See [`PagePool::allocator`].
    #[inline]
    pub fn allocator(
        &mut self,
        context: &impl page_pool::Context,
    ) -> Option<FragmentAllocator<'_>> {
        let pages = self.pool.allocator(context)?;

        // INVARIANT: By those of the pool.
        Some(FragmentAllocator {
            pages,
            page: &mut self.page,
            size: self.size,
            used: self.used,
        })
    }
}

/// The right to allocate from a [`FragmentPool`].
///
/// # Invariants
///
/// Those of the pool whose fields these are.
pub struct FragmentAllocator<'a> {
    pages: Allocator<'a>,
    page: &'a mut Option<Page>,
    size: NonZero<u32>,
    used: u32,
}

impl FragmentAllocator<'_> {
    /// Takes a fragment; `None` if there is no memory.
    #[inline]
    pub fn alloc(&mut self) -> Option<Fragment> {
        let Page {
            raw,
            address,
            offset,
        } = match *self.page {
            Some(page) => page,
            None => self.next_page()?,
        };
        let next = offset + self.size.get();

        *self.page = (next != self.used).then_some(Page {
            raw,
            address,
            offset: next,
        });
        // INVARIANT: These bytes are handed out once, and `size` is not `WHOLE`.
        Some(Fragment {
            // SAFETY: One of our references goes to the fragment.
            netmem: unsafe { Netmem::from_raw(raw) },
            // SAFETY: By the type invariant there is room for a fragment at `offset`.
            address: unsafe { address.add(offset as usize) },
            offset,
            size: self.size.get(),
        })
    }

    // noinline: the usual way keeps the registers.
    #[cold]
    #[inline(never)]
    fn next_page(&mut self) -> Option<Page> {
        let (raw, address) = self.pages.alloc_shared(self.used / self.size)?;

        Some(Page {
            raw,
            address,
            offset: 0,
        })
    }
}

impl<T: Driver> Drop for FragmentPool<T> {
    fn drop(&mut self) {
        if let Some(page) = self.page.take() {
            // SAFETY: By the type invariant these references are ours. CAST: They are few.
            unsafe {
                bindings::net_shim_pp_put_fragments(
                    self.pool.as_raw(),
                    page.raw.get(),
                    ((self.used - page.offset) / self.size) as c_long,
                );
            }
        }
    }
}

/// A part of a readable page from a pool.
///
/// While it is posted the device may write to it at any time, so it is never borrowed as a slice:
/// what is in it is copied out.
///
/// # Invariants
///
/// `address` is valid for `size` bytes that no one else uses, at `offset` in `netmem`; if `size` is
/// [`WHOLE`], nobody uses any of that.
pub struct Fragment {
    netmem: Netmem,
    address: NonNull<u8>,
    offset: u32,
    size: u32,
}

// SAFETY: The fragment owns its bytes.
unsafe impl Send for Fragment {}

impl Fragment {
    /// Makes a page, or the first one of larger memory, into a fragment; returns device memory.
    pub fn from_page(netmem: Netmem) -> core::result::Result<Self, Netmem> {
        match netmem.address() {
            // INVARIANT: The memory is ours as a whole, and not less than a page.
            Some(address) => Ok(Self {
                netmem,
                address,
                offset: 0,
                size: WHOLE,
            }),
            None => Err(netmem),
        }
    }

    /// The address as the device sees it.
    #[inline]
    pub fn dma_address(&self) -> u64 {
        self.netmem.dma_address() + u64::from(self.offset)
    }

    /// The size in bytes.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The offset in its page, in bytes.
    #[inline]
    pub fn offset(&self) -> u32 {
        self.offset
    }

    /// The page it is part of.
    #[inline]
    pub fn netmem(&self) -> &Netmem {
        &self.netmem
    }

    /// Copies bytes from `start` on to `to`, as many as either has. Returns how many.
    ///
    /// What the device has not finished writing is any mixture of old and new.
    #[inline]
    pub fn read(&self, start: u32, to: &mut [u8]) -> usize {
        let start = start.min(self.size);
        let len = to.len().min((self.size - start) as usize);

        // SAFETY: In bounds on both sides, which do not overlap; memory of a page is initialised.
        unsafe {
            core::ptr::copy_nonoverlapping(
                self.address.as_ptr().add(start as usize),
                to.as_mut_ptr(),
                len,
            );
        }
        len
    }

    /// How many bytes of the frame that is in the first `len` bytes are headers
    /// (`eth_get_headlen()`).
    #[inline]
    pub fn header_len<T: Driver>(&self, dev: &NetDevice<T>, len: u32) -> u32 {
        // SAFETY: The device is valid, and so many bytes are in bounds.
        unsafe {
            bindings::eth_get_headlen(
                dev.as_raw(),
                self.address.as_ptr().cast(),
                len.min(self.size),
            )
        }
    }

    /// Where `len` bytes from `start` on are, if it has so many.
    pub(crate) fn room(&self, start: u32, len: u32) -> Option<NonNull<u8>> {
        let end = start.checked_add(len)?;

        // SAFETY: In bounds.
        (end <= self.size).then(|| unsafe { self.address.add(start as usize) })
    }

    /// See [`Netmem::sync_for_device`]; of all its bytes.
    pub fn sync_for_device(&self) {
        self.netmem.sync_for_device(self.offset, self.size);
    }

    /// The memory as a whole again, if it was made from a page.
    pub fn into_page(self) -> core::result::Result<Netmem, Self> {
        if self.size == WHOLE {
            Ok(self.netmem)
        } else {
            Err(self)
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    pub(crate) fn into_raw(self) -> bindings::netmem_ref {
        self.netmem.into_raw()
    }
}
