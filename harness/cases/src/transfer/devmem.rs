// SPDX-License-Identifier: MIT OR Apache-2.0

//! Streams into and out of device memory.

use protocol::{
    Command, DevmemSink, DevmemSource, Event, Fill, JobSpec, Payload, Release,
    devmem::{DevmemSinkReport, DevmemSourceReport},
    tcp::{SinkReport, SourceReport},
};
use vm::{DmaBufView, JobHandle};

use super::Stream;
use crate::{CaseError, Result, Testbed};

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

impl Stream {
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
