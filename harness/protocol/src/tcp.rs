// SPDX-License-Identifier: MIT OR Apache-2.0

//! Ordinary TCP.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Failure, Memory, Mismatch, Ns};

/// Accepts one connection and checks that it carries the seed's payload.
///
/// Ends at the peer's end of stream, at an error, or when stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TcpSink {
    /// Namespace that listens.
    pub ns: Ns,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
}

/// Outcome of [`TcpSink`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkReport {
    /// Payload bytes received.
    pub bytes: u64,
    /// The first wrong byte. Bytes after it are counted, not checked.
    pub mismatch: Option<Mismatch>,
    /// The peer closed its direction: nothing is missing at the end.
    pub end_of_stream: bool,
    /// What ended the stream otherwise; `None` too after [`crate::Command::Stop`].
    pub error: Option<Failure>,
    /// From the first to the last byte, in nanoseconds of the guest's clock.
    pub elapsed_ns: u64,
}

/// Connects and sends the seed's payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TcpSource {
    /// Namespace that sends.
    pub ns: Ns,
    /// Source address and port; `None` lets the kernel choose. A port of one's own makes the
    /// flow's hash known.
    pub bind: Option<SocketAddr>,
    /// Where to connect.
    pub connect: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
    /// Bytes to send; `None` sends until [`crate::Command::Finish`].
    pub bytes: Option<u64>,
    /// Sizes of the writes, used in turn. TCP_NODELAY is set, so an idle connection turns every
    /// write into packets of its own. Must not be empty or contain 0.
    pub chunks: Vec<u32>,
    /// Pause after each write, in microseconds; lets each write leave before the next one.
    pub pause_us: u64,
    /// Length in bytes of an IPv6 hop-by-hop header that every packet gets once connected, a
    /// multiple of 8 from 8 to 256, or 0 for none (RFC 8200, section 4.3): makes headers longer
    /// than a NIC can split.
    #[serde(default)]
    pub hop_by_hop: u16,
}

/// Outcome of [`TcpSource`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Payload bytes that the socket accepted.
    pub bytes: u64,
    /// The peer took everything and closed the connection.
    pub delivered: bool,
    /// Segments that had to be sent again (tcpi_total_retrans): packets that were lost, or late.
    pub retransmits: u32,
    /// What ended the stream early.
    pub error: Option<Failure>,
    /// From the first byte to the peer's close, in nanoseconds of the guest's clock.
    pub elapsed_ns: u64,
}

/// Accepts one connection, receives its payload in ordinary memory and copies it into a dma-buf:
/// what is done without device memory TCP.
///
/// Byte `n` of the stream is copied to offset `n` modulo the size of the dma-buf.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CopySink {
    /// Namespace that listens.
    pub ns: Ns,
    /// Where the dma-buf's memory comes from.
    #[serde(default)]
    pub memory: Memory,
    /// Size of the dma-buf in bytes, a multiple of the page size.
    pub dmabuf_bytes: u64,
    /// Where to listen.
    pub listen: SocketAddr,
}
