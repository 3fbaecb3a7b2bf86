// SPDX-License-Identifier: MIT OR Apache-2.0

//! Transfers whose payload is verified: ordinary ones, and into and out of device memory.

use std::net::SocketAddr;

use protocol::{
    Binding, Command, DevmemSink, DevmemSource, Event, Fill, JobSpec, Memory, Payload, Release,
    TcpSink, TcpSource,
    devmem::{DevmemSinkReport, DevmemSourceReport},
    rss::FlowQueue,
    tcp::{SinkReport, SourceReport},
};
use vm::{DmaBufView, JobHandle};

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

/// The result of [`Stream::receive_devmem`].
#[derive(Debug, Clone)]
pub struct Received {
    /// The receiver's report.
    pub sink: DevmemSinkReport,
    /// The sender's report.
    pub source: SourceReport,
    /// Bytes that the host found correct in the dma-buf's memory.
    pub verified: u64,
}

impl Received {
    /// Asserts that all `bytes` are in device memory and correct, and nothing is elsewhere.
    pub fn assert_whole(&self, bytes: u64) {
        assert_eq!(
            (self.verified, self.sink.bytes, self.sink.linear_bytes),
            (bytes, bytes, 0),
            "{self:?}"
        );
        assert_eq!(self.sink.error, None, "{self:?}");
        assert!(self.source.delivered, "{self:?}");
    }
}

/// The result of [`Stream::send_devmem`].
#[derive(Debug, Clone)]
pub struct Sent {
    /// The sender's report.
    pub source: DevmemSourceReport,
    /// The receiver's report.
    pub sink: SinkReport,
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

    /// Binds a dma-buf to a queue and holds it. If that is refused, the error has the errno.
    pub fn bind(
        &self,
        station: Station,
        queue: u32,
        memory: Memory,
        dmabuf_bytes: u64,
    ) -> std::result::Result<JobHandle<'_, Binding>, vm::Error> {
        self.guest.start(Binding {
            ns: station.ns,
            interface: station.name(),
            queues: vec![queue],
            memory,
            dmabuf_bytes,
            rx_page_size: None,
        })
    }
}

