// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts the agent's errors to those of the protocol.

use std::io;

use netlink_socket2::ReplyError;
use protocol::Failure;
use rustix::io::Errno;

/// The whole chain of causes as text, and the error number of the first one that has any.
pub(crate) fn from_error(error: &anyhow::Error) -> Failure {
    Failure {
        errno: error.chain().find_map(errno),
        message: format!("{error:#}"),
    }
}

/// The failure of a system call.
pub(crate) fn from_io(what: &str, error: &io::Error) -> Failure {
    Failure {
        errno: error.raw_os_error(),
        message: format!("{what}: {error}"),
    }
}

fn errno(cause: &(dyn std::error::Error + 'static)) -> Option<i32> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        error.raw_os_error()
    } else if let Some(error) = cause.downcast_ref::<Errno>() {
        Some(error.raw_os_error())
    } else if let Some(error) = cause.downcast_ref::<ReplyError>() {
        error.as_io_error().raw_os_error()
    } else {
        of_our_crates(cause)
    }
}

/// The errno of an error of our own crates, which know it.
fn of_our_crates(cause: &(dyn std::error::Error + 'static)) -> Option<i32> {
    macro_rules! first {
        ($($type:ty),*) => {
            None$(.or_else(|| cause.downcast_ref::<$type>().and_then(<$type>::errno)))*
        };
    }
    first!(
        devmem_tcp::RequestError,
        devmem_tcp::BindError,
        devmem_tcp::MemoryError,
        devmem_tcp::ReceiveError,
        devmem_tcp::SendError,
        devmem_tcp::ZcrxError,
        ivshmem_mem::Error,
        gather::Error
    )
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_errno_is_found_below_the_context() {
        let error = Err::<(), _>(io::Error::from_raw_os_error(libc::EBUSY))
            .context("unloading rigb")
            .context("request UnloadModule")
            .unwrap_err();
        let failure = from_error(&error);
        assert_eq!(failure.errno, Some(libc::EBUSY));
        assert!(
            failure
                .message
                .starts_with("request UnloadModule: unloading rigb: ")
        );
    }

    #[test]
    fn an_error_that_is_not_the_kernels_has_no_errno() {
        assert_eq!(from_error(&anyhow::anyhow!("no such job")).errno, None);
    }
}
