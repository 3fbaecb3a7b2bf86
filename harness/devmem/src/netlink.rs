// SPDX-License-Identifier: MIT OR Apache-2.0

//! One generic netlink socket, and the kernel's refusals as typed errors.

use std::io;

use netlink_bindings::nlctrl;
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::utils;
use netlink_socket2::{NetlinkSocket, ReplyError};

use crate::error::{Error, Refusal, Result};
use crate::interface;

/// What a request is about: for error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    /// Family and operation, as in `netdev bind-rx`.
    pub(crate) operation: &'static str,
    /// The interface; 0 if the request is about all of them.
    pub(crate) ifindex: u32,
}

/// A socket that speaks generic netlink. What is bound through it lives as long as it.
pub(crate) struct Netlink {
    socket: NetlinkSocket,
}

impl std::fmt::Debug for Netlink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Netlink").finish_non_exhaustive()
    }
}

impl Netlink {
    pub(crate) fn new() -> Self {
        Self {
            socket: NetlinkSocket::new(),
        }
    }

    /// Sends a request that has exactly one reply.
    pub(crate) fn one<R, T>(
        &mut self,
        subject: Subject,
        request: &R,
        decode: impl FnOnce(R::ReplyType<'_>) -> Result<T>,
    ) -> Result<T>
    where
        R: NetlinkRequest,
    {
        let outcome = match self.socket.request(request) {
            Ok(mut reply) => match reply.recv_one() {
                Ok(attributes) => return decode(attributes),
                Err(error) => Failure::Reply(refusal_of(error)),
            },
            Err(error) => Failure::Request(error),
        };
        Err(self.explain(subject, request, outcome))
    }

    /// Sends a request that has any number of replies, and hands each to `each`.
    pub(crate) fn every<R>(
        &mut self,
        subject: Subject,
        request: &R,
        mut each: impl FnMut(R::ReplyType<'_>) -> Result<()>,
    ) -> Result<()>
    where
        R: NetlinkRequest,
    {
        let outcome = match self.socket.request(request) {
            Ok(mut reply) => loop {
                match reply.recv() {
                    None => return Ok(()),
                    Some(Ok(attributes)) => each(attributes)?,
                    Some(Err(error)) => break Failure::Reply(refusal_of(error)),
                }
            },
            Err(error) => Failure::Request(error),
        };
        Err(self.explain(subject, request, outcome))
    }

    /// Sends a request whose reply, if it has one, says nothing new.
    pub(crate) fn acknowledged<R>(&mut self, subject: Subject, request: &R) -> Result<()>
    where
        R: NetlinkRequest,
    {
        self.every(subject, request, |_| Ok(()))
    }

    fn explain<R: NetlinkRequest>(
        &mut self,
        subject: Subject,
        request: &R,
        failure: Failure,
    ) -> Error {
        let Subject { operation, ifindex } = subject;
        let refusal = match failure {
            // The family is looked up before the request is sent: ENOENT here is about the family,
            // not about the request.
            Failure::Request(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                return Error::KernelTooOld {
                    missing: format!("generic netlink family for {operation}"),
                    requirement: requirement(operation),
                    refusal: Refusal::from_errno(libc::ENOENT),
                };
            }
            Failure::Request(error) | Failure::Reply(Err(error)) => {
                return Error::io(operation, error);
            }
            Failure::Reply(Ok(refusal)) => refusal,
        };
        match refusal.errno {
            libc::EPERM => Error::NotPrivileged {
                operation,
                capability: "CAP_NET_ADMIN",
                refusal,
            },
            libc::ENODEV => Error::NoSuchInterface {
                interface: interface::label(ifindex),
                refusal,
            },
            libc::EOPNOTSUPP if self.lacks(request) => Error::KernelTooOld {
                missing: operation.to_owned(),
                requirement: requirement(operation),
                refusal,
            },
            libc::EOPNOTSUPP => Error::Unsupported {
                interface: interface::label(ifindex),
                operation,
                refusal,
            },
            _ => Error::Refused {
                interface: interface::label(ifindex),
                operation,
                refusal,
            },
        }
    }

    /// Whether the running kernel's family has no such operation (`genl_rcv_msg` answers
    /// `EOPNOTSUPP` to that, as drivers do to much else).
    fn lacks<R: NetlinkRequest>(&mut self, request: &R) -> bool {
        // The first byte of a generic netlink message is its command (struct genlmsghdr).
        let (Protocol::Generic(family), Some(&command)) =
            (request.protocol(), request.payload().first())
        else {
            return false;
        };
        let mut lookup = nlctrl::Request::new().op_getfamily_do();
        lookup.encode().push_family_name_bytes(family);
        let Ok(mut reply) = self.socket.request(&lookup) else {
            return false;
        };
        let Ok(attributes) = reply.recv_one() else {
            return false;
        };
        let Ok(mut operations) = attributes.get_ops() else {
            return false;
        };
        !operations.any(|operation| operation.get_id() == Ok(u32::from(command)))
    }
}

/// The kernel that has an operation.
fn requirement(operation: &str) -> &'static str {
    match operation {
        "netdev bind-tx" => "Linux 6.16 or newer",
        "ethtool rss-set" => "Linux 6.17 or newer with CONFIG_ETHTOOL_NETLINK",
        netdev if netdev.starts_with("netdev ") => "Linux 6.12 or newer",
        _ => "Linux 5.6 or newer with CONFIG_ETHTOOL_NETLINK",
    }
}

enum Failure {
    /// The request could not be sent, or its family is not there.
    Request(io::Error),
    /// The kernel refused it, or the socket failed while the reply was read.
    Reply(std::result::Result<Refusal, io::Error>),
}

fn refusal_of(error: ReplyError) -> std::result::Result<Refusal, io::Error> {
    let Some(errno) = error.as_io_error().raw_os_error() else {
        return Err(error.into());
    };
    let attributes = error.ext_ack();
    let extack = attributes
        .as_ref()
        .and_then(|attributes| attributes.get_msg().ok())
        .map(|text| text.to_string_lossy().into_owned());
    let bad_attribute = attributes
        .and_then(|attributes| attributes.get_offset().ok())
        .and_then(|offset| usize::try_from(offset).ok());
    Ok(Refusal {
        errno,
        extack,
        bad_attribute,
    })
}

/// Decodes an attribute of the YNL type `uint`: 4 bytes if the value fits, else 8 (`nla_put_uint`).
///
/// The generated getters read 4 bytes only and so cut larger values; see the crate documentation.
pub(crate) fn uint(attributes: &[u8], kind: u16) -> Option<u64> {
    let value = utils::find_attr(attributes, kind)?;
    match value.len() {
        4 => utils::parse_u32(value).map(u64::from),
        8 => utils::parse_u64(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uint_attribute_is_read_whole_in_both_of_its_widths() {
        let mut attributes = Vec::new();
        utils::push_header(&mut attributes, 8, 4);
        attributes.extend(7u32.to_ne_bytes());
        utils::push_header(&mut attributes, 9, 8);
        attributes.extend(0x1_0000_0002u64.to_ne_bytes());
        assert_eq!(uint(&attributes, 8), Some(7));
        assert_eq!(uint(&attributes, 9), Some(0x1_0000_0002));
        assert_eq!(uint(&attributes, 10), None);
    }
}
