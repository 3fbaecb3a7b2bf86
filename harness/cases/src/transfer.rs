// SPDX-License-Identifier: MIT OR Apache-2.0

//! Transfers whose payload is verified: ordinary ones, and into and out of device memory.

mod devmem;

use std::net::SocketAddr;

use protocol::{
    Binding, Memory, TcpSink, TcpSource,
    rss::FlowQueue,
    tcp::{SinkReport, SourceReport},
};
use vm::JobHandle;

pub use self::devmem::{Received, Sent};
use crate::{CaseError, Family, Result, Station, Testbed};

/// A stream of seeded payload from one station to the other.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Who sends.
    pub from: Station,
    /// Who receives.
    pub to: Station,
    /// Over what.
    pub family: Family,
    /// Where the receiver listens.
    pub port: u16,
    /// Seed of the payload.
    pub seed: u64,
    /// Where the memory of dma-bufs comes from.
    pub memory: Memory,
    /// The sender's own address and port; `None` lets its kernel choose.
    pub bind: Option<SocketAddr>,
    /// Bytes of a hop-by-hop header in every packet of payload; IPv6 only.
    pub hop_by_hop: u16,
    /// Size of the buffers that a bound queue receives into, in bytes; `None` is the base page.
    pub rx_page_size: Option<u32>,
}

impl Testbed {
    /// A new stream with a port and a seed of its own.
    pub fn stream(&self, from: Station, to: Station, family: Family) -> Stream {
        let port = self.port();
        Stream {
            from,
            to,
            family,
            port,
            seed: 0x5eed_0000 + u64::from(port),
            memory: Memory::Udmabuf,
            bind: None,
            hop_by_hop: 0,
            rx_page_size: None,
        }
    }

    /// Transfers `bytes` in a new stream, in writes of 64 KiB, as [`Stream::transfer`] does.
    pub fn transfer(
        &self,
        from: Station,
        to: Station,
        family: Family,
        bytes: u64,
    ) -> Result<(SourceReport, SinkReport)> {
        let stream = self.stream(from, to, family);
        stream.transfer(self, bytes, &[64 << 10])
    }

    /// As [`Testbed::transfer`], over IPv4 and then over IPv6.
    pub fn transfer_over_both(&self, from: Station, to: Station, bytes: u64) -> Result {
        for family in Family::BOTH {
            self.transfer(from, to, family, bytes)?;
        }
        Ok(())
    }

    /// As [`Testbed::transfer_over_both`], from the NIC under test to its peer and back.
    pub fn transfer_both_ways(&self, bytes: u64) -> Result {
        self.transfer_over_both(self.local, self.peer, bytes)?;
        self.transfer_over_both(self.peer, self.local, bytes)
    }

    /// A dma-buf for a queue, in which a NIC receives into pages.
    #[must_use]
    pub fn binding(
        &self,
        station: Station,
        queue: u32,
        memory: Memory,
        dmabuf_bytes: u64,
    ) -> Binding {
        Binding {
            ns: station.ns,
            interface: station.name(),
            queues: vec![queue],
            memory,
            dmabuf_bytes,
            rx_page_size: None,
        }
    }

    /// Binds a dma-buf to a queue and holds it. If that is refused, the error has the errno.
    pub fn bind(
        &self,
        station: Station,
        queue: u32,
        memory: Memory,
        dmabuf_bytes: u64,
    ) -> std::result::Result<JobHandle<'_, Binding>, vm::Error> {
        let binding = self.binding(station, queue, memory, dmabuf_bytes);
        self.guest.start(binding)
    }
}

impl Stream {
    /// The queue on which the receiving NIC puts packets from `source`.
    pub fn queue_from(&self, bed: &Testbed, source: SocketAddr) -> Result<u32> {
        let place = bed.guest.call(FlowQueue::on(
            self.to,
            source,
            self.to.socket(self.family, self.port),
        ))?;
        Ok(place.queue)
    }

    /// The same stream, between ports whose packets reach `queue` of the receiving NIC.
    pub fn reaching(self, bed: &Testbed, queue: u32) -> Result<Self> {
        self.between_ports(bed, |stream, source| {
            Ok(stream.queue_from(bed, source)? == queue)
        })
    }

