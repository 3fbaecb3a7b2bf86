// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream with `read` and copies it into a dma-buf.

use std::{net::TcpListener, sync::Arc};

use anyhow::Result;
use devmem_tcp::{MemoryError, dmabuf::CpuAccess, memory::Memory};
use protocol::{CopySink, JobId, tcp::SinkReport};

use super::{
    job::Ready,
    memory, receive,
    report::Meter,
    switch::{Holding, Switch},
    tcp,
};

/// Size of the receive buffer, in bytes.
const BUFFER: usize = 256 << 10;

pub(super) fn set_up(id: JobId, spec: CopySink) -> Result<Ready> {
    let listener = tcp::listen(spec.ns, spec.listen, None)?;
    let held = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    memory::report_place(id, &held)?;
    let switch = Switch::watching("CopySink", &listener);
    let holding = Arc::new(Holding { switch, held });
    Ok(Ready::new::<CopySink, _>(holding, move |holding| {
        run(id, listener, &holding.switch, &holding.held)
    }))
}

/// Receives until the end of the stream, or until the job is stopped.
fn run(id: JobId, listener: Arc<TcpListener>, switch: &Switch, dmabuf: &Memory) -> SinkReport {
    let mut report = SinkReport::default();
    let mut meter = Meter::new(id);
    let received = tcp::accept(listener, switch, id).and_then(|stream| {
        receive::copied(&stream, BUFFER, |piece| {
            copy(dmabuf, report.bytes, piece)?;
            report.bytes += piece.len() as u64;
            meter.passed(report.bytes);
            Ok(())
        })
    });
    report.end_of_stream = received.is_ok() && !switch.stopped();
    report.error = switch.failure(received);
    report.elapsed_ns = meter.elapsed_ns();
    report
}

/// Copies a piece of the stream into the dma-buf, wrapping around at its end.
fn copy(dmabuf: &Memory, stream_offset: u64, piece: &[u8]) -> Result<(), MemoryError> {
    dmabuf.begin_cpu_access(CpuAccess::Write)?;
    let mut at = (stream_offset % dmabuf.len() as u64) as usize;
    let mut rest = piece;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(dmabuf.len() - at));
        dmabuf.view().write_at(at, now)?;
        (at, rest) = (0, later);
    }
    dmabuf.end_cpu_access(CpuAccess::Write)
}
