// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream into a dma-buf and has an engine put it into another one.

use std::{
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use devmem_tcp::{
    interface::Interface,
    memory::Memory,
    netdev::RxBinding,
    rx::{Capacity, Piece, Received, Receiver},
};
use gather::{CONTROL_BYTES, Gatherer, WorkQueue};
use protocol::{Command, DevmemGather, Failure, JobId, devmem::DevmemGatherReport};

use super::{
    job::{Control, Ready},
    memory, receive,
    switch::Switch,
    tcp,
};
use crate::{failure, netns};

/// How long the engine may take; only there to end a hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn set_up(id: JobId, spec: DevmemGather) -> Result<Ready> {
    let buffer = (spec.dmabuf_bytes / 4) as usize;
    let received = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    let gathered = memory::allocate(spec.memory, spec.gathered_bytes)?;
    let control = memory::allocate(spec.memory, CONTROL_BYTES as u64)?;
    let mut queue = WorkQueue::open(spec.engine, control)?;
    let (source, destination) = (queue.import(&received)?, queue.import(&gathered)?);
    let (listener, binding) = netns::within(spec.ns, || {
        let listener = tcp::listen(spec.listen, Some(buffer))?;
        let binder = RxBinding::to(Interface::by_name(&spec.interface)?);
        let binding = binder.queues(spec.queues.iter().copied()).bind(&received)?;
        Ok((Arc::new(listener), binding))
    })?;
    memory::report_place(id, &received)?;
    memory::report_place(id, &gathered)?;
    let switch = Switch::new("DevmemGather");
    switch.watch(&listener);
    let gathered = Arc::new(gathered);
    let hold = Arc::new(Hold {
        _received: received,
        _binding: binding,
        _gathered: Arc::clone(&gathered),
        switch: Arc::clone(&switch),
    });
    Ok(Ready::new::<DevmemGather>(hold, move || {
        let job = Gather {
            gatherer: Gatherer::new(queue, source, destination),
            gathered: &gathered,
            report: DevmemGatherReport {
                bytes: 0,
                linear_bytes: 0,
                fragments: 0,
                descriptors: 0,
                end_of_stream: false,
                error: None,
            },
        };
        job.run(id, listener, &switch)
    }))
}

/// Lives until the job is joined: the host may still be reading.
struct Hold {
    _received: Memory,
    _binding: RxBinding,
    _gathered: Arc<Memory>,
    switch: Arc<Switch>,
}

impl Control for Hold {
    fn tell(&self, command: &Command) -> Result<()> {
        self.switch.tell(command)
    }
}

struct Gather<'a> {
    gatherer: Gatherer,
    gathered: &'a Memory,
    report: DevmemGatherReport,
}

impl Gather<'_> {
    fn run(mut self, id: JobId, listener: Arc<TcpListener>, switch: &Switch) -> DevmemGatherReport {
        let result = match tcp::accept(listener, switch, id) {
            Ok(Some(stream)) => self
                .receive(&stream)
                .map_err(|error| failure::from_error(&error)),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.report.error = result.err().filter(|_: &Failure| !switch.stopped());
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
