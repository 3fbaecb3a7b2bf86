// SPDX-License-Identifier: MIT OR Apache-2.0

//! Without a device: connections that found no buffer, and how their receiver learns that some came back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

/// Wakes a receiver that sleeps until fragments are recycled.
#[derive(Debug)]
pub(super) struct Waker {
    eventfd: OwnedFd,
    armed: AtomicBool,
}

impl Waker {
    /// Has what is recycled from now on wake the receiver. What came before is in the refill ring, which must be
    /// checked afterwards.
    fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Wakes the receiver if it sleeps. The refill ring must have been filled before.
    pub(super) fn wake(&self) {
        // Pairs with the fence in `arm`: either the receiver sees the refilled entries, or we see that it is armed.
        fence(Ordering::SeqCst);
        if self.armed.swap(false, Ordering::Relaxed) {
            // It fails only if the counter has reached 2^64 - 2.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }
}

/// Connections without a request, as they found no buffer.
#[derive(Debug)]
pub(super) struct Starved {
    waker: Arc<Waker>,
    /// Whether the receiver's ring has a request that polls the eventfd.
    awaited: bool,
    connections: Vec<u64>,
    /// Whether the caller knows of them all.
    reported: bool,
    cancelled: Vec<u64>,
}

impl Starved {
    pub(super) fn new() -> io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let armed = AtomicBool::new(false);
        Ok(Self {
            waker: Arc::new(Waker { eventfd, armed }),
            awaited: false,
            connections: Vec::new(),
            reported: true,
            cancelled: Vec::new(),
        })
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    pub(super) fn push(&mut self, connection: u64) {
        self.connections.push(connection);
        self.reported = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Whether there are some that the caller doesn't know of.
    pub(super) fn is_unreported(&self) -> bool {
        !self.reported
    }

    /// The same; from now on the caller knows.
    pub(super) fn report(&mut self) -> bool {
        !std::mem::replace(&mut self.reported, true) && !self.connections.is_empty()
    }

    /// All that are to try again.
    pub(super) fn take(&mut self) -> Vec<u64> {
        self.reported = true;
        std::mem::take(&mut self.connections)
    }

    /// Cancels one, if it is among them.
    pub(super) fn cancel(&mut self, connection: u64) -> bool {
        let Some(at) = self.connections.iter().position(|&one| one == connection) else {
            return false;
        };
        self.connections.remove(at);
        self.cancelled.push(connection);
        true
    }

    /// Those that were cancelled since the last time.
    pub(super) fn cancelled(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.cancelled)
    }

    /// Has what is recycled wake the receiver. The refill ring must be checked afterwards. Returns the eventfd if
    /// no request polls it yet: one must.
    pub(super) fn arm(&mut self) -> Option<BorrowedFd<'_>> {
        self.waker.arm();
        let awaited = std::mem::replace(&mut self.awaited, true);
        (!awaited).then(|| self.waker.eventfd.as_fd())
    }

    /// The request that polled is complete.
    pub(super) fn woken(&mut self) {
        self.awaited = false;
        // Only the receiver reads it, so there is something to read unless the request was cancelled.
        let _ = rustix::io::read(&self.waker.eventfd, &mut [0; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_woken_once_and_only_if_it_is_armed() {
        let mut starved = Starved::new().expect("an eventfd");
        let waker = starved.waker();
        let woken = || rustix::io::read(&waker.eventfd, &mut [0; 8]).is_ok();
        waker.wake();
        assert!(!woken(), "it was not armed");
        assert!(starved.arm().is_some());
        assert!(starved.arm().is_none(), "a request waits already");
        waker.wake();
        waker.wake();
        assert!(woken() && !woken());
        starved.woken();
        assert!(starved.arm().is_some());
    }
}
