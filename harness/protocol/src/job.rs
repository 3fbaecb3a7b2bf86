// SPDX-License-Identifier: MIT OR Apache-2.0

//! Work that goes on in the guest while the host does something else.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    JobId,
    any_of::any_of,
    bytes::Bytes,
    devmem, measure,
    memory::{PhysicalRange, Span},
    program, tcp, udp, xsk, zcrx,
};

/// A job together with the type of its outcome.
pub trait JobSpec: Into<Job> {
    /// What [`crate::Join`] returns.
    type Outcome: Serialize + DeserializeOwned;
}

any_of! {
    /// Any job, as it goes over the wire.
    pub enum Job: JobSpec::Outcome {
        tcp {
            TcpSink -> tcp::SinkReport,
            TcpSource -> tcp::SourceReport,
            CopySink -> tcp::SinkReport,
        }
        devmem {
            DevmemSink -> devmem::DevmemSinkReport,
            DevmemSource -> devmem::DevmemSourceReport,
            DevmemRelay -> devmem::DevmemRelayReport,
            DevmemGather -> devmem::DevmemGatherReport,
            DevmemSignalled -> devmem::DevmemSignalledReport,
            Binding -> devmem::BindingReport,
        }
        udp {
            UdpSink -> udp::UdpSinkReport,
            UdpSource -> udp::UdpSourceReport,
        }
        zcrx {
            ZcrxSink -> zcrx::ZcrxSinkReport,
        }
        xsk {
            XdpSocket -> xsk::XdpSocketReport,
        }
        measure {
            MeasuredSink -> measure::MeasuredSinkReport,
            MeasuredSource -> measure::MeasuredSourceReport,
            Restarts -> measure::RestartsReport,
            PacedWire -> measure::PacedWireReport,
        }
        program {
            Program -> program::ProgramReport,
        }
    }
}

/// A command to a running job, sent with [`crate::Tell`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// End now: sockets are shut down and bindings closed, whatever is in flight is given up.
    Stop,
    /// A source stops after what it is sending, then closes its direction and waits for the peer
    /// to have taken everything.
    Finish,
    /// [`crate::DevmemSink`] or [`crate::ZcrxSink`] with [`crate::Release::OnRequest`]: return this
    /// batch's fragments.
    Release {
        /// From [`Event::Fragments`].
        batch: u64,
    },
    /// Return all fragments that the sink holds; works with every [`crate::Release`].
    ReleaseAll,
    /// Close the netlink socket that holds the dma-buf bound, and go on without, also if nothing can
    /// be sent from then on. A [`crate::ZcrxSink`] closes its io_uring and ends.
    CloseBinding,
    /// [`crate::DevmemSink`], [`crate::DevmemSource`], [`crate::ZcrxSink`]: close the dma-buf. A
    /// binding keeps its memory.
    CloseDmaBuf,
    /// [`crate::DevmemSource`] with [`crate::Fill::Host`]: the dma-buf holds the stream, send it.
    Go,
    /// [`crate::Program`]: see there.
    Program(program::ProgramCommand),
    /// Kill the process that the job runs in, if it has one of its own
    /// ([`crate::StartJob::process`]), or the [`crate::Program`] that the job is.
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
    /// [`crate::DevmemSink`], [`crate::ZcrxSink`]: payload arrived in the dma-buf or area.
    Fragments {
        /// Number of the batch, counted from 0; [`Command::Release`] names it.
        batch: u64,
        /// Offset in the stream of the first fragment, in bytes. The others follow without gap.
        stream_offset: u64,
        /// Pieces of the dma-buf in the order of the stream.
        fragments: Vec<Span>,
    },
    /// [`crate::DevmemSink`]: payload arrived outside the dma-buf.
    Linear {
        /// Offset in the stream of its first byte.
        stream_offset: u64,
        /// Bytes.
        len: u64,
    },
    /// [`crate::Program`]: it has written something.
    Output {
        /// Where.
        stream: program::Stream,
        /// What.
        bytes: Bytes,
    },
    /// The job ended; [`crate::Join`] returns at once.
    Ended,
}

/// Sets a job up and starts it.
///
/// The reply comes when the job is ready: a sink listens, a source is connected, a binding is
/// bound. A setup that fails is this request's failure, with the kernel's errno, and there is no
/// job then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartJob {
    /// What to run.
    pub job: Job,
    /// Run it in a process of its own, which [`Command::Kill`] ends. It sees the local namespace
    /// only. When it is killed, joining fails.
    #[serde(default)]
    pub process: bool,
}

/// Tells a job something. Fails when the job does not understand it or is unknown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tell {
    /// Which job.
    pub job: JobId,
    /// What to do.
    pub command: Command,
}

/// Waits for the job's end; the reply is [`crate::JobSpec::Outcome`] as JSON.
///
/// A job is joined once; its resources (sockets, bindings, dma-bufs) are gone then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Join {
    /// Which job.
    pub job: JobId,
}
