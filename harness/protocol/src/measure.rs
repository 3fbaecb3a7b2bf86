// SPDX-License-Identifier: MIT OR Apache-2.0

//! Streams that are measured: they move bytes as fast as they can, and neither check nor report
//! any of it meanwhile.
//!
//! What is measured lies between two marker instructions, which the counter in QEMU knows. The sink
//! executes them when so many bytes have arrived, so that a window always covers the same work.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Failure, Memory, Ns, ZcrxMemory};

/// The way of the payload between the NIC and where it is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Path {
    /// `read` and `write`, to and from a buffer of the program.
    Ordinary,
    /// As [`Path::Ordinary`], and a copy between that buffer and a dma-buf: what is done for device
    /// memory without devmem TCP.
    Copied {
        /// Where the dma-buf's memory comes from.
        memory: Memory,
        /// Size of the dma-buf in bytes, a multiple of the page size.
        dmabuf_bytes: u64,
    },
    /// Device memory sockets: the NIC reads and writes the dma-buf.
    Devmem {
        /// Where the dma-buf's memory comes from.
        memory: Memory,
        /// Size of the dma-buf in bytes, a multiple of the page size.
        dmabuf_bytes: u64,
        /// Receive queues to bind; a source binds none.
        queues: Vec<u32>,
        /// Size of the buffers of these queues in bytes; `None` for the driver's own.
        rx_page_size: Option<u32>,
    },
    /// io_uring zero-copy receive: the NIC writes the area. A source has no such way.
    Zcrx {
        /// What the area is made of.
        memory: ZcrxMemory,
        /// Size of the area in bytes, a multiple of the page size.
        area_bytes: u64,
        /// Receive queue.
        queue: u32,
        /// Size of a receive buffer in bytes; `None` is the base page. If there is one, user
        /// memory is made of huge pages of 2 MiB.
        rx_buf_len: Option<u32>,
    },
}

/// Accepts connections and receives until the end of each stream. All flows together are counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeasuredSink {
    /// Namespace that listens.
    pub ns: Ns,
    /// Namespace that sends, and where nothing else does.
    pub from: Ns,
    /// Interface that receives.
    pub interface: String,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where the payload goes.
    pub path: Path,
    /// Connections, all received from at once: by a thread each, or with [`Path::Zcrx`] by one.
    /// Not 0; 1 with [`Path::Copied`].
    pub flows: u32,
    /// With [`Path::Devmem`]: tokens that are kept before they are returned, together. `None`
    /// returns what each call received after it.
    pub token_batch: Option<u32>,
    /// Most bytes that one call receives. With [`Path::Zcrx`], where it is the kernel that says how
    /// much: bytes that are kept before they are returned, together.
    pub read: u32,
    /// Bytes before the window starts.
    pub skip: u64,
    /// Bytes in the window; it ends with the call that receives the last of them.
    pub window: u64,
}

/// Outcome of [`MeasuredSink`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredSinkReport {
    /// Payload bytes received.
    pub bytes: u64,
    /// Those in the window; 0 if it never ended.
    pub window_bytes: u64,
    /// Packets that the interface received in the window.
    pub window_packets: u64,
    /// Calls that received or, with [`Path::Zcrx`], waited, in the window.
    pub window_reads: u64,
    /// Pieces of the dma-buf or the area that were received, in the window.
    pub window_fragments: u64,
    /// TCP segments that were sent again in the window.
    pub window_retransmits: u64,
    /// Length of the window in nanoseconds of the guest's clock.
    pub window_ns: u64,
    /// With [`Path::Devmem`]: bytes that arrived outside the dma-buf. With [`Path::Zcrx`]: bytes that
    /// the kernel copied into the area.
    pub linear_bytes: u64,
    /// The peer closed its direction: nothing is missing at the end.
    pub end_of_stream: bool,
    /// What ended the stream otherwise.
    pub error: Option<Failure>,
}

/// Connects and sends the same bytes again and again. Flows take what they send from one account,
/// so that none ends before the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeasuredSource {
    /// Namespace that sends.
    pub ns: Ns,
    /// Interface that the route leads through.
    pub interface: String,
    /// Where to connect.
    pub connect: SocketAddr,
    /// Where the payload comes from; each flow has its part of a dma-buf's bytes.
    pub path: Path,
    /// Connections, each with a thread that sends. Not 0.
    pub flows: u32,
    /// Bytes of each call that sends.
    pub write: u32,
    /// Bytes to send.
    pub bytes: u64,
    /// Begin at a round time of the guest's clock, so that runs of a counted guest are alike.
    pub at_round_time: bool,
}

/// Outcome of [`MeasuredSource`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredSourceReport {
    /// Payload bytes that the socket accepted.
    pub bytes: u64,
    /// Calls that sent.
    pub writes: u64,
    /// Completions that say that the kernel copied; always 0 for device memory.
    pub copied: u64,
    /// The peer took everything and closed the connection.
    pub delivered: bool,
    /// What ended the stream early.
    pub error: Option<Failure>,
}

/// Binds a dma-buf to a queue and closes the binding, again and again. Each of both restarts the
/// queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Restarts {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface.
    pub interface: String,
    /// Receive queue.
    pub queue: u32,
    /// Where the dma-buf's memory comes from.
    pub memory: Memory,
    /// Size of the dma-buf in bytes, a multiple of the page size.
    pub dmabuf_bytes: u64,
    /// How often the queue is restarted; an even number.
    pub restarts: u32,
}

/// Outcome of [`Restarts`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartsReport {
    /// How often the queue was restarted.
    pub restarts: u32,
    /// What ended it early.
    pub error: Option<Failure>,
}

/// A wire with a bit rate: carries frames between two interfaces, both ways, each no sooner than
/// the wire would have. Ends with [`crate::Command::Finish`].
///
/// A frame takes the time of its bytes and of what Ethernet adds: frame check sequence, preamble and
/// gap, [`PacedWire::PER_FRAME`] in all. Frames wait in front of the wire as long as there is room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PacedWire {
    /// Namespace of both interfaces.
    pub ns: Ns,
    /// The interfaces, which must show every frame as it came (no GRO).
    pub interfaces: [String; 2],
    /// Bits per second of the guest's clock, in each direction.
    pub rate: u64,
}

impl PacedWire {
    /// Bytes that Ethernet adds to a frame on the wire.
    pub const PER_FRAME: u64 = 24;
    /// Bytes of a frame before its packet.
    pub const HEADER: u64 = 14;
}

/// Outcome of [`PacedWire`], by the interface that frames came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacedWireReport {
    /// Frames carried.
    pub frames: [u64; 2],
    /// Frames that found no room in front of the wire.
    pub dropped: [u64; 2],
    /// What ended it early.
    pub error: Option<Failure>,
}

/// Executes a marker instruction, for the counter in QEMU: starts or ends a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MarkWindow {
    /// Which end of the window.
    pub edge: Edge,
}

/// The ends of a window of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge {
    /// Counters start at 0.
    Start,
    /// Counters are written to a file on the host.
    End,
}

/// Makes the counter in QEMU read which addresses are markers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadMarks {}
