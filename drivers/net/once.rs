// SPDX-License-Identifier: GPL-2.0

//! Fields of C structures that others may access at the same time: what C's static inlines do with
//! `READ_ONCE()`, `WRITE_ONCE()` and `test_bit()`.
//!
//! C defines all three as volatile accesses; `kernel::sync::atomic` has them as functions of C,
//! which are calls where those are not inlined.
//!
//! C header: `include/asm-generic/rwonce.h`

use kernel::ffi::c_ulong;

/// `READ_ONCE()`.
///
/// # Safety
///
/// `field` must be valid, of a word or less, and only ever be written by one store.
#[inline]
pub(crate) unsafe fn read_once<F: Copy>(field: *const F) -> F {
    // SAFETY: As this function requires.
    unsafe { field.read_volatile() }
}

/// `WRITE_ONCE()`.
///
/// # Safety
///
/// As for [`read_once`].
#[inline]
pub(crate) unsafe fn write_once<F: Copy>(field: *mut F, value: F) {
    // SAFETY: As this function requires.
    unsafe { field.write_volatile(value) };
}

/// `test_bit()`, for a bit of the first word.
///
/// # Safety
///
/// `word` must be valid.
#[inline]
pub(crate) unsafe fn test_bit(bit: u32, word: *const c_ulong) -> bool {
    // SAFETY: As this function requires; bits are set and cleared atomically.
    unsafe { read_once(word) & (1 << bit) != 0 }
}
