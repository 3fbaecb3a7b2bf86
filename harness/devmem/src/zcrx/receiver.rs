// SPDX-License-Identifier: MIT OR Apache-2.0

//! Completions of zero-copy receives.

use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{cqueue, opcode};

use super::refill::{Fragment, Region};
use super::{OPERATION, RingWithQueue, abi, descriptor};
use crate::error::{Error, Refusal, Result};

/// A connection that a [`Receiver`] receives from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(u64);

/// What happened to a connection.
#[derive(Debug)]
pub enum Completion {
    /// Payload arrived, behind what arrived on the connection before.
    Fragment {
        /// On which connection.
        connection: Connection,
        /// Where it is.
        fragment: Fragment,
    },
    /// Nothing more comes. [`Receiver::receive_from`] would go on where this ended.
    Ended {
        /// Which connection.
        connection: Connection,
        /// Why; none if the peer closed its direction.
        error: Option<Error>,
    },
}

/// Receives from connections whose packets reach the queue.
///
/// It stays on the thread that started it: the kernel completes nothing for others
/// (`IORING_SETUP_SINGLE_ISSUER`).
#[derive(Debug)]
pub struct Receiver {
    ring: RingWithQueue,
    /// The kernel's number of the interface queue.
    queue: u32,
    stats: Option<Region>,
    /// The last number given to a connection.
    last: u64,
    /// A request names its socket by descriptor when it is submitted, also a second time.
    sockets: BTreeMap<u64, OwnedFd>,
    of_this_thread: PhantomData<*const ()>,
}

impl Receiver {
    /// Takes over a ring that is disabled.
    pub(super) fn start(ring: RingWithQueue, queue: u32, stats: Option<Region>) -> Result<Self> {
        let enabled = ring.0.submitter().register_enable_rings();
        enabled.map_err(|error| Error::io("IORING_REGISTER_ENABLE_RINGS", error))?;
        Ok(Self {
            ring,
            queue,
            stats,
            last: 0,
            sockets: BTreeMap::new(),
            of_this_thread: PhantomData,
        })
    }

    /// Receives from a connected TCP socket from the next [`Receiver::wait`] on, until it ends.
    ///
    /// The receiver keeps the connection open until then; shut it down to end it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is no descriptor left, or the ring takes no request.
    pub fn receive_from(&mut self, socket: impl AsFd) -> Result<Connection> {
        let socket = socket.as_fd().try_clone_to_owned();
        let socket = socket.map_err(|error| Error::io("duplicate a socket", error))?;
        self.last += 1;
        self.sockets.insert(self.last, socket);
        self.request(self.last)?;
        Ok(Connection(self.last))
    }

    /// Queues the request for a connection, for the next system call.
    fn request(&mut self, connection: u64) -> Result<()> {
        let Some(socket) = self.sockets.get(&connection) else {
            return Ok(());
        };
        // A length of 0 is no limit.
        let entry = opcode::RecvZc::new(Fd(socket.as_raw_fd()), 0)
            .ifq(self.queue)
            .build()
            .user_data(connection);
        loop {
            // SAFETY: the request refers to no memory, and its descriptor stays open until it is
            // complete.
            if unsafe { self.ring.0.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            // The submission queue is full.
            self.enter(0, None)?;
        }
    }

    /// Waits for completions and puts them into `completions`, whose former contents are gone.
    /// After `timeout` there are none.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the kernel refuses.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
        completions: &mut Vec<Completion>,
    ) -> Result<()> {
        completions.clear();
        loop {
            self.take(completions)?;
            if !completions.is_empty() || !self.enter(1, timeout)? {
                return Ok(());
            }
        }
    }

    /// Submits requests, lets the kernel work, and waits until there are `wanted` completions.
    /// Returns whether it was in time.
    fn enter(&self, wanted: usize, timeout: Option<Duration>) -> Result<bool> {
        let timeout = timeout.map(Timespec::from);
        let mut arguments = SubmitArgs::new();
        if let Some(timeout) = &timeout {
            arguments = arguments.timespec(timeout);
        }
        let entered = self.ring.0.submitter().submit_with_args(wanted, &arguments);
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            // Completions that have no room are not lost: they come when there is some.
            Ok(_) | Err((Some(libc::EINTR | libc::EBUSY), _)) => Ok(true),
            Err((Some(libc::ETIME), _)) => Ok(false),
            Err((_, error)) => Err(Error::io("io_uring_enter", error)),
        }
    }

    /// Takes what is in the completion queue.
    fn take(&mut self, completions: &mut Vec<Completion>) -> Result<()> {
        let mut again = Vec::new();
        for entry in self.ring.0.completion() {
            let connection = Connection(entry.user_data());
            let more = cqueue::more(entry.flags());
            match entry.result() {
                len @ 1.. => {
                    let offset = entry.big_cqe()[0];
                    let fragment = Fragment::from_completion(offset, len.unsigned_abs());
                    completions.push(Completion::Fragment {
                        connection,
                        fragment,
                    });
                }
                // The completion queue was full. It no longer is.
                error if -error == libc::ENOSPC => again.push(connection.0),
                result => completions.push(Completion::Ended {
                    connection,
                    error: (result != 0).then(|| meaning(-result)),
                }),
            }
            if !more && !again.contains(&connection.0) {
                self.sockets.remove(&connection.0);
            }
        }
        again
            .into_iter()
            .try_for_each(|connection| self.request(connection))
    }

    /// Makes the kernel take everything out of the refill ring, for when it is full. It takes
    /// Linux 6.19.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the kernel cannot.
    pub fn flush(&mut self) -> Result<()> {
        abi::flush(descriptor(&self.ring.0), self.queue)
            .map_err(|error| Error::io("ZCRX_CTRL_FLUSH_RQ", error))
    }

    /// Bytes that arrived in host memory and that the kernel copied into the area, as far as it
    /// counts them: those at the start of a packet that was not split at all it does not
    /// (`io_zcrx_recv_skb` in io_uring/zcrx.c). None if it does not count.
    #[must_use]
    pub fn copied_bytes(&self) -> Option<u64> {
        self.stats.as_ref().map(Region::copied_bytes)
    }
}

/// What an errno of a receive means.
fn meaning(errno: i32) -> Error {
    let refusal = Refusal::from_errno(errno);
    match errno {
        libc::ENOMEM => Error::NoBufferToCopyInto { refusal },
        libc::EFAULT => Error::SegmentElsewhere { refusal },
        _ => Error::io(OPERATION, io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_errno_of_a_receive_has_its_own_error() {
        assert!(matches!(
            meaning(libc::ENOMEM),
            Error::NoBufferToCopyInto { .. }
        ));
        assert!(matches!(
            meaning(libc::EFAULT),
            Error::SegmentElsewhere { .. }
        ));
        assert_eq!(meaning(libc::ECONNRESET).errno(), Some(libc::ECONNRESET));
    }
}