    /// As [`Stream::reaching`], and its acknowledgements reach queue 0 of the sending NIC.
    pub fn reaching_with_acknowledgements_apart(self, bed: &Testbed, queue: u32) -> Result<Self> {
        self.between_ports(bed, |stream, source| {
            let back = Self {
                from: stream.to,
                to: stream.from,
                port: source.port(),
                ..stream.clone()
            };
            let sink = stream.to.socket(stream.family, stream.port);
            Ok(stream.queue_from(bed, source)? == queue && back.queue_from(bed, sink)? == 0)
        })
    }

    /// The same stream, between ports that satisfy `wanted`.
    ///
    /// Both vary: with some keys, the bits of one alone reach only a few entries of the table.
    fn between_ports(
        self,
        bed: &Testbed,
        wanted: impl Fn(&Self, SocketAddr) -> Result<bool>,
    ) -> Result<Self> {
        // The chance that a flow misses the queue is at most 15 in 16.
        for _ in 0..1000 {
            let source = self.from.socket(self.family, bed.port());
            let stream = Self {
                bind: Some(source),
                port: bed.port(),
                ..self.clone()
            };
            if wanted(&stream, source)? {
                return Ok(stream);
            }
        }
        Err(CaseError::new("no flow reaches the queue"))
    }

    /// The same stream; a bound queue receives it into buffers of this many bytes. Memory of a
    /// dma-heap is contiguous enough for them, while a udmabuf's pages are not.
    #[must_use]
    pub fn in_buffers_of(self, bytes: u32) -> Self {
        let memory = match self.memory {
            Memory::Udmabuf => Memory::SystemHeap,
            other => other,
        };
        Self {
            memory,
            rx_page_size: Some(bytes),
            ..self
        }
    }

    /// Receives it in ordinary memory.
    pub fn sink<'g>(&self, bed: &'g Testbed) -> Result<JobHandle<'g, TcpSink>> {
        Ok(bed.guest.start(TcpSink {
            ns: self.to.ns,
            listen: self.to.socket(self.family, self.port),
            seed: self.seed,
        })?)
    }

    /// Sends it from ordinary memory, in writes of these sizes; with `None` until
    /// [`protocol::Command::Finish`].
    pub fn source<'g>(
        &self,
        bed: &'g Testbed,
        bytes: Option<u64>,
        chunks: &[u32],
        pause_us: u64,
    ) -> Result<JobHandle<'g, TcpSource>> {
        Ok(bed.guest.start(TcpSource {
            ns: self.from.ns,
            bind: self.bind,
            connect: self.to.socket(self.family, self.port),
            seed: self.seed,
            bytes,
            chunks: chunks.to_vec(),
            pause_us,
            hop_by_hop: self.hop_by_hop,
        })?)
    }

    /// Transfers `bytes` between ordinary sockets. Fails unless all of them arrive and are right.
    pub fn transfer(
        &self,
        bed: &Testbed,
        bytes: u64,
        chunks: &[u32],
    ) -> Result<(SourceReport, SinkReport)> {
        self.transfer_between([bed, bed], bytes, chunks)
    }

    /// As [`Stream::transfer`], from one testbed to another one.
    pub fn transfer_between(
        &self,
        [from, to]: [&Testbed; 2],
        bytes: u64,
        chunks: &[u32],
    ) -> Result<(SourceReport, SinkReport)> {
        let sink = self.sink(to)?;
        let source = self.source(from, Some(bytes), chunks, 0)?.join()?;
        let sink = sink.join()?;
        delivered(bytes, &source, &sink)?;
        Ok((source, sink))
    }
}

/// Ends a running stream. Fails unless everything sent arrived and is correct.
pub fn finish(source: JobHandle<'_, TcpSource>, sink: JobHandle<'_, TcpSink>) -> Result {
    let source = source.finish()?;
    delivered(source.bytes, &source, &sink.join()?)
}

/// Fails unless `bytes` were sent, received and correct.
fn delivered(bytes: u64, source: &SourceReport, sink: &SinkReport) -> Result {
    let whole = source.delivered && sink.end_of_stream && sink.bytes == bytes;
    if whole && sink.mismatch.is_none() {
        Ok(())
    } else {
        Err(CaseError::new(format!(
            "expected {bytes} bytes to arrive as they were sent, but the sender says {source:?} \
             and the receiver {sink:?}"
        )))
    }
}
