// SPDX-License-Identifier: MIT OR Apache-2.0

//! The ioctl `SIOCETHTOOL` (include/uapi/linux/ethtool.h), for what the netlink family lacks.

use std::os::fd::AsRawFd;

use rustix::fd::OwnedFd;

use crate::bytes::{u32_at, u64_at};
use crate::error::{Refusal, RequestError};
use crate::interface::{Interface, any_socket};

/// include/uapi/linux/sockios.h
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
/// Bytes of a name, its zeros included.
const ETH_GSTRING_LEN: usize = 32;

/// The text in a field that zeros fill up.
pub(super) fn text(field: &[u8]) -> String {
    let end = field
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// An interface, and a socket to ask about it.
pub(super) struct Device {
    interface: Interface,
    name: String,
    socket: OwnedFd,
    operation: &'static str,
}

impl Device {
    /// Interface `interface`; errors speak of `operation`.
    pub(super) fn new(interface: Interface, operation: &'static str) -> Result<Self, RequestError> {
        Ok(Self {
            interface,
            name: interface.name()?,
            socket: any_socket()?,
            operation,
        })
    }

    /// How many strings a set has.
    pub(super) fn count(&self, set: u32) -> Result<usize, RequestError> {
        // struct ethtool_sset_info: u32 cmd, reserved, u64 sset_mask (one bit, in its low word on
        // either byte order's side), then one u32 for each set that is known.
        let mask = (1u64 << set).to_ne_bytes();
        let halves = [u32_at(&mask, 0), u32_at(&mask, 4)].map(Option::unwrap_or_default);
        let info = self.call(&[ETHTOOL_GSSET_INFO, 0, halves[0], halves[1]], 4)?;
        match (u64_at(&info, 8), u32_at(&info, 16)) {
            (Some(known), Some(count)) if known != 0 && count != 0 => Ok(count as usize),
            _ => Err(self.refused(libc::EOPNOTSUPP)),
        }
    }

    /// The strings of a set, `count` of them; none when the set has another number by now.
    pub(super) fn strings(
        &self,
        set: u32,
        count: usize,
    ) -> Result<Option<Vec<String>>, RequestError> {
        let len = u32::try_from(count).map_err(|_| self.refused(libc::EOVERFLOW))?;
        // struct ethtool_gstrings: u32 cmd, string_set, len, then the names. The kernel answers
        // with no entries when the number is not the one it has now.
        let strings = self.call(&[ETHTOOL_GSTRINGS, set, len], count * ETH_GSTRING_LEN)?;
        let names = strings[12..].chunks_exact(ETH_GSTRING_LEN).take(count);
        Ok((u32_at(&strings, 8) == Some(len)).then(|| names.map(text).collect()))
    }

    /// Runs the command whose struct starts with the words `head`, and for whose answer there is
    /// `room` bytes behind them.
    pub(super) fn call(&self, head: &[u32], room: usize) -> Result<Vec<u8>, RequestError> {
        let mut command: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
        // Twice the room: kernels before the check of the number (net/ethtool/ioctl.c) write as
        // many as the driver has when they run, which is more if somebody just gave it more queues.
        command.resize(command.len() + 2 * room, 0);

        // SAFETY: `ifreq` is plain old data, for which zeros are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let (_, name) = request
            .ifr_name
            .split_last_mut()
            .ok_or_else(|| self.refused(libc::EINVAL))?;
        for (to, from) in name.iter_mut().zip(self.name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        // SAFETY: `request` names the interface and points to `command`, which outlives the call.
        // The kernel writes the command's head and as many entries as the head asks for, for which
        // there is room; it copies bytewise, so that alignment does not matter.
        let status = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if status < 0 {
            let error = std::io::Error::last_os_error();
            return Err(self.refused(error.raw_os_error().unwrap_or(libc::EIO)));
        }
        Ok(command)
    }

    pub(super) fn refused(&self, errno: i32) -> RequestError {
        let interface = self.interface.label();
        let refusal = Refusal::from_errno(errno);
        let operation = self.operation;
        match errno {
            libc::EOPNOTSUPP => RequestError::Unsupported {
                interface,
                operation,
                refusal,
            },
            libc::ENODEV => RequestError::NoSuchInterface { interface, refusal },
            _ => RequestError::Refused {
                interface,
                operation,
                refusal,
            },
        }
    }
}
