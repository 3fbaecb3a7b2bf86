// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's answer to a request that it refused.

use std::fmt;
use std::io;

/// The kernel's answer to a request that it refused.
///
/// `extack` and `bad_attribute` come from the netlink extended acknowledgement (`struct
/// netlink_ext_ack`); an ioctl or a socket call has neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The errno, positive (`EINVAL` is 22).
    pub errno: i32,
    /// The text of `NLMSGERR_ATTR_MSG`.
    pub extack: Option<String>,
    /// `NLMSGERR_ATTR_OFFS`: where the attribute that the kernel objected to starts, in bytes from
    /// the start of the netlink message (its header included).
    pub bad_attribute: Option<usize>,
}

impl Refusal {
    /// A refusal that consists of an errno only.
    #[must_use]
    pub fn from_errno(errno: i32) -> Self {
        Self {
            errno,
            extack: None,
            bad_attribute: None,
        }
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::from_errno(errno.raw_os_error())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", io::Error::from_raw_os_error(self.errno))?;
        if let Some(text) = &self.extack {
            write!(f, ", kernel: \"{text}\"")?;
        }
        Ok(())
    }
}
