// SPDX-License-Identifier: MIT OR Apache-2.0

//! Without a device: connections that found no buffer, and how their receiver learns that some came back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

/// Rings when fragments are recycled, if the receiver wants it to.
#[derive(Debug)]
pub(super) struct Bell {
    eventfd: OwnedFd,
    wanted: AtomicBool,
}

impl Bell {
    /// Wants it to ring for what is recycled from now on. What came before is in the refill ring, for who
    /// looks into it afterwards.
    fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// To be called after the refill ring was filled.
    pub(super) fn ring(&self) {
        // With that in `want`: either the receiver sees what was filled in, or we see that it wants to know.
        fence(Ordering::SeqCst);
        if self.wanted.swap(false, Ordering::Relaxed) {
            // It fails only where it has rung 2^64 - 2 times already.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }
}

/// Connections without a request, as they found no buffer.
#[derive(Debug)]
pub(super) struct Starved {
    bell: Arc<Bell>,
    /// Whether the receiver's ring has a request that waits for the bell.
    awaited: bool,
    connections: Vec<u64>,
    /// Whether the caller knows of them all.
    told: bool,
    cancelled: Vec<u64>,
}

impl Starved {
    pub(super) fn new() -> io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let wanted = AtomicBool::new(false);
        Ok(Self {
            bell: Arc::new(Bell { eventfd, wanted }),
            awaited: false,
            connections: Vec::new(),
            told: true,
            cancelled: Vec::new(),
        })
    }

    pub(super) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    pub(super) fn push(&mut self, connection: u64) {
        self.connections.push(connection);
        self.told = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Whether there are some that the caller doesn't know of.
    pub(super) fn is_news(&self) -> bool {
        !self.told
    }

    /// The same, and now he does.
    pub(super) fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true) && !self.connections.is_empty()
    }

    /// All that are to try again.
    pub(super) fn take(&mut self) -> Vec<u64> {
        self.told = true;
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

    /// Wants the bell to ring. The refill ring is to be looked into afterwards. Returns what a request must
    /// poll for it, if none does.
    pub(super) fn listen(&mut self) -> Option<BorrowedFd<'_>> {
        self.bell.want();
        let awaited = std::mem::replace(&mut self.awaited, true);
        (!awaited).then(|| self.bell.eventfd.as_fd())
    }

    /// The request that polled is complete.
    pub(super) fn rang(&mut self) {
        self.awaited = false;
        // Nobody else reads, so that there is something, unless the request was cancelled.
        let _ = rustix::io::read(&self.bell.eventfd, &mut [0; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_rings_once_for_who_wants_it() {
        let mut starved = Starved::new().expect("an eventfd");
        let bell = starved.bell();
        let rung = || rustix::io::read(&bell.eventfd, &mut [0; 8]).is_ok();
        bell.ring();
        assert!(!rung(), "nobody wanted it");
        assert!(starved.listen().is_some());
        assert!(starved.listen().is_none(), "a request waits already");
        bell.ring();
        bell.ring();
        assert!(rung() && !rung());
        starved.rang();
        assert!(starved.listen().is_some());
    }
}
