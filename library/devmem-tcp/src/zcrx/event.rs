// SPDX-License-Identifier: MIT OR Apache-2.0

//! What happens on connections.

use super::config::Notification;
use super::fragment::Fragment;
use crate::error::ZcrxError;

/// A connection that a [`super::Receiver`] receives from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(pub(super) u64);

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Payload arrived, behind what arrived on the connection before.
    Fragment {
        /// On which connection.
        connection: Connection,
        /// Where it is.
        fragment: Fragment,
    },
    /// Nothing more comes. [`super::Receiver::receive_from`] would go on where this ended.
    Ended {
        /// Which connection.
        connection: Connection,
        /// Why.
        end: End,
    },
    /// The kernel reports something about the queue: once, until [`super::Receiver::arm`].
    Notification(Notification),
    /// Without a device: a connection found no buffer, because unrecycled fragments hold them all.
    /// [`super::Receiver::wait`] resumes it once any thread has recycled some. A thread that holds them all
    /// and waits without a timeout waits forever.
    Starved,
}

/// Why nothing more comes of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum End {
    /// The peer closed its direction.
    Closed,
    /// [`super::Receiver::cancel`].
    Cancelled,
    /// It failed.
    Failed(ZcrxError),
}
