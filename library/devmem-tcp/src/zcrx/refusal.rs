// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which precondition of a registration failed. io_uring passes on an errno and no words
//! (io_register_zcrx in io_uring/zcrx.c), so the interface is asked about itself.

use rustix::param::page_size;

use super::OPERATION;
use crate::error::{BindError, Refusal, RequestError};
use crate::interface::Interface;
use crate::netdev;

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Interface and queue; none without a device.
    pub(super) queue: Option<(Interface, u32)>,
    pub(super) rx_buf_len: Option<u32>,
    pub(super) len: usize,
    pub(super) dmabuf: bool,
}

/// Names the precondition behind the errno of a registration.
///
/// `offered` says whether the running kernel has zero-copy receive at all.
pub(super) fn name(refusal: Refusal, asked: Asked, offered: bool) -> BindError {
    let interface = || match asked.queue {
        Some((interface, _)) => interface.label(),
        None => "no device".to_owned(),
    };
    let rx_page_size = asked.rx_buf_len.unwrap_or_default();
    if !offered {
        return RequestError::KernelTooOld {
            missing: OPERATION.to_owned(),
            requirement: "Linux 6.15 or newer with CONFIG_IO_URING_ZCRX",
            refusal,
        }
        .into();
    }
    if refusal.errno == libc::EPERM {
        return RequestError::NotPrivileged {
            operation: OPERATION,
            capability: "CAP_NET_ADMIN",
            refusal,
        }
        .into();
    }
    let gone = |(interface, _): (Interface, u32)| interface.name().is_err();
    if refusal.errno == libc::ENODEV && asked.queue.is_some_and(gone) {
        return RequestError::NoSuchInterface {
            interface: interface(),
            refusal,
        }
        .into();
    }
    let state = |(interface, queue)| netdev::precondition(&refusal, interface, queue);
    if let Some(error) = asked.queue.and_then(state) {
        return error;
    }
    match refusal.errno {
        libc::EXDEV if asked.dmabuf => BindError::NoPeerToPeer {
            interface: interface(),
            refusal,
        },
        // Attaching or mapping (io_import_dmabuf).
        libc::ENODEV | libc::EIO if asked.dmabuf => BindError::DmaBufNotMapped {
            interface: interface(),
            refusal,
        },
        libc::ERANGE => BindError::BuffersTooLarge {
            rx_buf_len: asked.rx_buf_len.unwrap_or(page_size() as u32),
            refusal,
        },
        libc::EINVAL | libc::EOPNOTSUPP if asked.rx_buf_len.is_some() => {
            BindError::PageSizeUnsupported {
                interface: interface(),
                rx_page_size,
                refusal,
            }
        }
        libc::ENOMEM if !asked.dmabuf => BindError::AreaNotLocked {
            len: asked.len,
            refusal,
        },
        libc::EOPNOTSUPP => RequestError::Unsupported {
            interface: interface(),
            operation: OPERATION,
            refusal,
        }
        .into(),
        _ => RequestError::Refused {
            interface: interface(),
            operation: OPERATION,
            refusal,
        }
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index that no interface has: it says nothing about itself.
    const ASKED: Asked = Asked {
        queue: Some((Interface::from_index(u32::MAX), 1)),
        rx_buf_len: None,
        len: 1 << 20,
        dmabuf: false,
    };

    fn variant(errno: i32, asked: Asked, offered: bool) -> String {
        let error = name(Refusal::from_errno(errno), asked, offered);
        assert_eq!(error.errno(), Some(errno), "the errno is lost: {error:?}");
        let debug = format!("{error:?}");
        debug
            .trim_start_matches("Request(")
            .split([' ', '('])
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    #[test]
    fn each_errno_names_its_precondition() {
        let large = Asked {
            rx_buf_len: Some(16384),
            ..ASKED
        };
        let dmabuf = Asked {
            dmabuf: true,
            ..ASKED
        };
        let table = [
            (libc::EINVAL, ASKED, false, "KernelTooOld"),
            (libc::EPERM, ASKED, true, "NotPrivileged"),
            (libc::ENODEV, ASKED, true, "NoSuchInterface"),
            (libc::ERANGE, large, true, "BuffersTooLarge"),
            (libc::EINVAL, large, true, "PageSizeUnsupported"),
            (libc::EOPNOTSUPP, large, true, "PageSizeUnsupported"),
            (libc::EOPNOTSUPP, ASKED, true, "Unsupported"),
            (libc::EIO, dmabuf, true, "DmaBufNotMapped"),
            (libc::EXDEV, dmabuf, true, "NoPeerToPeer"),
            (libc::ENOMEM, ASKED, true, "AreaNotLocked"),
            (libc::ENOMEM, dmabuf, true, "Refused"),
            (libc::EINVAL, ASKED, true, "Refused"),
        ];
        for (errno, asked, offered, expected) in table {
            assert_eq!(
                variant(errno, asked, offered),
                expected,
                "for errno {errno} and {asked:?}"
            );
        }
    }
}
