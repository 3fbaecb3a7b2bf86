// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream with `read` and copies it into a dma-buf.

use std::{net::TcpListener, sync::Arc};

use anyhow::Result;
use devmem_tcp::{MemoryError, dmabuf::CpuAccess, memory::Memory};
use protocol::{Command, CopySink, Failure, JobId, tcp::SinkReport};

use super::{
    job::{Control, Ready},
    memory, receive,
    report::Meter,
    switch::Switch,
    tcp,
};
use crate::{failure, netns};

/// Size of the receive buffer, in bytes.
const BUFFER: usize = 256 << 10;

pub(super) fn set_up(id: JobId, spec: CopySink) -> Result<Ready> {
    let listener = Arc::new(netns::within(spec.ns, || tcp::listen(spec.listen, None))?);
    let dmabuf = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    memory::report_place(id, &dmabuf)?;
    let switch = Switch::new("CopySink");
    switch.watch(&listener);
    let sink = Arc::new(Sink { id, switch, dmabuf });
    let control = Arc::clone(&sink);
    Ok(Ready::new::<CopySink>(control, move || sink.run(listener)))
}

/// The dma-buf lives until the job is joined: the host may still be reading.
struct Sink {
    id: JobId,
    switch: Arc<Switch>,
    dmabuf: Memory,
}

impl Control for Sink {
    fn tell(&self, command: &Command) -> Result<()> {
        self.switch.tell(command)
    }
}

impl Sink {
    fn run(&self, listener: Arc<TcpListener>) -> SinkReport {
        let mut report = SinkReport {
            bytes: 0,
            mismatch: None,
            end_of_stream: false,
            error: None,
            elapsed_ns: 0,
        };
        let mut meter = Meter::new(self.id);
        match self.receive(listener, &mut report.bytes, &mut meter) {
            Ok(()) => report.end_of_stream = !self.switch.stopped(),
            Err(error) => report.error = Some(error).filter(|_| !self.switch.stopped()),
        }
        report.elapsed_ns = meter.elapsed_ns();
        report
    }

    /// Receives until the end of the stream, or until the job is stopped.
    fn receive(
        &self,
        listener: Arc<TcpListener>,
        bytes: &mut u64,
        meter: &mut Meter,
    ) -> Result<(), Failure> {
        let Some(stream) = tcp::accept(listener, &self.switch, self.id)? else {
            return Ok(());
        };
        let received = receive::copied(&stream, BUFFER, |piece| {
            self.copy(*bytes, piece)?;
            *bytes += piece.len() as u64;
            meter.passed(*bytes);
            Ok(())
        });
        received.map_err(|error| failure::from_error(&error))
    }

    /// Copies a piece of the stream into the dma-buf, wrapping around at its end.
    fn copy(&self, stream_offset: u64, piece: &[u8]) -> Result<(), MemoryError> {
        self.dmabuf.begin_cpu_access(CpuAccess::Write)?;
        let mut at = (stream_offset % self.dmabuf.len() as u64) as usize;
        let mut rest = piece;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.dmabuf.len() - at));
            self.dmabuf.view().write_at(at, now)?;
            (at, rest) = (0, later);
        }
        self.dmabuf.end_cpu_access(CpuAccess::Write)
    }
}
