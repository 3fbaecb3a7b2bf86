// SPDX-License-Identifier: MIT OR Apache-2.0

//! Netlink requests, and the kernel's refusals as typed errors.

mod message;
mod socket;

use netlink_bindings::nlctrl;
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::utils;
use rustix::net::netlink;

use self::socket::{Failure, Socket};
use crate::error::{Refusal, RequestError};
use crate::interface::Interface;

pub(crate) use self::message::HEADER;
#[cfg(test)]
pub(crate) use self::message::{Answer, answers};

/// Id of the family that knows the ids of all others (`GENL_ID_CTRL`).
const CONTROLLER: u16 = 16;

/// How often to ask for a list again that changed while it was read.
const ATTEMPTS: usize = 16;

/// What a request is about: for error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    /// Family and operation, as in `netdev bind-rx`.
    pub(crate) operation: &'static str,
    /// The interface; 0 if the request is about all of them.
    pub(crate) interface: Interface,
}

impl Subject {
    /// The answer lacks something.
    pub(crate) fn incomplete(self, what: impl ToString) -> RequestError {
        RequestError::BadAnswer {
            operation: self.operation,
            what: what.to_string(),
        }
    }
}

/// A client of generic netlink. What is bound through it lives as long as it.
#[derive(Debug, Default)]
pub(crate) struct Netlink {
    /// Opened with the first request.
    socket: Option<Socket>,
    /// The id of the family spoken last.
    family: Option<(&'static [u8], u16)>,
}

impl Netlink {
    /// A client of one family, whose answers come from somewhere else.
    #[cfg(test)]
    pub(crate) fn over(fd: std::os::fd::OwnedFd, family: &'static [u8], id: u16) -> Self {
        Self {
            socket: Some(Socket::over(fd)),
            family: Some((family, id)),
        }
    }

