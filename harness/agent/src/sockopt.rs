// SPDX-License-Identifier: MIT OR Apache-2.0

//! Socket options that socket2 does not have.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Sets an option, whose value is a `T` (setsockopt(2)).
pub(crate) fn set<T: ?Sized>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: The kernel reads `value`, of the given length, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gets an option, whose value is a `T` (getsockopt(2)).
///
/// # Safety
///
/// `T` must consist of integers, for which any value is valid.
pub(crate) unsafe fn get<T>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    // SAFETY: Zeros are valid, as this function requires.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: The kernel writes at most `length` bytes to `value`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}
