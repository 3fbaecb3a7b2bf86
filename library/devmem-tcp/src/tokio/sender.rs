// SPDX-License-Identifier: MIT OR Apache-2.0

//! Sending with a limit of what is in flight.

use std::future::poll_fn;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use rustix::event::epoll::EventFlags;
use tokio::task::coop::poll_proceed;

use super::edges::Edges;
use crate::error::{SendError, SystemCall};
use crate::tx::{self, Completion};

/// The sending side of a connection, as [`tx::Sender`], for tasks.
///
/// Completions are added to a vector of the caller's, who may clear it when they are of no interest.
#[derive(Debug)]
pub struct Sender<S> {
    edges: Edges,
    sender: tx::Sender<S>,
    limit: usize,
    in_flight: usize,
}

impl<S: AsFd> Sender<S> {
    /// Sends with at most `limit` bytes in flight, of which there is at least one.
    ///
    /// # Errors
    ///
    /// [`SendError::SystemCall`] if there is no descriptor left.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with its I/O driver enabled, and if `sender` has sends in flight.
    pub fn new(sender: tx::Sender<S>, limit: usize) -> Result<Self, SendError> {
        assert_eq!(sender.in_flight(), 0, "sends of unknown length in flight");
        let edges = Edges::of(&sender, EventFlags::OUT)
            .map_err(|error| SystemCall::new("poll a connection", error))?;
        Ok(Self {
            edges,
            sender,
            limit: limit.max(1),
            in_flight: 0,
        })
    }

    /// The socket: to receive from it, for instance.
    #[must_use]
    pub fn socket(&self) -> &S {
        self.sender.socket()
    }

    /// Bytes of sends that are not complete.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Sends as many of the `len` bytes at `offset` of the dma-buf as the socket and the limit have room for,
    /// after waiting for room for at least one. Returns how many the kernel accepted. Sends that were
    /// completed meanwhile are added to `done`.
    ///
    /// # Errors
    ///
    /// As [`tx::Sender::send`] and [`tx::Sender::completions`].
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, nothing was sent.
    pub async fn send(
        &mut self,
        offset: u64,
        len: usize,
        done: &mut Vec<Completion>,
    ) -> Result<usize, SendError> {
        poll_fn(|cx| self.poll_send(cx, offset, len, done)).await
    }

    /// Sends all of `len` bytes at `offset`.
    ///
    /// # Errors
    ///
    /// As [`Sender::send`]; bytes before the failure may be on their way.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, it isn't known how much was sent.
    pub async fn send_all(
        &mut self,
        offset: u64,
        len: usize,
        done: &mut Vec<Completion>,
    ) -> Result<(), SendError> {
        let mut sent = 0;
        while sent < len {
            sent += self.send(offset + sent as u64, len - sent, done).await?;
        }
        Ok(())
    }

    /// Waits until at least one send is complete, or none is in flight, and adds those that are to `done`.
    ///
    /// # Errors
    ///
    /// As [`tx::Sender::completions`].
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, no completion was taken.
    pub async fn complete(&mut self, done: &mut Vec<Completion>) -> Result<(), SendError> {
        let wanted = self.in_flight.saturating_sub(1);
        poll_fn(|cx| self.poll_complete(cx, wanted, done)).await
    }

    /// Waits until every send is complete, and adds them to `done`.
    ///
    /// # Errors
    ///
    /// As [`tx::Sender::completions`].
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it is ready, those that are complete are in `done`.
    pub async fn flush(&mut self, done: &mut Vec<Completion>) -> Result<(), SendError> {
        poll_fn(|cx| self.poll_complete(cx, 0, done)).await
    }

    /// As [`tx::Sender::finish`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn finish(&self) -> Result<(), SendError> {
        self.sender.finish()
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        offset: u64,
        len: usize,
        done: &mut Vec<Completion>,
    ) -> Poll<Result<usize, SendError>> {
        let turn = ready!(poll_proceed(cx));
        loop {
            self.take(done)?;
            let room = self.limit.saturating_sub(self.in_flight);
            if room > 0 || len == 0 {
                let len = len.min(room);
                match self.sender.send_with(libc::MSG_DONTWAIT, offset, len) {
                    Err(SendError::WouldBlock) => {}
                    Err(SendError::TooManyInFlight { in_flight, .. }) if in_flight > 0 => {}
                    result => {
                        self.in_flight += *result.as_ref().unwrap_or(&0);
                        turn.made_progress();
                        return Poll::Ready(result);
                    }
                }
            }
            ready!(self.poll_edge(cx))?;
        }
    }

    /// Waits until no more than `wanted` bytes are in flight.
    fn poll_complete(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        done: &mut Vec<Completion>,
    ) -> Poll<Result<(), SendError>> {
        loop {
            self.take(done)?;
            if self.in_flight <= wanted {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_edge(cx))?;
        }
    }

    /// Takes the completions that are there.
    fn take(&mut self, done: &mut Vec<Completion>) -> Result<(), SendError> {
        let before = done.len();
        let result = self.sender.completions_into(done);
        let bytes: usize = done.iter().skip(before).map(|done| done.len).sum();
        self.in_flight = self.in_flight.saturating_sub(bytes);
        result
    }

    fn poll_edge(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let edge = ready!(self.edges.poll(cx));
        Poll::Ready(edge.map_err(|error| SystemCall::new("poll a connection", error).into()))
    }
}

impl<S: AsFd> AsFd for Sender<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sender.as_fd()
    }
}

#[cfg(test)]
mod tests;
