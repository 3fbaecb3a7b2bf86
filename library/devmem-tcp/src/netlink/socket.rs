// SPDX-License-Identifier: MIT OR Apache-2.0

//! A netlink socket: sends a request, collects its answers.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::message::{Answer, answers, request};
use crate::error::Refusal;

/// include/uapi/linux/netlink.h
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;

/// Bytes to receive into at first; a longer message makes the buffer grow.
const BUFFER: usize = 32 << 10;

/// Why a request has no, or not all, answers.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The kernel refused it.
    Refused(Refusal),
    /// The list changed while it was read.
    Inconsistent,
    /// The socket failed.
    Io(io::Error),
}

impl From<rustix::io::Errno> for Failure {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}

impl Socket {
    /// Opens a socket of generic netlink, or without a protocol of rtnetlink (`NETLINK_ROUTE` is 0), in the
    /// network namespace of the calling thread.
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        // Refusals with words, and without the request repeated.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let on = 1i32;
            let len = size_of_val(&on) as libc::socklen_t;
            // SAFETY: the option's value is an int, of which pointer and length are given.
            let status = unsafe {
                libc::setsockopt(
                    fd.as_raw_fd(),
                    libc::SOL_NETLINK,
                    option,
                    (&raw const on).cast(),
                    len,
                )
            };
            if status != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self {
            fd,
            sequence: 0,
            buffer: vec![0; BUFFER],
        })
    }

    /// A socket whose answers come from somewhere else.
    #[cfg(test)]
    pub(super) fn over(fd: OwnedFd) -> Self {
        Self {
            fd,
            sequence: 0,
            buffer: vec![0; 4096],
        }
    }

    /// Sends a request to the family with the id `kind`, and passes the payload of each reply to
    /// `each`.
    pub(crate) fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request(
            kind,
            flags | NLM_F_REQUEST | NLM_F_ACK,
            self.sequence,
            payload,
        );
        retry_on_intr(|| send(&self.fd, &message, SendFlags::empty()))?;
        let mut consistent = true;
        loop {
            let len = self.receive()?;
            for answer in answers(&self.buffer[..len], self.sequence) {
                match answer {
                    Answer::Reply { payload, changed } => {
                        consistent &= !changed;
                        each(payload);
                    }
                    Answer::Finished { changed } if changed || !consistent => {
                        return Err(Failure::Inconsistent);
                    }
                    Answer::Finished { .. } => return Ok(()),
                    Answer::Refused(refusal) => return Err(Failure::Refused(refusal)),
                }
            }
        }
    }

    /// Receives a whole datagram; returns its length.
    fn receive(&mut self) -> Result<usize, Failure> {
        let look = RecvFlags::PEEK | RecvFlags::TRUNC;
        let (_, len) = retry_on_intr(|| recv(&self.fd, &mut self.buffer[..], look))?;
        if len > self.buffer.len() {
            self.buffer.resize(len, 0);
        }
        let (len, _) = retry_on_intr(|| recv(&self.fd, &mut self.buffer[..], RecvFlags::empty()))?;
        Ok(len)
    }
}
