// SPDX-License-Identifier: MIT OR Apache-2.0

//! How much of the dma-buf the application holds.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::param::page_size;

use crate::rx::Fragment;

/// How much of the dma-buf may be held unrecycled, in whole receive buffers: a fragment of a few bytes keeps
/// its whole buffer from the NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    bytes: usize,
    buffer_len: usize,
}

impl Limit {
    /// At most `bytes`, of receive buffers of a base page; at least one buffer.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let buffer_len = page_size();
        Self { bytes, buffer_len }
    }

    /// The size of a receive buffer in bytes, where the binding asked for another one
    /// ([`crate::netdev::RxBinder::rx_page_size`]).
    #[must_use]
    pub fn buffer_len(mut self, bytes: usize) -> Self {
        self.buffer_len = bytes.max(1);
        self
    }
}

/// What is held of a connection.
#[derive(Debug)]
pub(super) struct Held {
    limit: Limit,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    /// The receiver, if it waits.
    waker: Option<Waker>,
}

impl Held {
    pub(super) fn new(limit: Limit) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    /// A fragment counts as its buffer, whoever shares that.
    fn weight(&self, fragment: &Fragment) -> usize {
        self.limit.buffer_len.max(fragment.len() as usize)
    }

    pub(super) fn weights(&self, fragments: &[Fragment]) -> usize {
        fragments.iter().map(|one| self.weight(one)).sum()
    }

    /// Waits until there is room; says for how many fragments.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<usize> {
        let mut state = self.lock();
        let bytes = self.limit.bytes.max(self.limit.buffer_len);
        match bytes.saturating_sub(state.bytes) / self.limit.buffer_len {
            0 => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            room => Poll::Ready(room),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub(super) fn add(&self, bytes: usize) {
        self.lock().bytes += bytes;
    }

    pub(super) fn remove(&self, bytes: usize) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// No holder of the lock leaves the state half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rx::RawFragment;

    fn fragment(len: u32) -> Fragment {
        Fragment::from_raw(RawFragment {
            offset: 0,
            len,
            token: 0,
            dmabuf_id: 0,
            socket: 0,
        })
    }

    #[test]
    fn a_fragment_counts_as_a_whole_buffer_and_room_is_in_buffers() {
        let held = Held::new(Limit::new(10 << 12).buffer_len(4096));
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(held.poll_room(&cx), Poll::Ready(10));
        let fragments = [fragment(1), fragment(4096), fragment(700)];
        held.add(held.weights(&fragments));
        assert_eq!(held.bytes(), 3 * 4096);
        assert_eq!(held.poll_room(&cx), Poll::Ready(7));
        held.add(7 << 12);
        assert_eq!(held.poll_room(&cx), Poll::Pending);
        held.remove(4096);
        assert_eq!(held.poll_room(&cx), Poll::Ready(1));
    }

    #[test]
    fn a_limit_below_a_buffer_lets_one_through() {
        let held = Held::new(Limit::new(1).buffer_len(4096));
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(held.poll_room(&cx), Poll::Ready(1));
        held.add(4096);
        assert_eq!(held.poll_room(&cx), Poll::Pending);
    }
}
