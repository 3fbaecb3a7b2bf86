// SPDX-License-Identifier: MIT OR Apache-2.0

//! Marker instructions: they do nothing, but the counter in QEMU (qemu/plugin) recognizes them.

use protocol::measure::Edge;

/// Marks one end of a window. Without the counter this is an instruction that does nothing.
#[inline(always)]
pub(crate) fn mark(edge: Edge) {
    match edge {
        Edge::Start => nop::<0x7f4d_4b01>(),
        Edge::End => nop::<0x7f4d_4b02>(),
    }
}

/// Makes the counter read which other instructions are markers.
pub(crate) fn read_marks() {
    nop::<0x7f4d_4b03>();
}

/// `nopl TAG(%rax,%rax,1)`. The counter looks for exactly these bytes.
#[inline(always)]
fn nop<const TAG: u32>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: A no-operation that touches neither registers nor memory. The compiler takes it for
    // one that may touch memory, so nothing moves across it.
    unsafe {
        std::arch::asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00",
            ".long {tag}",
            tag = const TAG,
            options(nostack, preserves_flags),
        );
    }
}
