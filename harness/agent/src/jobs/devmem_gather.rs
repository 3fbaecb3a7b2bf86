// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream into a dma-buf and has an engine put it into another one.

use std::{
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use devmem_tcp::{
    memory::Memory,
    rx::{Capacity, Piece, Received, Receiver},
};
use gather::{CONTROL_BYTES, Gatherer, WorkQueue};
use protocol::{DevmemGather, JobId, devmem::DevmemGatherReport};

use super::{
    binding::bind,
    job::Ready,
    memory, receive,
    switch::{Holding, Switch},
    tcp,
};

/// How long the engine may take; only there to end a hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn set_up(id: JobId, spec: DevmemGather) -> Result<Ready> {
    let buffer = (spec.dmabuf_bytes / 4) as usize;
    let received = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    let gathered = memory::allocate(spec.memory, spec.gathered_bytes)?;
    let control = memory::allocate(spec.memory, CONTROL_BYTES as u64)?;
    let mut queue = WorkQueue::open(spec.engine, control)?;
    let (source, destination) = (queue.import(&received)?, queue.import(&gathered)?);
    let listener = tcp::listen(spec.ns, spec.listen, Some(buffer))?;
    let binding = bind(spec.ns, &spec.interface, &spec.queues, &received, None)?;
    memory::report_place(id, &received)?;
    memory::report_place(id, &gathered)?;
    let switch = Switch::watching("DevmemGather", &listener);
    let held = (gathered, received, binding);
    let holding = Arc::new(Holding { switch, held });
    Ok(Ready::new::<DevmemGather, _>(holding, move |holding| {
        let (gathered, ..) = &holding.held;
        let job = Gather {
            gatherer: Gatherer::new(queue, source, destination),
            gathered,
            report: DevmemGatherReport::default(),
        };
        job.run(id, listener, &holding.switch)
    }))
}

struct Gather<'a> {
    gatherer: Gatherer,
    gathered: &'a Memory,
    report: DevmemGatherReport,
}

impl Gather<'_> {
    fn run(mut self, id: JobId, listener: Arc<TcpListener>, switch: &Switch) -> DevmemGatherReport {
        let result = tcp::accept(listener, switch, id).and_then(|stream| self.receive(&stream));
        self.report.error = switch.failure(result);
        self.report.descriptors = self.gatherer.descriptors();
        self.report
    }

    fn receive(&mut self, stream: &TcpStream) -> Result<()> {
        receive::devmem(stream, Capacity::default(), |receiver, received| {
            self.take(receiver, received)
        })
    }

    /// Puts what one call has received into place, and returns its fragments.
    fn take(&mut self, receiver: &mut Receiver<&TcpStream>, received: &mut Received) -> Result<()> {
        let report = &mut self.report;
        let mut run = Vec::new();
        for piece in received.pieces() {
            match piece {
                Piece::Device(fragment) => run.push(fragment),
                Piece::Linear(bytes) => {
                    self.gatherer.gather(&run, PATIENCE)?;
                    run.clear();
                    let at = self.gatherer.skip(bytes.len() as u64);
                    let at = at.try_into().context("the stream is too long")?;
                    self.gathered.write_at(at, bytes)?;
                }
            }
        }
        self.gatherer.gather(&run, PATIENCE)?;
        self.gatherer.settle(PATIENCE)?;
        report.bytes += received.bytes();
        report.linear_bytes += received.linear.len() as u64;
        report.fragments += received.fragments.len() as u64;
        receiver.recycle(received.fragments.drain(..))?;
        report.end_of_stream = received.end_of_stream;
        Ok(())
    }
}
