// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream through io_uring zero-copy receive.

use std::{
    collections::BTreeMap,
    mem,
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use devmem::zcrx::{Completion, Config, Fragment, InterfaceQueue, Receiver, Refill};
use protocol::{Command, Event, JobId, Release, ZcrxSink, memory::Span, zcrx::ZcrxSinkReport};

use super::{
    area::AreaMemory,
    job::{Control, Ready, not_understood},
    memory,
    report::{Checker, Meter},
    switch::Switch,
    tcp,
};
use crate::{failure, lock::lock, netns, outbox::send_event, rtnetlink};

/// How often to check whether there is anything to do besides receiving.
const LOOK: Duration = Duration::from_millis(20);

/// The maximum number of fragments in a batch, so that an event stays short.
const BATCH: usize = 1024;

pub(super) fn set_up(id: JobId, spec: ZcrxSink) -> Result<Ready> {
    // As for `DevmemSink`.
    let buffer = (spec.area_bytes / 4) as usize;
    let listener = Arc::new(netns::within(spec.ns, || {
        tcp::listen(spec.listen, Some(buffer))
    })?);
    let memory = AreaMemory::create(spec.memory, spec.area_bytes, spec.rx_buf_len.is_some())?;
    let queue = netns::within(spec.ns, || {
        let mut config = Config::new(rtnetlink::index_of(&spec.interface)?, spec.queue);
        if let Some(bytes) = spec.rx_buf_len {
            config = config.rx_buf_len(bytes);
        }
        if let Some(entries) = spec.refill_entries {
            config = config.refill_entries(entries);
        }
        if let Some(entries) = spec.completions {
            config = config.completions(entries);
        }
        memory.register(|area| Ok(InterfaceQueue::register(&config, area)?))
    })?;
    memory::report_ranges(id, memory.physical_ranges())?;

    let switch = Switch::new("ZcrxSink");
    switch.watch(&listener);
    let held = Held {
        refill: None,
        batches: BTreeMap::new(),
        waiting: Vec::new(),
        checker: Checker::new(spec.seed),
    };
    let sink = Arc::new(Sink {
        id,
        spec,
        switch,
        memory,
        closed: AtomicBool::new(false),
        held: Mutex::new(held),
        changed: Condvar::new(),
    });
    let control = Arc::clone(&sink);
    Ok(Ready::new::<ZcrxSink>(control, move || {
        sink.run(queue, listener)
    }))
}

/// State shared by the receiving thread and the threads that control it. The area stays until the
/// job is joined: the host may still be reading.
struct Sink {
    id: JobId,
    spec: ZcrxSink,
    switch: Arc<Switch>,
    memory: AreaMemory,
    closed: AtomicBool,
    held: Mutex<Held>,
    /// Fragments were released, or the job was stopped.
    changed: Condvar,
}

/// Consecutive fragments of the stream.
struct Batch {
    stream_offset: u64,
    fragments: Vec<Fragment>,
}

/// Fragments that are not returned yet, and how to return them.
struct Held {
    refill: Option<Refill>,
    batches: BTreeMap<u64, Batch>,
    /// Released, but the refill ring had no room.
    waiting: Vec<Fragment>,
    checker: Checker,
}

impl Held {
    fn fragments(&self) -> u64 {
        let held: usize = self.batches.values().map(|b| b.fragments.len()).sum();
        (held + self.waiting.len()) as u64
    }

    fn return_fragments(&mut self, fragments: Vec<Fragment>) -> Result<()> {
        self.waiting.extend(fragments);
        if let Some(refill) = &mut self.refill {
            let taken = refill.return_fragments(&self.waiting)?;
            self.waiting.drain(..taken);
        }
        Ok(())
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
                self.release(&mut held, held_batch)?;
            }
            Command::ReleaseAll => {
                let mut held = lock(&self.held);
                for batch in mem::take(&mut held.batches).into_values() {
                    self.release(&mut held, batch)?;
                }
            }
            Command::CloseBinding => self.closed.store(true, Ordering::SeqCst),
            Command::CloseDmaBuf => self.memory.close()?,
            Command::Stop => self.switch.stop(),
            other @ (Command::Finish | Command::Program(_) | Command::Kill | Command::Go) => {
                return Err(not_understood("ZcrxSink", other));
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
    fn run(&self, queue: InterfaceQueue, listener: Arc<TcpListener>) -> ZcrxSinkReport {
        let mut progress = Progress::new(self, queue.rx_buf_len());
        let error = match tcp::accept(listener, &self.switch, self.id) {
            Ok(Some(stream)) => self
                .receive(queue, &stream, &mut progress)
                .map_err(|error| failure::from_error(&error))
                .err(),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let mut report = progress.into_report();
        report.error = error.filter(|_| !self.switch.stopped());
        let held = lock(&self.held);
        report.fragments_held = held.fragments();
        report.mismatch = held.checker.mismatch();
        report
    }

    /// Returns fragments. Until then the payload must stay as it arrived: it is checked only now,
    /// to catch memory that is reused too early.
    fn release(&self, held: &mut Held, batch: Batch) -> Result<()> {
        self.check(&mut held.checker, &batch)?;
        held.return_fragments(batch.fragments)
    }

    /// Checks fragments that will not be released.
    fn check_held(&self) -> Result<()> {
        let mut held = lock(&self.held);
        let Held {
            batches, checker, ..
        } = &mut *held;
        batches
            .values()
            .try_for_each(|batch| self.check(checker, batch))
    }

    fn check(&self, checker: &mut Checker, batch: &Batch) -> Result<()> {
        if self.spec.verify {
            let mut at = batch.stream_offset;
            let mut copy = Vec::new();
            for fragment in &batch.fragments {
                copy.resize(fragment.len as usize, 0);
                self.memory.read_at(fragment.offset as usize, &mut copy)?;
                checker.check(at, &copy);
                at += u64::from(fragment.len);
            }
        }
        Ok(())
    }

    /// Whether the job must end now.
    fn over(&self) -> bool {
        self.switch.stopped() || self.closed.load(Ordering::SeqCst)
    }

    /// Receives until the stream ends and its fragments are released.
    fn receive(
        &self,
        queue: InterfaceQueue,
        stream: &TcpStream,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let (mut receiver, refill) = queue.start()?;
        lock(&self.held).refill = Some(refill);
        receiver.receive_from(stream)?;
        let mut completions = Vec::new();
        while !self.over() {
            receiver.wait(Some(LOOK), &mut completions)?;
            let mut fragments = Vec::with_capacity(completions.len());
            let mut end = None;
            for completion in completions.drain(..) {
                match completion {
                    Completion::Fragment { fragment, .. } => fragments.push(fragment),
                    Completion::Ended { error, .. } => end = Some(error),
                }
            }
            for batch in fragments.chunks(BATCH) {
                progress.take_in(batch)?;
            }
            self.make_room(&mut receiver)?;
            progress.report.copied_bytes = receiver.copied_bytes().unwrap_or_default();
            match end {
                None => {}
                Some(Some(error)) => return Err(error).context("receiving"),
                Some(None) => {
                    progress.report.end_of_stream = !self.over();
                    self.wait_for_release();
                    break;
                }
            }
        }
        // The ring is open: what is held is still ours.
        self.check_held()
    }

    /// Returns the buffers that the refill ring had no room for.
    fn make_room(&self, receiver: &mut Receiver) -> Result<()> {
        let mut held = lock(&self.held);
        while !held.waiting.is_empty() {
            receiver.flush()?;
            held.return_fragments(Vec::new())?;
        }
        Ok(())
    }

    /// The ring must stay open until all fragments are returned.
    fn wait_for_release(&self) {
        if self.spec.release == Release::OnRequest {
            let held = lock(&self.held);
            let waiting = |held: &mut Held| !held.batches.is_empty() && !self.over();
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
    report: ZcrxSinkReport,
}

impl<'a> Progress<'a> {
    fn new(sink: &'a Sink, rx_buf_len: u32) -> Self {
        Self {
            sink,
            meter: Meter::new(sink.id),
            next_batch: 0,
            report: ZcrxSinkReport {
                bytes: 0,
                copied_bytes: 0,
                fragments: 0,
                fragments_held: 0,
                rx_buf_len,
                mismatch: None,
                end_of_stream: false,
                error: None,
                elapsed_ns: 0,
            },
        }
    }

    fn into_report(self) -> ZcrxSinkReport {
        ZcrxSinkReport {
            elapsed_ns: self.meter.elapsed_ns(),
            ..self.report
        }
    }

    /// Counts and reports consecutive fragments of the stream.
    fn take_in(&mut self, fragments: &[Fragment]) -> Result<()> {
        let spec = &self.sink.spec;
        let stream_offset = self.report.bytes;
        let lengths = fragments.iter().map(|fragment| u64::from(fragment.len));
        self.report.bytes += lengths.sum::<u64>();
        self.report.fragments += fragments.len() as u64;
        self.meter.passed(self.report.bytes);

        let batch = self.next_batch;
        self.next_batch += 1;
        // Held before it is reported: the host may answer before this thread continues.
        let taken = Batch {
            stream_offset,
            fragments: fragments.to_vec(),
        };
        let mut release_now = None;
        if spec.release == Release::Immediate {
            release_now = Some(taken);
        } else {
            lock(&self.sink.held).batches.insert(batch, taken);
        }
        if spec.report {
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
        if let Some(taken) = release_now {
            self.sink.release(&mut lock(&self.sink.held), taken)?;
        }
        Ok(())
    }
}