    /// Sends a request that has one reply.
    pub(crate) fn one<R: NetlinkRequest, T>(
        &mut self,
        subject: Subject,
        request: &R,
        decode: impl Fn(R::ReplyType<'_>) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let mut replies = self.list(subject, request, decode)?;
        replies.pop().ok_or_else(|| subject.incomplete("no reply"))
    }

    /// Sends a request that has any number of replies.
    pub(crate) fn list<R: NetlinkRequest, T>(
        &mut self,
        subject: Subject,
        request: &R,
        decode: impl Fn(R::ReplyType<'_>) -> Result<T, RequestError>,
    ) -> Result<Vec<T>, RequestError> {
        for _ in 0..ATTEMPTS {
            let family = self.family(subject, request)?;
            let socket = self.socket(subject)?;
            let mut replies = Vec::new();
            match socket.exchange(family, request.flags(), request.payload(), |payload| {
                replies.push(decode(R::decode_reply(payload)));
            }) {
                Ok(()) => return replies.into_iter().collect(),
                Err(Failure::Inconsistent) => {}
                Err(Failure::Io(error)) => return Err(RequestError::io(subject.operation, error)),
                Err(Failure::Refused(refusal)) => {
                    let lacks =
                        refusal.errno == libc::EOPNOTSUPP && self.lacks(subject, request)?;
                    return Err(explain(subject, refusal, lacks));
                }
            }
        }
        Err(subject.incomplete(format!(
            "the list changed during each of {ATTEMPTS} readings"
        )))
    }

    /// Sends a request whose reply, if it has one, says nothing new.
    pub(crate) fn acknowledged<R: NetlinkRequest>(
        &mut self,
        subject: Subject,
        request: &R,
    ) -> Result<(), RequestError> {
        self.list(subject, request, |_| Ok(())).map(drop)
    }

    fn socket(&mut self, subject: Subject) -> Result<&mut Socket, RequestError> {
        match &mut self.socket {
            Some(socket) => Ok(socket),
            none => {
                let socket = Socket::open(Some(netlink::GENERIC))
                    .map_err(|error| RequestError::io(subject.operation, error))?;
                Ok(none.insert(socket))
            }
        }
    }

    /// The id of the request's family.
    fn family<R: NetlinkRequest>(
        &mut self,
        subject: Subject,
        request: &R,
    ) -> Result<u16, RequestError> {
        let Protocol::Generic(name) = request.protocol() else {
            return Err(subject.incomplete("the family is not generic netlink"));
        };
        if let Some((_, id)) = self.family.filter(|(known, _)| *known == name) {
            return Ok(id);
        }
        let id = self.control(subject, name, |family| family.get_family_id().ok())?;
        let id = id.ok_or_else(|| subject.incomplete("a family without an id"))?;
        self.family = Some((name, id));
        Ok(id)
    }

    /// Whether the running kernel's family has no such operation (`genl_rcv_msg` answers
    /// `EOPNOTSUPP` to that, as drivers do to much else).
    fn lacks<R: NetlinkRequest>(
        &mut self,
        subject: Subject,
        request: &R,
    ) -> Result<bool, RequestError> {
        // The first byte of a generic netlink message is its command (struct genlmsghdr).
        let (Protocol::Generic(name), Some(&command)) =
            (request.protocol(), request.payload().first())
        else {
            return Ok(false);
        };
        let operations = self.operations(subject, name)?;
        Ok(!operations.contains(&u32::from(command)))
    }

    /// The numbers of the operations that the running kernel's family has.
    pub(crate) fn operations(
        &mut self,
        subject: Subject,
        family: &[u8],
    ) -> Result<Vec<u32>, RequestError> {
        self.control(subject, family, |family| {
            let operations = family.get_ops().into_iter().flatten();
            operations
                .filter_map(|operation| operation.get_id().ok())
                .collect()
        })
    }

    /// Asks what the kernel knows about a family.
    fn control<T>(
        &mut self,
        subject: Subject,
        name: &[u8],
        decode: impl Fn(nlctrl::IterableCtrlAttrs<'_>) -> T,
    ) -> Result<T, RequestError> {
        let mut request = nlctrl::Request::new().op_getfamily_do();
        request.encode().push_family_name_bytes(name);
        let mut answer = None;
        let socket = self.socket(subject)?;
        let outcome = socket.exchange(CONTROLLER, request.flags(), request.payload(), |payload| {
            answer = Some(decode(nlctrl::OpGetfamilyDo::decode_reply(payload)));
        });
        match outcome {
            Ok(()) => answer.ok_or_else(|| subject.incomplete("no reply")),
            Err(Failure::Refused(refusal)) if refusal.errno == libc::ENOENT => {
                Err(RequestError::KernelTooOld {
                    missing: format!("generic netlink family for {}", subject.operation),
                    requirement: requirement(subject.operation),
                    refusal,
                })
            }
            Err(Failure::Refused(refusal)) => Err(explain(subject, refusal, false)),
            Err(Failure::Io(error)) => Err(RequestError::io(subject.operation, error)),
            Err(Failure::Inconsistent) => Err(subject.incomplete("a list instead of a reply")),
        }
    }
}

/// Sends a request of rtnetlink that has one reply.
pub(crate) fn route<T>(
    subject: Subject,
    kind: u16,
    payload: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, RequestError>,
) -> Result<T, RequestError> {
    let io = |error| RequestError::io(subject.operation, error);
    let mut reply = None;
    let mut socket = Socket::open(None).map_err(io)?;
    let outcome = socket.exchange(kind, 0, payload, |payload| reply = Some(decode(payload)));
    match outcome {
        Ok(()) => reply.ok_or_else(|| subject.incomplete("no reply"))?,
        Err(Failure::Refused(refusal)) => Err(explain(subject, refusal, false)),
        Err(Failure::Io(error)) => Err(io(error)),
        Err(Failure::Inconsistent) => Err(subject.incomplete("a list instead of a reply")),
    }
}

/// The error for a refusal; `lacks` tells whether the kernel has no such operation at all.
fn explain(subject: Subject, refusal: Refusal, lacks: bool) -> RequestError {
    let Subject {
        operation,
        interface,
    } = subject;
    let interface = || interface.label();
    match refusal.errno {
        libc::EPERM => RequestError::NotPrivileged {
            operation,
            capability: "CAP_NET_ADMIN",
            refusal,
        },
        libc::ENODEV => RequestError::NoSuchInterface {
            interface: interface(),
            refusal,
        },
        libc::EOPNOTSUPP if lacks => RequestError::KernelTooOld {
            missing: operation.to_owned(),
            requirement: requirement(operation),
            refusal,
        },
        libc::EOPNOTSUPP => RequestError::Unsupported {
            interface: interface(),
            operation,
            refusal,
        },
        _ => RequestError::Refused {
            interface: interface(),
            operation,
            refusal,
        },
    }
}

/// The kernel that has an operation. What is not named here, all that have device memory TCP have.
fn requirement(operation: &str) -> &'static str {
    match operation {
        "netdev napi-set" => "Linux 6.13 or newer",
        "netdev bind-tx" => "Linux 6.16 or newer",
        "ethtool rss-set" | "ethtool rss-create-act" | "ethtool rss-delete-act" => {
            "Linux 6.17 or newer with CONFIG_ETHTOOL_NETLINK"
        }
        ethtool if ethtool.starts_with("ethtool ") => {
            "Linux 6.12 or newer with CONFIG_ETHTOOL_NETLINK"
        }
        _ => "Linux 6.12 or newer",
    }
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

    #[test]
    fn each_errno_that_means_one_thing_has_its_own_error() {
        let subject = Subject {
            operation: "netdev bind-tx",
            interface: Interface::from_index(u32::MAX),
        };
        let named = |errno, lacks| {
            let error = explain(subject, Refusal::from_errno(errno), lacks);
            assert_eq!(error.errno(), Some(errno), "{error:?} lost its errno");
            error
        };
        assert!(matches!(
            named(libc::EPERM, false),
            RequestError::NotPrivileged { .. }
        ));
        assert!(matches!(
            named(libc::ENODEV, false),
            RequestError::NoSuchInterface { .. }
        ));
        assert!(matches!(
            named(libc::EOPNOTSUPP, false),
            RequestError::Unsupported { .. }
        ));
        assert!(matches!(
            named(libc::EINVAL, false),
            RequestError::Refused { .. }
        ));
        let too_old = named(libc::EOPNOTSUPP, true);
        assert!(matches!(too_old, RequestError::KernelTooOld { .. }));
        assert!(
            too_old.to_string().contains("Linux 6.16"),
            "unclear message: {too_old}"
        );
    }

    #[test]
    fn an_operation_that_the_kernel_lacks_names_the_first_kernel_that_has_it() {
        for (operation, kernel) in [
            ("netdev bind-rx", "6.12"),
            ("netdev queue-get", "6.12"),
            ("netdev napi-set", "6.13"),
            ("netdev bind-tx", "6.16"),
            ("ethtool rss-set", "6.17"),
            ("ethtool rss-create-act", "6.17"),
            ("ethtool rss-delete-act", "6.17"),
            ("ethtool rss-get", "6.12"),
        ] {
            let said = requirement(operation);
            assert!(said.contains(kernel), "{operation}: {said}");
            let by_option = said.contains("CONFIG_ETHTOOL_NETLINK");
            assert_eq!(by_option, operation.starts_with("ethtool"), "{said}");
        }
    }

    #[test]
    fn a_family_that_does_not_exist_is_a_kernel_that_is_too_old() {
        let subject = Subject {
            operation: "netdev queue-get",
            interface: Interface::NONE,
        };
        let error = Netlink::default()
            .control(subject, b"no-such-family", |_| ())
            .expect_err("nobody registers that name");
        assert!(
            matches!(error, RequestError::KernelTooOld { .. }),
            "got {error:?}"
        );
    }
}
