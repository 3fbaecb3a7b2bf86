// SPDX-License-Identifier: GPL-2.0

//! Frames that are sent without an skb.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

use kernel::prelude::*;
use net_bindings as bindings;

use crate::skb;

/// A frame that is on its way to be sent; dropped when it was, or cannot be: its memory is recycled,
/// from any context.
///
/// # Invariants
///
/// Owns the frame. If it has fragments, they are listed behind its buffer.
pub struct Frame(NonNull<bindings::xdp_frame>);

// SAFETY: A frame may be used by any one thread at a time.
unsafe impl Send for Frame {}

impl Frame {
    /// `None`, and the caller keeps it, if there is no frame, or it has fragments and none are allowed.
    ///
    /// # Safety
    ///
    /// `frame` must be null or a valid frame, which the caller gives away.
    pub(super) unsafe fn from_raw(
        frame: *mut bindings::xdp_frame,
        fragments: bool,
    ) -> Option<Self> {
        let frame = NonNull::new(frame)?;
        // INVARIANT: As this function requires.
        let frame = Self(frame);

        if frame.fragment_list().is_empty() || fragments {
            return Some(frame);
        }
        let _ = frame.into_raw();
        None
    }

    pub(super) fn into_raw(self) -> *mut bindings::xdp_frame {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Where the part before the fragments is, and how long it is.
    pub(crate) fn head(&self) -> (*mut c_void, u32) {
        // SAFETY: Valid by the type invariant.
        unsafe { ((*self.0.as_ptr()).data, (*self.0.as_ptr()).len) }
    }

    /// What follows it.
    pub(crate) fn fragment_list(&self) -> &[bindings::skb_frag] {
        let frame = self.0.as_ptr();

        // SAFETY: Valid by the type invariant; the list is where the core looks for it
        // (`xdp_get_shared_info_from_frame()`), and so many are initialised.
        unsafe {
            if (*frame).flags & bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS == 0 {
                return &[];
            }
            let start = (*frame).headroom as usize + core::mem::size_of::<bindings::xdp_frame>();
            let info = (*frame)
                .data
                .byte_sub(start)
                .byte_add(((*frame).frame_sz - skb::TAILROOM) as usize)
                .cast::<bindings::skb_shared_info>();

            core::slice::from_raw_parts((&raw const (*info).frags).cast(), (*info).nr_frags.into())
        }
    }

    /// The length in bytes, with fragments.
    #[inline]
    pub fn len(&self) -> u32 {
        let fragments = self.fragment_list().iter().map(|fragment| fragment.len);

        self.head().1 + fragments.sum::<u32>()
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
