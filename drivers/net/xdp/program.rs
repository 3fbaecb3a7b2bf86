// SPDX-License-Identifier: GPL-2.0

//! Shares in XDP programs.

use core::ptr::NonNull;

use net_bindings as bindings;

/// A share in an XDP program.
///
/// A queue's receive path may use it as long as it has this; what the program refers to is
/// protected by the RCU read side that a NAPI poll is.
///
/// # Invariants
///
/// Holds a reference to the program.
pub struct Program(NonNull<bindings::bpf_prog>);

// SAFETY: Programs may be run and let go anywhere.
unsafe impl Send for Program {}
// SAFETY: As above.
unsafe impl Sync for Program {}

impl Program {
    /// # Safety
    ///
    /// `prog` must be null or a valid program.
    pub(super) unsafe fn share(prog: *mut bindings::bpf_prog) -> Option<Self> {
        let prog = NonNull::new(prog)?;

        // SAFETY: As this function requires.
        unsafe { bindings::net_shim_prog_inc(prog.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Some(Self(prog))
    }

    pub(super) fn as_raw(&self) -> *mut bindings::bpf_prog {
        self.0.as_ptr()
    }
}

impl Clone for Program {
    fn clone(&self) -> Self {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_prog_inc(self.0.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Self(self.0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: The reference is ours by the type invariant.
        unsafe { bindings::net_shim_prog_put(self.0.as_ptr()) };
    }
}
