// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the running kernel's zero-copy receive can do.

use io_uring::{IoUring, cqueue, squeue};

use super::abi;
use super::queue::{descriptor, offered};
use crate::error::RequestError;

/// What the running kernel's zero-copy receive can do beyond receiving, as far as it tells
/// (`IORING_REGISTER_QUERY`, Linux 6.18).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// Receive buffers larger than a page (`ZCRX_FEATURE_RX_PAGE_SIZE`).
    pub rx_buf_len: bool,
    /// Counters of what was copied, and notifications (`ZCRX_FEATURE_EVENT`).
    pub events: bool,
    /// Registration without a device (`ZCRX_REG_NODEV`).
    pub no_device: bool,
    /// Having the kernel empty the refill ring (`ZCRX_CTRL_FLUSH_RQ`). Linux 6.19 has it and may not say so.
    pub flush: bool,
    /// More areas of a queue (`ZCRX_CTRL_ADD_AREA`).
    pub add_area: bool,
}

impl Features {
    /// Asks the running kernel, which takes no privilege. None if it has no zero-copy receive at
    /// all: it is older than Linux 6.15, or was built without `CONFIG_IO_URING_ZCRX`.
    ///
    /// # Errors
    ///
    /// [`RequestError::SystemCall`] if no io_uring can be set up.
    pub fn of_kernel() -> Result<Option<Self>, RequestError> {
        let ring: IoUring<squeue::Entry, cqueue::Entry32> = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(8)
            .map_err(|error| RequestError::io("set up an io_uring", error))?;
        Ok(offered(&ring).then(|| abi::features(descriptor(&ring))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_can_register_without_a_device_can_receive() {
        // What it is depends on the kernel; that it can be asked does not depend on privilege.
        match Features::of_kernel() {
            Ok(features) => assert!(features.is_none_or(|f| !f.add_area || f.no_device)),
            Err(error) => assert!(error.errno().is_some(), "{error}"),
        }
    }
}
