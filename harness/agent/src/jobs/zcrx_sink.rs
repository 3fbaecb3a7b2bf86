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
    Control, Ready,
    area::Memory,
    memory, not_understood,
    report::{Checker, Meter},
    switch::Switch,
    tcp,
};
use crate::{
    control::{lock, send_event},
    failure, netns, rtnetlink,
};

/// How often to look whether there is something else to do than to receive.
const LOOK: Duration = Duration::from_millis(20);

/// Most fragments of a batch, so that an event stays short.
const BATCH: usize = 1024;

pub(super) fn set_up(id: JobId, spec: ZcrxSink) -> Result<Ready> {
    // As for `DevmemSink`.
    let buffer = (spec.area_bytes / 4) as usize;
    let listener = Arc::new(netns::within(spec.ns, || {
        tcp::listen(spec.listen, Some(buffer))
    })?);
    let memory = Memory::create(spec.memory, spec.area_bytes, spec.rx_buf_len.is_some())?;
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
    let sink = Arc::new(Sink {
        id,
        spec,
        switch,
        memory,
        closed: AtomicBool::new(false),
        held: Mutex::default(),
        changed: Condvar::new(),
    });
    let control = Arc::clone(&sink);
    Ok(Ready::new::<ZcrxSink>(control, move || {
        sink.run(queue, listener)
    }))
}

/// What the receiving thread and those who steer it share. The area stays until the job is joined:
/// the host may still be reading.
struct Sink {
    id: JobId,
    spec: ZcrxSink,
    switch: Arc<Switch>,
    memory: Memory,
    closed: AtomicBool,
    held: Mutex<Held>,
    /// Fragments were released, or the job was stopped.
    changed: Condvar,
}

/// Fragments that were not given back yet, and how they are.
#[derive(Default)]
struct Held {
    refill: Option<Refill>,
    batches: BTreeMap<u64, Vec<Fragment>>,
    /// Released, but the refill ring had no room.
    waiting: Vec<Fragment>,
}

impl Held {
    fn fragments(&self) -> u64 {
        let held: usize = self.batches.values().map(Vec::len).sum();
        (held + self.waiting.len()) as u64
    }

    fn give_back(&mut self, fragments: Vec<Fragment>) -> Result<()> {
        self.waiting.extend(fragments);
        if let Some(refill) = &mut self.refill {
            let taken = refill.give_back(&self.waiting)?;
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
                let fragments = held.batches.remove(batch);
                held.give_back(fragments.with_context(|| {
                    format!("batch {batch} was never reported, or released before")
                })?)?;
            }
            Command::ReleaseAll => {
                let mut held = lock(&self.held);
                let batches = mem::take(&mut held.batches);
                held.give_back(batches.into_values().flatten().collect())?;
            }
            Command::CloseBinding => self.closed.store(true, Ordering::SeqCst),
            Command::CloseDmaBuf => self.memory.close()?,
            Command::Stop => self.switch.stop(),
            other @ (Command::Finish | Command::Kill | Command::Go) => {
                return Err(not_understood("ZcrxSink", other));
            }
        }
        // With the lock, so that nobody misses it between a look and the wait.
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
        report.fragments_held = lock(&self.held).fragments();
        report
    }

    /// Whether the job shall end now.
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
        Ok(())
    }

    /// Gives back what the refill ring had no room for.
    fn make_room(&self, receiver: &mut Receiver) -> Result<()> {
        let mut held = lock(&self.held);
        while !held.waiting.is_empty() {
            receiver.flush()?;
            held.give_back(Vec::new())?;
        }
        Ok(())
    }

    /// The ring must stay open as long as somebody shall give fragments back.
    fn wait_for_release(&self) {
        if self.spec.release == Release::OnRequest {
            let held = lock(&self.held);
            let waiting = |held: &mut Held| !held.batches.is_empty() && !self.over();
            let released = self.changed.wait_while(held, waiting);
            drop(released.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// What was received so far.
struct Progress<'a> {
    sink: &'a Sink,
    checker: Checker,
    meter: Meter,
    next_batch: u64,
    report: ZcrxSinkReport,
    copy: Vec<u8>,
}

impl<'a> Progress<'a> {
    fn new(sink: &'a Sink, rx_buf_len: u32) -> Self {
        Self {
            sink,
            checker: Checker::new(sink.spec.seed),
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
            copy: Vec::new(),
        }
    }

    fn into_report(self) -> ZcrxSinkReport {
        ZcrxSinkReport {
            mismatch: self.checker.mismatch(),
            elapsed_ns: self.meter.elapsed_ns(),
            ..self.report
        }
    }

    /// Counts, checks and reports fragments that follow each other in the stream.
    fn take_in(&mut self, fragments: &[Fragment]) -> Result<()> {
        let spec = &self.sink.spec;
        let stream_offset = self.report.bytes;
        for fragment in fragments {
            if spec.verify {
                self.copy.resize(fragment.len as usize, 0);
                self.sink
                    .memory
                    .read_at(fragment.offset as usize, &mut self.copy)?;
                self.checker.check(self.report.bytes, &self.copy);
            }
            self.report.bytes += u64::from(fragment.len);
        }
        self.report.fragments += fragments.len() as u64;
        self.meter.passed(self.report.bytes);

        let batch = self.next_batch;
        self.next_batch += 1;
        // Held before it is reported: the host may answer faster than this thread goes on.
        if spec.release != Release::Immediate {
            lock(&self.sink.held)
                .batches
                .insert(batch, fragments.to_vec());
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
        if spec.release == Release::Immediate {
            lock(&self.sink.held).give_back(fragments.to_vec())?;
        }
        Ok(())
    }
}
