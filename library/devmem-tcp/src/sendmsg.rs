// SPDX-License-Identifier: MIT OR Apache-2.0

//! One `sendmsg(MSG_ZEROCOPY)` from a dma-buf, and what its refusals mean.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::{Refusal, SendError, SystemCall};

/// Sends `len` bytes at `offset` of a dma-buf, which `control` names; returns how many the kernel
/// accepted.
pub(crate) fn send_message(
    socket: BorrowedFd<'_>,
    control: &[u8],
    offset: u64,
    len: usize,
    flags: i32,
) -> io::Result<usize> {
    let offset = usize::try_from(offset).map_err(io::Error::other)?;
    // For a dma-buf the kernel takes the "address" as an offset into it and never dereferences
    // it.
    let mut piece = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(offset),
        iov_len: len,
    };
    // SAFETY: `msghdr` is plain old data, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_ptr().cast_mut().cast();
    message.msg_controllen = control.len() as _;
    // SAFETY: `message` points to one iovec and to a control buffer, which outlive the call and
    // which sendmsg only reads. Should TCP not know SCM_DEVMEM_DMABUF it refuses the
    // message (EINVAL) before it looks at the iovec; what sends otherwise could only give
    // EFAULT or send bytes of this process, never write to them.
    let sent = unsafe {
        libc::sendmsg(
            socket.as_raw_fd(),
            &raw const message,
            libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL | flags,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// What an errno of `sendmsg` with `SCM_DEVMEM_DMABUF` means.
pub(crate) fn refused(error: io::Error, in_flight: usize) -> SendError {
    let refusal = |errno| Refusal::from_errno(errno);
    match error.raw_os_error() {
        Some(libc::EAGAIN) => SendError::WouldBlock,
        Some(libc::ENOBUFS) => SendError::TooManyInFlight {
            in_flight,
            refusal: refusal(libc::ENOBUFS),
        },
        Some(errno @ (libc::ENODEV | libc::EHOSTUNREACH)) => SendError::RouteElsewhere {
            refusal: refusal(errno),
        },
        Some(libc::EINVAL) => SendError::NotSendable {
            refusal: refusal(libc::EINVAL),
        },
        _ => SystemCall::new("sendmsg from a dma-buf", error).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_errno_of_a_refused_send_has_its_own_error() {
        let meaning = |errno| refused(io::Error::from_raw_os_error(errno), 3);
        assert!(matches!(meaning(libc::EAGAIN), SendError::WouldBlock));
        assert!(matches!(
            meaning(libc::ENOBUFS),
            SendError::TooManyInFlight { in_flight: 3, .. }
        ));
        assert!(matches!(
            meaning(libc::ENODEV),
            SendError::RouteElsewhere { .. }
        ));
        assert!(matches!(
            meaning(libc::EINVAL),
            SendError::NotSendable { .. }
        ));
        assert_eq!(meaning(libc::EPIPE).errno(), Some(libc::EPIPE));
    }
}
