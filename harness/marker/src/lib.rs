// SPDX-License-Identifier: MIT OR Apache-2.0

//! Marks a window of a program: `nobounce exec --counted` says what the processor did within it.
//!
//! A marker is an instruction that does nothing, so that a program may keep it, on any machine. The
//! counter in QEMU (`qemu/plugin`) recognizes it. C has the same in `include/nobounce.h`.
//!
//! ```
//! # fn receive() {}
//! marker::start();
//! receive();
//! marker::end();
//! ```

#![no_std]

/// Starts a window: counters are 0 now. Within a window, starts it anew.
#[inline(always)]
pub fn start() {
    nop::<0x7f4d_4b01>();
}

/// Ends the window, and has its counts written. Without a window it does nothing.
#[inline(always)]
pub fn end() {
    nop::<0x7f4d_4b02>();
}

/// Makes the counter read which other instructions are markers.
#[inline(always)]
pub fn read_marks() {
    nop::<0x7f4d_4b03>();
}

/// `nopl TAG(%rax,%rax,1)`. The counter looks for exactly these bytes.
#[inline(always)]
fn nop<const TAG: u32>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: A no-operation that touches neither registers nor memory. The compiler takes it for
    // one that may touch memory, so nothing moves across it.
    unsafe {
        core::arch::asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00",
            ".long {tag}",
            tag = const TAG,
            options(nostack, preserves_flags),
        );
    }
}
