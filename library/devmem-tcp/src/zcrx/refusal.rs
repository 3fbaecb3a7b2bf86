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

/// What the running kernel has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    /// Zero-copy receive at all.
    pub(super) receive: bool,
    /// Areas of dma-bufs.
    pub(super) dmabuf: bool,
    /// Buffers larger than a page.
    pub(super) rx_buf_len: bool,
}

/// Names the precondition behind the errno of a registration.
pub(super) fn name(refusal: Refusal, asked: Asked, running: Running) -> BindError {
    let interface = || match asked.queue {
        Some((interface, _)) => interface.label(),
        None => "no device".to_owned(),
    };
    let rx_page_size = asked.rx_buf_len.unwrap_or_default();
    // What a kernel doesn't know it refuses so, before it looks at anything else.
    let unknown = refusal.errno == libc::EINVAL;
    let lacks = [
        (
            !running.receive,
            OPERATION,
            "Linux 6.15 or newer with CONFIG_IO_URING_ZCRX",
        ),
        (
            unknown && asked.dmabuf && !running.dmabuf,
            "io_uring zero-copy receive into a dma-buf",
            "Linux 6.16 or newer",
        ),
        (
            unknown && asked.rx_buf_len.is_some() && !running.rx_buf_len,
            "buffers of other sizes for io_uring zero-copy receive",
            "ZCRX_FEATURE_RX_PAGE_SIZE, as Linux 7.3 has it",
        ),
    ];
    if let Some((_, missing, requirement)) = lacks.into_iter().find(|(lacks, ..)| *lacks) {
        return RequestError::KernelTooOld {
            missing: missing.to_owned(),
            requirement,
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

    const ALL: Running = Running {
        receive: true,
        dmabuf: true,
        rx_buf_len: true,
    };

    fn variant(errno: i32, asked: Asked, running: Running) -> String {
        let error = name(Refusal::from_errno(errno), asked, running);
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
        let none = Running {
            receive: false,
            ..ALL
        };
        let first = Running {
            dmabuf: false,
            rx_buf_len: false,
            ..ALL
        };
        let table = [
            (libc::EINVAL, ASKED, none, "KernelTooOld"),
            (libc::EINVAL, large, first, "KernelTooOld"),
            (libc::EINVAL, dmabuf, first, "KernelTooOld"),
            (libc::EINVAL, ASKED, first, "Refused"),
            (libc::EPERM, large, first, "NotPrivileged"),
            (libc::ERANGE, large, first, "BuffersTooLarge"),
            (libc::EIO, dmabuf, first, "DmaBufNotMapped"),
            (libc::EPERM, ASKED, ALL, "NotPrivileged"),
            (libc::ENODEV, ASKED, ALL, "NoSuchInterface"),
            (libc::ERANGE, large, ALL, "BuffersTooLarge"),
            (libc::EINVAL, large, ALL, "PageSizeUnsupported"),
            (libc::EOPNOTSUPP, large, ALL, "PageSizeUnsupported"),
            (libc::EOPNOTSUPP, ASKED, ALL, "Unsupported"),
            (libc::EIO, dmabuf, ALL, "DmaBufNotMapped"),
            (libc::EXDEV, dmabuf, ALL, "NoPeerToPeer"),
            (libc::ENOMEM, ASKED, ALL, "AreaNotLocked"),
            (libc::ENOMEM, dmabuf, ALL, "Refused"),
            (libc::EINVAL, ASKED, ALL, "Refused"),
        ];
        for (errno, asked, running, expected) in table {
            assert_eq!(
                variant(errno, asked, running),
                expected,
                "for errno {errno}, {asked:?} and {running:?}"
            );
        }
    }
}
