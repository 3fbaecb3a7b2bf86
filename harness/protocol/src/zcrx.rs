// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receiving through io_uring zero-copy receive.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Failure, Memory, Mismatch, Ns, Release};

/// Where a [`ZcrxSink`] receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ZcrxMemory {
    /// Ordinary memory of the process.
    User,
    /// A dma-buf.
    DmaBuf(Memory),
}

/// Makes a receive queue belong to an io_uring, accepts one connection and receives its payload in
/// the ring's area.
///
/// Steering, [`crate::Event::DmaBuf`], [`crate::Event::Fragments`] and the receive buffer's size are
/// as with [`crate::DevmemSink`]; the area takes the dma-buf's place, the refill ring that of
/// tokens. [`crate::Command::CloseBinding`] closes the ring. The kernel gives the queue back to
/// host memory in the background, soon after the ring is closed or the job joined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ZcrxSink {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Receive queue.
    pub queue: u32,
    /// What the area is made of.
    pub memory: ZcrxMemory,
    /// Size of the area in bytes, a multiple of the page size.
    pub area_bytes: u64,
    /// Size of a receive buffer in bytes; `None` is the base page. If there is one, user memory is
    /// made of huge pages of 2 MiB.
    pub rx_buf_len: Option<u32>,
    /// Entries of the refill ring; `None` is enough for every buffer.
    pub refill_entries: Option<u32>,
    /// Entries of the completion queue; `None` is plenty.
    pub completions: Option<u32>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
    /// The guest checks the payload of a fragment right before it releases it, or when the stream
    /// ends and it still holds it.
    pub verify: bool,
    /// Report every fragment as [`crate::Event::Fragments`].
    pub report: bool,
    /// When fragments go back.
    pub release: Release,
}

/// Outcome of [`ZcrxSink`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZcrxSinkReport {
    /// Payload bytes received, all of them in the area.
    pub bytes: u64,
    /// Bytes that the kernel copied into the area, because they arrived in host memory.
    pub copied_bytes: u64,
    /// Fragments.
    pub fragments: u64,
    /// Fragments that were never returned.
    pub fragments_held: u64,
    /// Size of a receive buffer as the kernel says, in bytes.
    pub rx_buf_len: u32,
    /// The first wrong byte, when the guest checks.
    pub mismatch: Option<Mismatch>,
    /// The peer closed its direction: nothing is missing at the end.
    pub end_of_stream: bool,
    /// What ended the stream otherwise; `None` too after [`crate::Command::Stop`] and
    /// [`crate::Command::CloseBinding`].
    pub error: Option<Failure>,
    /// From the first to the last byte, in nanoseconds of the guest's clock.
    pub elapsed_ns: u64,
}
