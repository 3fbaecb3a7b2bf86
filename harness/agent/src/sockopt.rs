// SPDX-License-Identifier: MIT OR Apache-2.0

//! Socket options that socket2 does not have.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Sets an option, whose value is a `T` (setsockopt(2)).
pub(crate) fn set<T>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: The kernel reads a `T` of the given length, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
