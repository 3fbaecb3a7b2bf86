// SPDX-License-Identifier: MIT OR Apache-2.0

//! Device memory TCP.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Failure, Memory, Mismatch, Ns, Release};

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
    /// The guest checks the payload of a fragment right before it releases it, or when the stream
    /// ends and it still holds it.
    pub verify: bool,
    /// Report every fragment as [`crate::Event::Fragments`].
    pub report: bool,
    /// When tokens go back.
    pub release: Release,
}

/// Outcome of [`DevmemSink`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// What ended the stream otherwise; `None` too after [`crate::Command::Stop`].
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
    /// The host does, from outside: once it knows the place from [`crate::Event::DmaBuf`], and before it
    /// says [`crate::Command::Go`]. No CPU of the guest touches the payload, nor can the guest foresee it:
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
    /// Bytes to send; `None` sends until [`crate::Command::Finish`].
    pub bytes: Option<u64>,
    /// Bytes of each send, at most the size of the dma-buf.
    pub chunk: u32,
}

/// Outcome of [`DevmemSource`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Receives a stream in a dma-buf, and has the engine of an accelerator put it into another one, in one
/// piece: as what computes on it would, without a copy by a CPU.
///
/// A fragment goes back to the NIC when the engine has moved it. What arrived outside the dma-buf is copied
/// into place. The first [`crate::Event::DmaBuf`] is about the memory that is received into, the second about
/// that where the stream is put.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DevmemGather {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// Receive queues to bind.
    pub queues: Vec<u32>,
    /// Where the memory of both dma-bufs comes from.
    pub memory: Memory,
    /// Number of the engine, from 0.
    pub engine: u32,
    /// Size of the dma-buf that is received into, in bytes.
    pub dmabuf_bytes: u64,
    /// Size of the one that the stream is put into, in bytes: all of it.
    pub gathered_bytes: u64,
    /// Where to listen.
    pub listen: SocketAddr,
}

/// Outcome of [`DevmemGather`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevmemGatherReport {
    /// Payload bytes received, in the dma-buf or outside.
    pub bytes: u64,
    /// Of those, bytes that arrived outside the dma-buf.
    pub linear_bytes: u64,
    /// Fragments in the dma-buf.
    pub fragments: u64,
    /// Descriptors that the engine executed.
    pub descriptors: u64,
    /// The peer closed its direction: nothing is missing at the end.
    pub end_of_stream: bool,
    /// What ended it early.
    pub error: Option<Failure>,
}

/// Binds a dma-buf to receive queues and holds the binding until [`crate::Command::CloseBinding`] or
/// [`crate::Command::Stop`]. A refused bind is the failure of [`crate::StartJob`].
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingReport {
    /// Number that the kernel gave the binding.
    pub dmabuf: u32,
}

/// Sends what an engine computes, message by message: each is on the NIC's ring before it is computed, and an
/// engine tells the NIC. [`crate::Command::Go`] begins. Then reports [`crate::Event::Progress`] with all bytes, and
/// ends with [`crate::Command::Finish`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DevmemSignalled {
    /// Namespace of the interface.
    pub ns: Ns,
    /// Interface name.
    pub interface: String,
    /// PCI address of the NIC.
    pub nic: String,
    /// TX queue that the flow is sent on.
    pub queue: u32,
    /// Where the memory of the dma-bufs comes from.
    pub memory: Memory,
    /// Number of the engine, from 0.
    pub engine: u32,
    /// Where to connect to.
    pub connect: SocketAddr,
    /// Seed of the payload.
    pub seed: u64,
    /// How many messages there are.
    pub messages: u32,
    /// Bytes of each, a multiple of the page size.
    pub message_bytes: u32,
    /// Whether the engine rings. If not, the NIC's driver has to, and the engine tries it afterwards.
    pub signal: bool,
}

/// Outcome of [`DevmemSignalled`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevmemSignalledReport {
    /// Completed sends whose payload the kernel had copied.
    pub copied: u64,
    /// The peer has taken everything.
    pub delivered: bool,
    /// What ended it early.
    pub error: Option<Failure>,
}
