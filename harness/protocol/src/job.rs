// SPDX-License-Identifier: MIT OR Apache-2.0

//! Work that goes on in the guest while the host does something else.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Failure, Ns,
    measure::{
        MeasuredSink, MeasuredSinkReport, MeasuredSource, MeasuredSourceReport, PacedWire,
        PacedWireReport, Restarts, RestartsReport,
    },
    payload::Mismatch,
    program::{Program, ProgramReport},
    zcrx::{ZcrxSink, ZcrxSinkReport},
};

/// A job together with the type of its outcome.
pub trait JobSpec: Into<Job> {
    /// What [`crate::Join`] returns.
    type Outcome: Serialize + DeserializeOwned;
}

/// Defines [`Job`] with one variant for each struct, and its outcome.
macro_rules! jobs {
    ($($name:ident -> $outcome:ty,)*) => {
        /// Any job, as it goes over the wire.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        pub enum Job {
            $(
                #[doc = concat!("See [`", stringify!($name), "`].")]
                $name($name),
            )*
        }

        impl Job {
            /// The job's name, for logs and errors.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }
        }

        $(
            impl From<$name> for Job {
                fn from(job: $name) -> Self {
                    Self::$name(job)
                }
            }

            impl JobSpec for $name {
                type Outcome = $outcome;
            }
        )*
    };
}

jobs! {
    TcpSink -> SinkReport,
    TcpSource -> SourceReport,
    DevmemSink -> DevmemSinkReport,
    DevmemSource -> DevmemSourceReport,
    DevmemRelay -> DevmemRelayReport,
    CopySink -> SinkReport,
    Binding -> BindingReport,
    UdpSink -> UdpSinkReport,
    UdpSource -> UdpSourceReport,
    ZcrxSink -> ZcrxSinkReport,
    MeasuredSink -> MeasuredSinkReport,
    MeasuredSource -> MeasuredSourceReport,
    Restarts -> RestartsReport,
    PacedWire -> PacedWireReport,
    Program -> ProgramReport,
}

/// What a running job can be told with [`crate::Tell`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// End now: sockets are shut down and bindings closed, whatever is in flight is given up.
    Stop,
    /// A source stops after what it is sending, then closes its direction and waits for the peer
    /// to have taken everything.
    Finish,
    /// [`DevmemSink`] or [`ZcrxSink`] with [`Release::OnRequest`]: return this batch's fragments.
    Release {
        /// From [`Event::Fragments`].
        batch: u64,
    },
    /// Return all fragments that the sink holds; works with every [`Release`].
    ReleaseAll,
    /// Close the netlink socket that holds the dma-buf bound, and go on without, also if nothing can
    /// be sent any more. A [`ZcrxSink`] closes its io_uring and ends.
    CloseBinding,
    /// [`DevmemSink`], [`DevmemSource`], [`ZcrxSink`]: close the dma-buf. Whoever it is bound for
    /// has to keep its memory.
    CloseDmaBuf,
    /// [`DevmemSource`] with [`Fill::Host`]: the dma-buf holds the stream, send it.
    Go,
    /// Kill the process that the job runs in, if it has one of its own
    /// ([`crate::StartJob::process`]), or the [`Program`] that the job is.
    Kill,
}

/// What a job reports while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A sink accepted its peer.
    Connected {
        /// The peer's address.
        peer: SocketAddr,
    },
    /// How far a job is, at most every 100 ms; the last bytes before a pause may not show.
    Progress {
        /// Bytes received, or accepted by the socket for sending.
        bytes: u64,
    },
    /// Where a dma-buf, or an area, lies in the guest's physical memory, if that can be known; the
    /// first event of a devmem or zcrx job.
    DmaBuf {
        /// Pieces in order of their offset; together they are the whole dma-buf.
        ranges: Vec<PhysicalRange>,
    },
    /// [`DevmemSink`], [`ZcrxSink`]: payload arrived in the dma-buf or area.
    Fragments {
        /// Number of the batch, counted from 0; [`Command::Release`] names it.
        batch: u64,
        /// Offset in the stream of the first fragment, in bytes. The others follow without gap.
        stream_offset: u64,
        /// Pieces of the dma-buf in the order of the stream.
        fragments: Vec<Span>,
    },
    /// [`DevmemSink`]: payload arrived outside the dma-buf.
    Linear {
        /// Offset in the stream of its first byte.
        stream_offset: u64,
        /// Bytes.
        len: u64,
    },
    /// [`Program`]: it printed a line.
    Line {
        /// Without its end.
        text: String,
    },
    /// The job ended; [`crate::Join`] returns at once.
    Ended,
}

/// Where the memory of a dma-buf comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Memory {
    /// The guest's RAM, exported by the udmabuf driver.
    #[default]
    Udmabuf,
    /// The guest's RAM, exported by the dma-heap `system`. The CPU's view of it does not tell where
    /// it is, so there is no [`Event::DmaBuf`].
    SystemHeap,
    /// Memory behind the BAR of an accelerator, exported by its driver, which must be loaded.
    Accelerator {
        /// Number of the accelerator, from 0.
        device: u32,
    },
}