impl Stream {
    /// The queue on which the receiving NIC puts packets from `source`.
    pub fn queue_from(&self, bed: &Testbed, source: SocketAddr) -> Result<u32> {
        let place = bed.guest.call(FlowQueue {
            ns: self.to.ns,
            interface: self.to.name(),
            source,
            destination: self.to.socket(self.family, self.port),
        })?;
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
    /// [`Command::Finish`].
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

    /// Receives it in a dma-buf bound to `queue`. The guest verifies each fragment as it releases
    /// it.
    #[must_use]
    pub fn devmem_sink_spec(&self, queue: u32, dmabuf_bytes: u64, release: Release) -> DevmemSink {
        DevmemSink {
            ns: self.to.ns,
            interface: self.to.name(),
            queues: vec![queue],
            memory: self.memory,
            dmabuf_bytes,
            rx_page_size: self.rx_page_size,
            listen: self.to.socket(self.family, self.port),
            seed: self.seed,
            verify: true,
            report: false,
            release,
        }
    }

    /// As [`Stream::devmem_sink_spec`], started.
    pub fn devmem_sink<'g>(
        &self,
        bed: &'g Testbed,
        queue: u32,
        dmabuf_bytes: u64,
        release: Release,
    ) -> Result<JobHandle<'g, DevmemSink>> {
        Ok(bed
            .guest
            .start(self.devmem_sink_spec(queue, dmabuf_bytes, release))?)
    }

    /// Receives it in a dma-buf bound to `queue`, for [`Stream::verify_and_release`] on the host.
    pub fn devmem_sink_for_host<'g>(
        &self,
        bed: &'g Testbed,
        queue: u32,
        dmabuf_bytes: u64,
    ) -> Result<JobHandle<'g, DevmemSink>> {
        Ok(bed.guest.start(DevmemSink {
            // Without the seed, the guest cannot predict the payload.
            seed: 0,
            verify: false,
            report: true,
            ..self.devmem_sink_spec(queue, dmabuf_bytes, Release::OnRequest)
        })?)
    }

    /// Sends it from a dma-buf; with `None` until [`Command::Finish`].
    #[must_use]
    pub fn devmem_source_spec(
        &self,
        bytes: Option<u64>,
        dmabuf_bytes: u64,
        chunk: u32,
    ) -> DevmemSource {
        DevmemSource {
            ns: self.from.ns,
            interface: self.from.name(),
            memory: self.memory,
            fill: Fill::Guest,
            dmabuf_bytes,
            bind: self.bind,
            connect: self.to.socket(self.family, self.port),
            seed: self.seed,
            bytes,
            chunk,
        }
    }

    /// As [`Stream::devmem_source_spec`], started.
    pub fn devmem_source<'g>(
        &self,
        bed: &'g Testbed,
        bytes: Option<u64>,
        dmabuf_bytes: u64,
        chunk: u32,
    ) -> Result<JobHandle<'g, DevmemSource>> {
        Ok(bed
            .guest
            .start(self.devmem_source_spec(bytes, dmabuf_bytes, chunk))?)
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

    /// Receives `bytes` in a dma-buf bound to `queue`. The host reads the dma-buf's memory and
    /// compares it with the seed's payload, while the receiver holds the tokens.
    ///
    /// `progress` is called with the number of bytes verified so far.
    pub fn receive_devmem(
        &self,
        bed: &Testbed,
        queue: u32,
        bytes: u64,
        dmabuf_bytes: u64,
        progress: impl FnMut(u64),
    ) -> Result<Received> {
        let mut sink = self.devmem_sink_for_host(bed, queue, dmabuf_bytes)?;
        let source = self.source(bed, Some(bytes), &[256 << 10], 0)?;
        let verified = self.verify_and_release(bed, &mut sink, progress)?;
        Ok(Received {
            sink: sink.join()?,
            source: source.join()?,
            verified,
        })
    }

    /// Checks each fragment that a sink reports and has the sink release it, until it ends; returns
    /// the bytes that were right.
    pub fn verify_and_release<J: JobSpec>(
        &self,
        bed: &Testbed,
        sink: &mut JobHandle<'_, J>,
        progress: impl FnMut(u64),
    ) -> Result<u64> {
        self.verify_and_release_in(bed, None, sink, progress)
    }

    /// As [`Stream::verify_and_release`], for a sink whose [`Event::DmaBuf`] was read already.
    pub fn verify_and_release_in<'g, J: JobSpec>(
        &self,
        bed: &'g Testbed,
        mut view: Option<DmaBufView<'g>>,
        sink: &mut JobHandle<'_, J>,
        mut progress: impl FnMut(u64),
    ) -> Result<u64> {
        let payload = Payload::new(self.seed);
        let mut verified = 0;

        while let Some(event) = sink.next_event(bed.guest.call_timeout())? {
            match event {
                Event::DmaBuf { ranges } => view = Some(bed.guest.dmabuf(ranges)?),
                Event::Fragments {
                    batch,
                    stream_offset,
                    fragments,
                } => {
                    let Some(view) = &view else {
                        return Err(CaseError::new("fragments came before their dma-buf"));
                    };
                    let mut at = stream_offset;
                    for fragment in fragments {
                        if let Some(mismatch) = view.check(fragment, payload, at)? {
                            return Err(CaseError::new(format!(
                                "the dma-buf at {fragment:?} holds the wrong bytes: {mismatch:?}; \
                                 logs are in {}",
                                bed.guest.directory().display()
                            )));
                        }
                        at += u64::from(fragment.len);
                        verified += u64::from(fragment.len);
                    }
                    progress(verified);
                    sink.tell(Command::Release { batch })?;
                }
                _ => {}
            }
        }
        Ok(verified)
    }

    /// Sends `bytes` from a dma-buf to an ordinary socket, which verifies them.
    ///
    /// `progress` is called with the number of bytes that have arrived so far.
    pub fn send_devmem(
        &self,
        bed: &Testbed,
        bytes: u64,
        dmabuf_bytes: u64,
        chunk: u32,
        mut progress: impl FnMut(u64),
    ) -> Result<Sent> {
        let mut sink = self.sink(bed)?;
        let source = self.devmem_source(bed, Some(bytes), dmabuf_bytes, chunk)?;

        while let Some(event) = sink.next_event(bed.guest.call_timeout())? {
            if let Event::Progress { bytes } = event {
                progress(bytes);
            }
        }
        Ok(Sent {
            source: source.join()?,
            sink: sink.join()?,
        })
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
