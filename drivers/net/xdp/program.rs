// SPDX-License-Identifier: GPL-2.0

//! References to XDP programs.

use core::ptr::NonNull;

use net_bindings as bindings;

/// A reference to an XDP program.
///
/// A queue's receive path may use it as long as it has this; what the program refers to is
/// protected by the RCU read side that a NAPI poll is.
///
/// # Invariants
///
/// Holds a reference to `prog`, which the core has attached to `dev`.
pub struct Program {
    prog: NonNull<bindings::bpf_prog>,
    /// Only compared.
    dev: *const bindings::net_device,
}

// SAFETY: Programs may be run and let go anywhere.
unsafe impl Send for Program {}
// SAFETY: As above.
unsafe impl Sync for Program {}

impl Program {
    /// # Safety
    ///
    /// `prog` must be null or a valid program, which is being attached to `dev`.
    pub(super) unsafe fn share(
        prog: *mut bindings::bpf_prog,
        dev: *const bindings::net_device,
    ) -> Option<Self> {
        let prog = NonNull::new(prog)?;

        // SAFETY: As this function requires.
        unsafe { bindings::net_shim_prog_inc(prog.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Some(Self { prog, dev })
    }

    /// Whether this is a program of `dev`: it takes the metadata of a frame for what this device's
    /// driver says.
    #[inline]
    pub(super) fn belongs_to(&self, dev: *const bindings::net_device) -> bool {
        core::ptr::eq(self.dev, dev)
    }

    /// Returns whether it knows of frames in fragments (`xdp.frags`).
    pub fn has_fragments(&self) -> bool {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_prog_has_frags(self.as_raw()) }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::bpf_prog {
        self.prog.as_ptr()
    }
}

impl Clone for Program {
    fn clone(&self) -> Self {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::net_shim_prog_inc(self.prog.as_ptr()) };
        // INVARIANT: The reference was just taken.
        Self {
            prog: self.prog,
            dev: self.dev,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: The reference is ours by the type invariant.
        unsafe { bindings::net_shim_prog_put(self.prog.as_ptr()) };
    }
}
