// SPDX-License-Identifier: MIT OR Apache-2.0

//! The page of a work queue's own registers, mapped.

use std::{
    ffi::c_void,
    os::fd::AsFd,
    ptr::{self, NonNull},
    sync::atomic::{Ordering, fence},
};

use engine::regs::{HEAD, PORTAL_SIZE, TAIL};
use rustix::{
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

/// The portal of a work queue.
///
/// Invariant: a mapping of [`PORTAL_SIZE`] bytes, which is there as long as this is.
#[derive(Debug)]
pub(crate) struct Portal(NonNull<c_void>);

// SAFETY: A mapping belongs to all threads of the process.
unsafe impl Send for Portal {}

impl Portal {
    /// Maps that of a node that is open.
    pub(crate) fn map(node: &impl AsFd) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: A new mapping, at an address that is free.
        let page = unsafe {
            mmap(
                ptr::null_mut(),
                PORTAL_SIZE as usize,
                access,
                MapFlags::SHARED,
                node,
                0,
            )
        }?;
        // Nobody maps at address 0.
        let this = NonNull::new(page).map(Self).ok_or(Errno::NOMEM)?;
        // The kernel maps what is touched: so no submission has to wait for it.
        // SAFETY: By the invariant the register is mapped.
        unsafe { this.register(HEAD).read_volatile() };
        Ok(this)
    }

    /// A register of 32 bits.
    fn register(&self, offset: u32) -> *mut u32 {
        // SAFETY: By the invariant all of them are mapped.
        unsafe { self.0.byte_add(offset as usize) }.cast().as_ptr()
    }

    /// Tells the device how many descriptors there have been, all of which are in memory by then.
    pub(crate) fn ring(&self, tail: u32) {
        fence(Ordering::Release);
        // SAFETY: By the invariant the register is mapped.
        unsafe { self.register(TAIL).write_volatile(tail) };
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        // SAFETY: By the invariant, and nothing refers to it any more.
        let result = unsafe { munmap(self.0.as_ptr(), PORTAL_SIZE as usize) };
        debug_assert!(result.is_ok(), "{result:?}");
    }
}