/// A piece of a dma-buf and where it is. Written `[offset,address,len]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct PhysicalRange {
    /// Offset in the dma-buf, in bytes.
    pub offset: u64,
    /// Guest-physical address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
}

impl From<(u64, u64, u64)> for PhysicalRange {
    fn from((offset, address, len): (u64, u64, u64)) -> Self {
        Self {
            offset,
            address,
            len,
        }
    }
}

impl From<PhysicalRange> for (u64, u64, u64) {
    fn from(range: PhysicalRange) -> Self {
        (range.offset, range.address, range.len)
    }
}

/// A piece of a dma-buf. Written `[offset,len]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u32)", into = "(u64, u32)")]
pub struct Span {
    /// Offset in the dma-buf, in bytes.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

impl From<(u64, u32)> for Span {
    fn from((offset, len): (u64, u32)) -> Self {
        Self { offset, len }
    }
}

impl From<Span> for (u64, u32) {
    fn from(span: Span) -> Self {
        (span.offset, span.len)
    }
}

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkReport {
    /// Payload bytes received.
    pub bytes: u64,
    /// The first wrong byte. Bytes after it are counted, not checked.
    pub mismatch: Option<Mismatch>,
    /// The peer closed its direction: nothing is missing at the end.
    pub end_of_stream: bool,
    /// What ended the stream otherwise; `None` too after [`Command::Stop`].
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
    /// Bytes to send; `None` sends until [`Command::Finish`].
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// When [`DevmemSink`] or [`ZcrxSink`] returns fragments, by token or refill ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Release {
    /// As soon as the fragments were reported and checked.
    Immediate,
    /// When the host says so, batch by batch. Until then the dma-buf keeps the payload, so that
    /// the host can read it from outside.
    OnRequest,
    /// Not until the socket closes.
    Never,
}

/// Binds a dma-buf to receive queues, accepts one connection and receives its payload there.
///
/// The flow must be steered to one of the queues by the host, before or after. The socket's receive
/// buffer is half of the dma-buf, so that the window closes before memory runs out, unless tokens
/// are held back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DevmemSink {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Receive queues to bind.
    pub queues: Vec<u32>,
    /// Where the dma-buf's memory comes from.
    #[serde(default)]
    pub memory: Memory,
    /// Size of the dma-buf in bytes, a multiple of the page size.
    pub dmabuf_bytes: u64,
    /// Size of a receive buffer in bytes; `None` is the base page. The pages of a
    /// [`Memory::Udmabuf`] are not large enough for any other.
    #[serde(default)]
    pub rx_page_size: Option<u32>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
    /// The guest checks the payload in the dma-buf, before it reports or releases a fragment.
    pub verify: bool,
    /// Report every fragment as [`Event::Fragments`].
    pub report: bool,
    /// When tokens go back.
    pub release: Release,
}

/// Outcome of [`DevmemSink`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevmemSinkReport {
    /// Payload bytes received, in the dma-buf or outside.
    pub bytes: u64,
    /// Bytes that arrived outside the dma-buf.
    pub linear_bytes: u64,
    /// Fragments in the dma-buf.
    pub fragments: u64,
    /// Tokens that were never returned.
    pub tokens_held: u64,
    /// The first wrong byte, when the guest checks.
    pub mismatch: Option<Mismatch>,
    /// The peer closed its direction: nothing is missing at the end.
    pub end_of_stream: bool,
    /// What ended the stream otherwise; `None` too after [`Command::Stop`].
    pub error: Option<Failure>,
    /// From the first to the last byte, in nanoseconds of the guest's clock.
    pub elapsed_ns: u64,
}

/// Who writes the payload into the dma-buf of a [`DevmemSource`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Fill {
    /// The guest's CPU does.
    #[default]
    Guest,
    /// The host does, from outside: once it knows the place from [`Event::DmaBuf`], and before it
    /// says [`Command::Go`]. No CPU of the guest touches the payload, nor can the guest foresee it:
    /// the seed is not used. The dma-buf must hold the whole stream.
    Host,
}

/// Sends the seed's payload from a dma-buf that is bound for sending. While there is no route it
/// tries again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DevmemSource {
    /// Namespace that sends.
    pub ns: Ns,
    /// Interface that the route leads through.
    pub interface: String,
    /// Where the dma-buf's memory comes from.
    #[serde(default)]
    pub memory: Memory,
    /// Who writes the payload.
    #[serde(default)]
    pub fill: Fill,
    /// Size of the dma-buf in bytes, a multiple of the page size. It is refilled in pieces of
    /// `chunk` as sends complete; when it holds the whole stream, nothing is refilled.
    pub dmabuf_bytes: u64,
    /// Source address and port.
    pub bind: Option<SocketAddr>,
    /// Where to connect.
    pub connect: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
    /// Bytes to send; `None` sends until [`Command::Finish`].
    pub bytes: Option<u64>,
    /// Bytes of each send, at most the size of the dma-buf.
    pub chunk: u32,
}

