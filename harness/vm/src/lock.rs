// SPDX-License-Identifier: MIT OR Apache-2.0

//! Locks of this crate.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock even if a thread panicked while holding it: who waits for that thread sees the panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
