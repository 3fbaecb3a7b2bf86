// SPDX-License-Identifier: MIT OR Apache-2.0

//! A stream of what is received, with back-pressure.

use std::future::poll_fn;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use rustix::event::epoll::EventFlags;
use tokio::task::coop::poll_proceed;

use super::edges::Edges;
use super::held::{Held, Limit};
use crate::error::{ReceiveError, SystemCall};
use crate::rx::{self, Capacity, Fragment, Received};

/// The receiving side of a connection, as [`rx::Receiver`], for tasks.
///
/// As a [`Stream`] it ends with the peer's direction, and after an error.
#[derive(Debug)]
pub struct Receiver<S> {
    edges: Edges,
    receiver: rx::Receiver<Arc<S>>,
    recycler: Recycler<S>,
    ended: bool,
}

/// Recycles fragments of a connection in whatever task or thread. It keeps the connection open.
#[derive(Debug)]
pub struct Recycler<S> {
    socket: Arc<S>,
    cookie: u64,
    held: Arc<Held>,
    recycler: rx::Recycler,
}

impl<S: AsFd> Receiver<S> {
    /// Receives from a connected socket, with the default [`Capacity`].
    ///
    /// # Errors
    ///
    /// [`ReceiveError::SystemCall`] if there is no descriptor left.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with its I/O driver enabled.
    pub fn new(socket: S, limit: Limit) -> Result<Self, ReceiveError> {
        Self::with_capacity(socket, limit, Capacity::default())
    }

    /// Receives from a connected socket.
    ///
    /// # Errors
    ///
    /// As [`Receiver::new`].
    ///
    /// # Panics
    ///
    /// As [`Receiver::new`].
    pub fn with_capacity(
        socket: S,
        limit: Limit,
        capacity: Capacity,
    ) -> Result<Self, ReceiveError> {
        let edges = Edges::of(&socket, EventFlags::IN | EventFlags::RDHUP)
            .map_err(|error| SystemCall::new("poll a connection", error))?;
        let socket = Arc::new(socket);
        let receiver = rx::Receiver::with_capacity(Arc::clone(&socket), capacity);
        Ok(Self {
            edges,
            recycler: Recycler {
                socket,
                cookie: receiver.cookie(),
                held: Arc::new(Held::new(limit)),
                recycler: rx::Recycler::new(),
            },
            receiver,
            ended: false,
        })
    }

    /// The socket: to send on it, for instance.
    #[must_use]
    pub fn socket(&self) -> &S {
        &self.recycler.socket
    }

    /// Bytes of receive buffers that are held unrecycled.
    #[must_use]
    pub fn held(&self) -> usize {
        self.recycler.held.bytes()
    }

    /// What recycles fragments in other tasks.
    #[must_use]
    pub fn recycler(&self) -> Recycler<S> {
        self.recycler.clone()
    }

    /// As [`Recycler::recycle`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn recycle(
        &mut self,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<(), ReceiveError> {
        self.recycler.recycle(fragments)
    }

    /// Waits until less than the limit is held and there is data, and takes what is there. As
    /// [`Receiver::receive_into`], in fresh memory.
    ///
    /// # Errors
    ///
    /// As [`rx::Receiver::receive_into`].
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, nothing was received.
    pub async fn receive(&mut self) -> Result<Received, ReceiveError> {
        let mut received = Received::default();
        self.receive_into(&mut received).await?;
        Ok(received)
    }

    /// Waits until less than the limit is held and there is data, and takes what is there into `received`,
    /// whose former contents are gone and whose memory is reused. After the end of the stream, each call
    /// reports it again.
    ///
    /// # Errors
    ///
    /// As [`rx::Receiver::receive_into`].
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, nothing was received.
    pub async fn receive_into(&mut self, received: &mut Received) -> Result<(), ReceiveError> {
        poll_fn(|cx| self.poll_receive_into(cx, received)).await
    }

    fn poll_receive_into(
        &mut self,
        cx: &mut Context<'_>,
        received: &mut Received,
    ) -> Poll<Result<(), ReceiveError>> {
        // Other tasks have their turn, however fast data comes.
        let turn = ready!(poll_proceed(cx));
        let held = &self.recycler.held;
        let pieces = ready!(held.poll_room(cx));
        loop {
            match self
                .receiver
                .receive_at_most(pieces, libc::MSG_DONTWAIT, received)
            {
                Err(ReceiveError::WouldBlock) => ready!(self.edges.poll(cx))
                    .map_err(|error| SystemCall::new("poll a connection", error))?,
                result => {
                    if result.is_ok() {
                        held.add(held.weights(&received.fragments));
                    }
                    turn.made_progress();
                    return Poll::Ready(result);
                }
            }
        }
    }
}

impl<S: AsFd> Recycler<S> {
    /// Recycles fragments of this connection, in batches that the kernel takes; the receiver goes on if it
    /// waited for that.
    ///
    /// # Errors
    ///
    /// As [`rx::Recycler::recycle`]. All of `fragments` then count as held, as they may well be, unless the error is
    /// that some belong to another connection.
    pub fn recycle(
        &mut self,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<(), ReceiveError> {
        let mut bytes = 0;
        let fragments = fragments.into_iter().inspect(|fragment| {
            if fragment.token_of(self.cookie).is_some() {
                bytes += self.held.weights(std::slice::from_ref(fragment));
            }
        });
        let socket = self.socket.as_fd();
        let recycled = self.recycler.recycle_to(socket, self.cookie, fragments);
        if let Ok(()) | Err(ReceiveError::FragmentsElsewhere { .. }) = recycled {
            self.held.remove(bytes);
        }
        recycled
    }
}

impl<S> Clone for Recycler<S> {
    fn clone(&self) -> Self {
        Self {
            socket: Arc::clone(&self.socket),
            cookie: self.cookie,
            held: Arc::clone(&self.held),
            recycler: rx::Recycler::new(),
        }
    }
}

impl<S: AsFd> AsFd for Receiver<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

impl<S: AsFd> Stream for Receiver<S> {
    type Item = Result<Received, ReceiveError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut received = Received::default();
        let result = ready!(self.poll_receive_into(cx, &mut received));
        self.ended = result.is_err() || received.end_of_stream;
        Poll::Ready(match result {
            Ok(()) if received.end_of_stream => None,
            result => Some(result.map(|()| received)),
        })
    }
}

impl<S: AsFd> FusedStream for Receiver<S> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests;
