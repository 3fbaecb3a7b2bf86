// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which queue receives, and how.

use crate::interface::Interface;

/// Which queue receives, and how.
#[derive(Debug, Clone)]
pub struct Config {
    pub(super) queue: Option<(Interface, u32)>,
    pub(super) rx_buf_len: Option<u32>,
    pub(super) refill_entries: Option<u32>,
    pub(super) notifications: Option<(u32, u64)>,
}

impl Config {
    /// RX queue `queue` of an interface, with buffers of a base page.
    #[must_use]
    pub fn new(interface: Interface, queue: u32) -> Self {
        Self::of(Some((interface, queue)))
    }

    /// No device (`ZCRX_REG_NODEV`, Linux 7.1): the kernel copies everything, of connections through
    /// whatever interface, into an area of ordinary memory. It needs nothing of the NIC, and saves
    /// nothing: it is for programs that must run everywhere. [`Queue::flush`](super::Queue::flush) after
    /// recycling gives the kernel the buffers; [`super::Receiver`] does it by itself.
    #[must_use]
    pub fn without_device() -> Self {
        Self::of(None)
    }

    fn of(queue: Option<(Interface, u32)>) -> Self {
        Self {
            queue,
            rx_buf_len: None,
            refill_entries: None,
            notifications: None,
        }
    }

    /// Size of a receive buffer in bytes: a power of two that the driver offers. The area must
    /// consist of physical pieces that are multiples of it.
    #[must_use]
    pub fn rx_buf_len(mut self, bytes: u32) -> Self {
        self.rx_buf_len = Some(bytes);
        self
    }

    /// How many fragments can wait in the refill ring for the driver, at most 32768. Without it
    /// there are twice as many as the area has buffers.
    #[must_use]
    pub fn refill_entries(mut self, entries: u32) -> Self {
        self.refill_entries = Some(entries);
        self
    }

    /// Has the kernel post a completion with this user data when one of `notifications` happens, once
    /// until [`Queue::arm`](super::Queue::arm). A kernel without them ([`super::Features::events`]) is too old.
    #[must_use]
    pub fn notify(
        mut self,
        notifications: impl IntoIterator<Item = Notification>,
        user_data: u64,
    ) -> Self {
        let mask = notifications
            .into_iter()
            .fold(0, |mask, which| mask | 1 << which.to_wire());
        self.notifications = Some((mask, user_data));
        self
    }
}

/// What the kernel may tell of a queue (`enum zcrx_event_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Notification {
    /// The NIC's driver found no buffer: fragments are not recycled in time.
    OutOfBuffers,
    /// Payload arrived in host memory and was copied: the fast path was lost.
    Copied,
}

impl Notification {
    pub(super) const fn to_wire(self) -> u32 {
        match self {
            Self::OutOfBuffers => 0,
            Self::Copied => 1,
        }
    }

    pub(super) const fn from_wire(value: i32) -> Option<Self> {
        match value {
            0 => Some(Self::OutOfBuffers),
            1 => Some(Self::Copied),
            _ => None,
        }
    }
}
