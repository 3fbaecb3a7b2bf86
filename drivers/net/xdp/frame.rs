// SPDX-License-Identifier: GPL-2.0

//! Frames that are sent without an skb.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

use kernel::prelude::*;
use net_bindings as bindings;

/// A linear frame that is on its way to be sent; dropped when it was, or cannot be: its memory is
/// recycled, from any context.
///
/// # Invariants
///
/// Owns the frame, which has no fragments.
pub struct Frame(NonNull<bindings::xdp_frame>);

// SAFETY: A frame may be used by any one thread at a time.
unsafe impl Send for Frame {}

impl Frame {
    /// `None`, and the caller keeps it, if there is no frame or it has fragments.
    ///
    /// # Safety
    ///
    /// `frame` must be null or a valid frame, which the caller gives away.
    pub(super) unsafe fn from_raw(frame: *mut bindings::xdp_frame) -> Option<Self> {
        let frame = NonNull::new(frame)?;
        // SAFETY: As this function requires.
        let flags = unsafe { (*frame.as_ptr()).flags };

        // INVARIANT: As this function requires, and as is checked.
        (flags & bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS == 0).then_some(Self(frame))
    }

    pub(super) fn into_raw(self) -> *mut bindings::xdp_frame {
        ManuallyDrop::new(self).0.as_ptr()
    }

    pub(crate) fn data(&self) -> *mut c_void {
        // SAFETY: Valid by the type invariant.
        unsafe { (*self.0.as_ptr()).data }
    }

    /// The length in bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        // SAFETY: Valid by the type invariant.
        unsafe { (*self.0.as_ptr()).len }
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: Owned by the type invariant.
        unsafe { bindings::net_shim_xdp_return_frame(self.0.as_ptr()) };
    }
}
