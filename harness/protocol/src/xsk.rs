// SPDX-License-Identifier: MIT OR Apache-2.0

//! XDP sockets (Documentation/networking/af_xdp.rst of the kernel).

use serde::{Deserialize, Serialize};

use crate::Ns;

/// A socket that sends each frame back that it gets, with source and destination exchanged, from the
/// same memory. It gets what [`crate::XdpAction::RedirectToSocket`] sends to it. Ends with
/// [`crate::Command::Stop`].
///
/// A refused bind is the failure of [`crate::StartJob`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct XdpSocket {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// The queue that it is bound to.
    pub queue: u32,
    /// The kernel may copy frames (`XDP_COPY`); otherwise it must not (`XDP_ZEROCOPY`).
    pub copy: bool,
    /// It asks to be notified when it must wake the driver (`XDP_USE_NEED_WAKEUP`).
    pub need_wakeup: bool,
    /// Bytes of a chunk of its memory, one frame in each: 2048 or 4096.
    pub chunk: u32,
    /// Chunks. The driver has all those that hold no frame.
    pub chunks: u32,
    /// With each frame it sends another one, too short for a device to send.
    pub runts: bool,
}

/// Outcome of [`XdpSocket`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpSocketReport {
    /// The kernel says that it copies nothing.
    pub zero_copy: bool,
    /// Frames received.
    pub received: u64,
    /// Frames given to the driver to be sent, too short ones included.
    pub sent: u64,
    /// Of those, how many the driver said were sent.
    pub completed: u64,
    /// Frames that were received into a chunk that the driver did not have, or sent from one that it
    /// did not.
    pub misplaced: u64,
}
