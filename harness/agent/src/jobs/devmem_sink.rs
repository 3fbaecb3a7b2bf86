// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream into a dma-buf.

use std::{
    collections::BTreeMap,
    mem,
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
};

use anyhow::{Context, Result};
use devmem::{
    netdev::RxBinding,
    rx::{Fragment, Piece, Received, Receiver, TokenReturner},
};
use protocol::{
    Command, DevmemSink, Event, Failure, JobId, Release, devmem::DevmemSinkReport, memory::Span,
};

use super::{
    binding,
    job::{Control, Ready, not_understood},
    memory,
    report::{Checker, Meter},
    switch::Switch,
    tcp,
};
use crate::{failure, lock::lock, netns, outbox::send_event};

pub(super) fn set_up(id: JobId, spec: DevmemSink) -> Result<Ready> {
    // The window closes when payload waiting in the socket takes half of the dma-buf. A larger
    // window would invite packets for which there is no memory.
    let buffer = (spec.dmabuf_bytes / 4) as usize;
    let listener = Arc::new(netns::within(spec.ns, || {
        tcp::listen(spec.listen, Some(buffer))
    })?);
    let dmabuf = memory::allocate(spec.memory, spec.dmabuf_bytes)?;
    let binding = binding::bind(
        spec.ns,
        &spec.interface,
        &spec.queues,
        &dmabuf,
        spec.rx_page_size,
    )?;
    memory::report_place(id, &dmabuf)?;
    let switch = Switch::new("DevmemSink");
    switch.watch(&listener);
    let held = Held {
        stream: Weak::new(),
        batches: BTreeMap::new(),
        returner: TokenReturner::default(),
        checker: Checker::new(spec.seed),
    };
    let sink = Arc::new(Sink {
        id,
        spec,
        switch,
        dmabuf: dmabuf.into(),
        binding: Mutex::new(Some(binding)),
        held: Mutex::new(held),
        changed: Condvar::new(),
    });
    let control = Arc::clone(&sink);
    Ok(Ready::new::<DevmemSink>(control, move || {
        sink.run(listener)
    }))
}

/// State shared by the receiving thread and the threads that control it.
///
/// The dma-buf and the binding live until the job is joined: the host may still be reading.
struct Sink {
    id: JobId,
    spec: DevmemSink,
    switch: Arc<Switch>,
    dmabuf: memory::Closable,
    binding: Mutex<Option<RxBinding>>,
    held: Mutex<Held>,
    /// Tokens were returned, or the job was stopped.
    changed: Condvar,
}

/// Consecutive fragments of the stream.
struct Batch {
    stream_offset: u64,
    fragments: Vec<Fragment>,
}

/// Fragments whose tokens are not returned yet, and the socket to return them on.
struct Held {
    stream: Weak<TcpStream>,
    batches: BTreeMap<u64, Batch>,
    returner: TokenReturner,
    checker: Checker,
}

impl Held {
    fn tokens(&self) -> u64 {
        self.batches
            .values()
            .map(|batch| batch.fragments.len() as u64)
            .sum()
    }
}

impl Control for Sink {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::Release { batch } => {
                let mut held = lock(&self.held);
                let held_batch = held.batches.remove(batch);
                let held_batch = held_batch.with_context(|| {
                    format!("batch {batch} was never reported, or released before")
                })?;
                self.release(&mut held, &held_batch)?;
            }
            Command::ReleaseAll => {
                let mut held = lock(&self.held);
                for batch in mem::take(&mut held.batches).into_values() {
                    self.release(&mut held, &batch)?;
                }
            }
            Command::CloseBinding => {
                drop(
                    lock(&self.binding)
                        .take()
                        .context("the binding was closed before")?,
                );
            }
            Command::CloseDmaBuf => self.dmabuf.close()?,
            Command::Stop => self.switch.stop(),
            other @ (Command::Finish | Command::Program(_) | Command::Kill | Command::Go) => {
                return Err(not_understood("DevmemSink", other));
            }
        }
        // Under the lock, so that a waiter cannot miss it between its check and its wait.
        let held = lock(&self.held);
        self.changed.notify_all();
        drop(held);
        Ok(())
    }
}

