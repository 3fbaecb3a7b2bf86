// SPDX-License-Identifier: MIT OR Apache-2.0

//! Locks of this program.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock even if a thread panicked while holding it: then the guest is going down anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