/// Outcome of [`DevmemSource`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevmemSourceReport {
    /// Payload bytes that the socket accepted.
    pub bytes: u64,
    /// Send calls.
    pub sends: u64,
    /// Sends whose completion came.
    pub completions: u64,
    /// Completions that say that the kernel copied; always 0 for device memory.
    pub copied: u64,
    /// The peer took everything and closed the connection.
    pub delivered: bool,
    /// Segments that had to be sent again.
    pub retransmits: u32,
    /// What ended the stream early.
    pub error: Option<Failure>,
    /// From the first byte to the peer's close, in nanoseconds of the guest's clock.
    pub elapsed_ns: u64,
}

/// Receives a stream in a dma-buf and sends it on from there: device to device, as an accelerator
/// that passes work on would, without a copy and without a look at the payload.
///
/// One dma-buf is bound to receive queues and for sending. A fragment goes back to the NIC when the
/// NIC has sent it and its receiver has acknowledged it. Acknowledgements must not come in on the
/// bound queues: while memory is short nothing else does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DevmemRelay {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface that receives and sends.
    pub interface: String,
    /// Receive queues to bind.
    pub queues: Vec<u32>,
    /// Where the dma-buf's memory comes from.
    #[serde(default)]
    pub memory: Memory,
    /// Size of the dma-buf in bytes, a multiple of the page size.
    pub dmabuf_bytes: u64,
    /// Where to listen for the sender.
    pub listen: SocketAddr,
    /// Own address and port towards the receiver.
    pub bind: Option<SocketAddr>,
    /// Where to connect to the receiver, which must be listening.
    pub connect: SocketAddr,
}

/// Outcome of [`DevmemRelay`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevmemRelayReport {
    /// Payload bytes received.
    pub received: u64,
    /// Of those, bytes that arrived outside the dma-buf. They cannot be sent on, so they end the
    /// job.
    pub linear_bytes: u64,
    /// Fragments received in the dma-buf.
    pub fragments: u64,
    /// Payload bytes that the socket accepted for sending.
    pub sent: u64,
    /// Send calls.
    pub sends: u64,
    /// Sends whose completion came.
    pub completions: u64,
    /// Completions that say that the kernel copied; always 0 for device memory.
    pub copied: u64,
    /// Tokens that were never returned.
    pub tokens_held: u64,
    /// The sender closed its direction: nothing is missing at the end.
    pub end_of_stream: bool,
    /// The receiver took everything and closed the connection.
    pub delivered: bool,
    /// What ended it early.
    pub error: Option<Failure>,
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

/// Binds a dma-buf to receive queues and holds the binding until [`Command::CloseBinding`] or
/// [`Command::Stop`]. A refused bind is the failure of [`crate::StartJob`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Binding {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Receive queues to bind.
    pub queues: Vec<u32>,
    /// Where the dma-buf's memory comes from.
    #[serde(default)]
    pub memory: Memory,
    /// Size of the dma-buf in bytes, a multiple of the page size.
    pub dmabuf_bytes: u64,
    /// As in [`DevmemSink`].
    #[serde(default)]
    pub rx_page_size: Option<u32>,
}

/// Outcome of [`Binding`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingReport {
    /// Number that the kernel gave the binding.
    pub dmabuf: u32,
}

/// Receives numbered datagrams from a [`UdpSource`] until stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UdpSink {
    /// Namespace that listens.
    pub ns: Ns,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
}

/// Outcome of [`UdpSink`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSinkReport {
    /// Datagrams received, without duplicates.
    pub received: u64,
    /// Numbers missing below the highest one that came. What was lost after it shows against
    /// [`UdpSourceReport::sent`].
    pub missing: u64,
    /// Datagrams that came after one with a higher number.
    pub reordered: u64,
    /// Datagrams that came more than once.
    pub duplicates: u64,
    /// Datagrams whose payload was wrong.
    pub corrupt: u64,
    /// What ended it, other than [`Command::Stop`].
    pub error: Option<Failure>,
}

/// Sends numbered datagrams: the number as eight little-endian bytes, then the seed's payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UdpSource {
    /// Namespace that sends.
    pub ns: Ns,
    /// Source address and port.
    pub bind: Option<SocketAddr>,
    /// Where to send.
    pub connect: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
    /// Datagrams to send; `None` sends until [`Command::Finish`].
    pub datagrams: Option<u64>,
    /// Bytes of each datagram, 8 to 65507.
    pub size: u32,
    /// How many the kernel gets at once, to be segmented (`UDP_SEGMENT`); `None` is one, without
    /// that.
    pub batch: Option<u32>,
    /// Pause after each datagram, in microseconds.
    pub pause_us: u64,
}

/// Outcome of [`UdpSource`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSourceReport {
    /// Datagrams that the socket accepted.
    pub sent: u64,
    /// What ended it early.
    pub error: Option<Failure>,
}
