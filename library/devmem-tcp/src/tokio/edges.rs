// SPDX-License-Identifier: MIT OR Apache-2.0

//! When to try a socket again.
//!
//! tokio takes `EPOLLERR` beside `EPOLLOUT` for the end of the sending side (mio's `is_write_closed`, made for
//! pipes), and an end is for ever: a sender that waits to be writable would spin after its first completion,
//! which comes as `EPOLLERR`. A closed connection is the same for readers. So the socket is in an epoll of its
//! own, edge-triggered, and tokio waits for that. For this reason a receiver and a sender can share a
//! descriptor, too, which is in tokio's own epoll only once.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[derive(Debug)]
pub(super) struct Edges {
    epoll: AsyncFd<OwnedFd>,
}

impl Edges {
    /// Edges of a socket: of `what`, and of errors and hang-ups.
    pub(super) fn of(socket: impl AsFd, what: EventFlags) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, socket, EventData::new_u64(0), what | EventFlags::ET)?;
        // SAFETY: an `OwnedFd` is open until it is dropped, and nothing replaces this one, which is lent only.
        let epoll = unsafe { AsyncFd::register_with_interest(epoll, Interest::READABLE) }?;
        Ok(Self { epoll })
    }

    /// Waits for an edge, which may be one from before the socket was last tried.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut readable = ready!(self.epoll.poll_read_ready(cx))?;
        // In this order: an edge between the two makes the epoll readable again.
        let mut event = [const { MaybeUninit::uninit() }; 1];
        epoll::wait(self.epoll.get_ref(), &mut event, Some(&Timespec::default()))?;
        readable.clear_ready();
        Poll::Ready(Ok(()))
    }
}