impl Sink {
    fn run(&self, listener: Arc<TcpListener>) -> DevmemSinkReport {
        let mut progress = Progress::new(self);
        let error = match tcp::accept(listener, &self.switch, self.id) {
            Ok(Some(stream)) => {
                let received = self.receive(&stream, &mut progress);
                // The socket is open: the tokens are still ours.
                received.and(self.check_held()).err()
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let mut report = progress.into_report();
        report.error = error.filter(|_| !self.switch.stopped());
        let held = lock(&self.held);
        report.tokens_held = held.tokens();
        report.mismatch = held.checker.mismatch();
        report
    }

    /// Returns tokens. Until then the payload must stay as it arrived: it is checked only now, to
    /// catch memory that is reused too early.
    fn release(&self, held: &mut Held, batch: &Batch) -> Result<()> {
        self.check(&mut held.checker, batch)?;
        // The kernel took all tokens back when the socket closed.
        if let Some(stream) = held.stream.upgrade() {
            let tokens: Vec<_> = batch.fragments.iter().map(|f| f.token).collect();
            held.returner.return_tokens(&*stream, &tokens)?;
        }
        Ok(())
    }

    /// Checks fragments that will not be released.
    fn check_held(&self) -> Result<(), Failure> {
        let mut held = lock(&self.held);
        let Held {
            batches, checker, ..
        } = &mut *held;
        batches
            .values()
            .try_for_each(|batch| self.check(checker, batch))
            .map_err(|error| failure::from_error(&error))
    }

    fn check(&self, checker: &mut Checker, batch: &Batch) -> Result<()> {
        if self.spec.verify {
            let mut at = batch.stream_offset;
            let mut copy = Vec::new();
            for fragment in &batch.fragments {
                copy.resize(fragment.len as usize, 0);
                self.dmabuf
                    .view()
                    .read_at(fragment.offset as usize, &mut copy)?;
                checker.check(at, &copy);
                at += u64::from(fragment.len);
            }
        }
        Ok(())
    }

    /// Receives until the stream ends and its fragments are released.
    fn receive(&self, stream: &Arc<TcpStream>, progress: &mut Progress<'_>) -> Result<(), Failure> {
        lock(&self.held).stream = Arc::downgrade(stream);
        let own = stream.try_clone();
        let own = own.map_err(|error| failure::from_io("duplicating the socket", &error))?;
        let mut receiver = Receiver::new(own);
        let mut received = Received::default();
        loop {
            let result = receiver
                .receive_into(&mut received)
                .map_err(anyhow::Error::from);
            let result = result
                .context("receiving")
                .and_then(|()| progress.take_in(&received));
            result.map_err(|error| failure::from_error(&error))?;
            if received.end_of_stream {
                break;
            }
        }
        if !self.switch.stopped() {
            progress.report.end_of_stream = true;
            self.wait_for_release();
        }
        Ok(())
    }

    /// The socket must stay open until all tokens are returned on it.
    fn wait_for_release(&self) {
        if self.spec.release == Release::OnRequest {
            let held = lock(&self.held);
            let waiting = |held: &mut Held| !held.batches.is_empty() && !self.switch.stopped();
            let released = self.changed.wait_while(held, waiting);
            drop(released.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// The progress so far.
struct Progress<'a> {
    sink: &'a Sink,
    meter: Meter,
    next_batch: u64,
    report: DevmemSinkReport,
}

impl<'a> Progress<'a> {
    fn new(sink: &'a Sink) -> Self {
        Self {
            sink,
            meter: Meter::new(sink.id),
            next_batch: 0,
            report: DevmemSinkReport {
                bytes: 0,
                linear_bytes: 0,
                fragments: 0,
                tokens_held: 0,
                mismatch: None,
                end_of_stream: false,
                error: None,
                elapsed_ns: 0,
            },
        }
    }

    fn into_report(self) -> DevmemSinkReport {
        DevmemSinkReport {
            elapsed_ns: self.meter.elapsed_ns(),
            ..self.report
        }
    }

    /// Counts and reports what one receive call returned.
    fn take_in(&mut self, received: &Received) -> Result<()> {
        if received.bytes() == 0 {
            return Ok(());
        }
        self.meter.passed(self.report.bytes + received.bytes());
        let mut run = Vec::new();
        for piece in received.pieces() {
            match piece {
                Piece::Device(fragment) => run.push(fragment),
                Piece::Linear(bytes) => {
                    self.device(&mem::take(&mut run))?;
                    self.linear(bytes);
                }
            }
        }
        self.device(&run)
    }

    /// Consecutive fragments of the stream: one batch.
    fn device(&mut self, fragments: &[Fragment]) -> Result<()> {
        if fragments.is_empty() {
            return Ok(());
        }
        let spec = &self.sink.spec;
        let stream_offset = self.report.bytes;
        let lengths = fragments.iter().map(|fragment| u64::from(fragment.len));
        self.report.bytes += lengths.sum::<u64>();
        self.report.fragments += fragments.len() as u64;

        let batch = self.next_batch;
        self.next_batch += 1;
        let taken = Batch {
            stream_offset,
            fragments: fragments.to_vec(),
        };
        // Held before it is reported: the host may answer before this thread continues.
        let mut held = lock(&self.sink.held);
        if spec.release != Release::Immediate {
            held.batches.insert(batch, taken);
            drop(held);
            self.report_batch(batch, stream_offset, fragments);
        } else {
            self.report_batch(batch, stream_offset, fragments);
            self.sink.release(&mut held, &taken)?;
        }
        Ok(())
    }

    fn report_batch(&self, batch: u64, stream_offset: u64, fragments: &[Fragment]) {
        if self.sink.spec.report {
            let span = |fragment: &Fragment| Span {
                offset: fragment.offset,
                len: fragment.len,
            };
            let fragments = fragments.iter().map(span).collect();
            send_event(
                self.sink.id,
                Event::Fragments {
                    batch,
                    stream_offset,
                    fragments,
                },
            );
        }
    }

    fn linear(&mut self, bytes: &[u8]) {
        let stream_offset = self.report.bytes;
        lock(&self.sink.held).checker.check(stream_offset, bytes);
        self.report.bytes += bytes.len() as u64;
        self.report.linear_bytes += bytes.len() as u64;
        let len = bytes.len() as u64;
        if self.sink.spec.report {
            send_event(self.sink.id, Event::Linear { stream_offset, len });
        }
    }
}
