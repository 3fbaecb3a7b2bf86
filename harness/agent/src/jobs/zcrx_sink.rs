// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream through io_uring zero-copy receive.

use std::{
    net::{TcpListener, TcpStream},
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use devmem_tcp::zcrx::{Config, Fragment, InterfaceQueue, Receiver, Refill};
use protocol::{Command, JobId, ZcrxSink, memory::Span, zcrx::ZcrxSinkReport};

use super::{
    area::AreaMemory,
    held::{self, Held, Policy, Source},
    job::{Control, Ready, not_understood},
    receive,
    switch::Switch,
    tcp,
};

/// How often to check whether there is anything to do besides receiving.
const LOOK: Duration = Duration::from_millis(20);

/// The maximum number of fragments in a batch, so that an event stays short.
const BATCH: usize = 1024;

pub(super) fn set_up(id: JobId, spec: ZcrxSink) -> Result<Ready> {
    // As for `DevmemSink`.
    let buffer = (spec.area_bytes / 4) as usize;
    let listener = tcp::listen(spec.ns, spec.listen, Some(buffer))?;
    let memory = AreaMemory::create(spec.memory, spec.area_bytes, spec.rx_buf_len.is_some())?;
    let queue = memory.register(id, (spec.ns, &spec.interface), |interface, area| {
        let mut config = Config::new(interface, spec.queue);
        if let Some(bytes) = spec.rx_buf_len {
            config = config.rx_buf_len(bytes);
        }
        if let Some(entries) = spec.refill_entries {
            config = config.refill_entries(entries);
        }
        match spec.completions {
            Some(entries) => InterfaceQueue::register_with(&config, area, entries),
            None => InterfaceQueue::register(&config, area),
        }
    })?;

    let switch = Switch::watching("ZcrxSink", &listener);
    let policy = Policy {
        seed: spec.seed,
        verify: spec.verify,
        report: spec.report,
        release: spec.release,
    };
    let sink = Arc::new(Sink {
        id,
        switch,
        closed: AtomicBool::new(false),
        held: Held::new(id, policy, memory, None),
    });
    Ok(Ready::new::<ZcrxSink, _>(sink, move |sink| {
        sink.run(queue, listener)
    }))
}

/// State shared by the receiving thread and the threads that control it. The area stays until the
/// job is joined: the host may still be reading.
struct Sink {
    id: JobId,
    switch: Arc<Switch>,
    closed: AtomicBool,
    held: Held<AreaMemory>,
}

impl held::Fragment for Fragment {
    fn span(&self) -> Span {
        (self.offset(), self.len()).into()
    }
}

impl Source for AreaMemory {
    type Fragment = Fragment;
    /// There is one once there is a stream.
    type Returner = Option<Refill>;

    fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        Ok(self.read_at(offset, bytes)?)
    }

    fn return_fragments(refill: &mut Option<Refill>, fragments: Vec<Fragment>) -> Result<()> {
        let refill = refill.as_mut().context("fragments before their stream")?;
        Ok(refill.recycle(fragments)?)
    }
}

impl Control for Sink {
    fn tell(&self, command: &Command) -> Result<()> {
        match command {
            Command::Release { batch } => self.held.release(*batch)?,
            Command::ReleaseAll => self.held.release_all()?,
            Command::CloseBinding => self.closed.store(true, Ordering::SeqCst),
            Command::CloseDmaBuf => self.held.source.close()?,
            Command::Stop => self.switch.stop(),
            other @ (Command::Finish | Command::Program(_) | Command::Kill | Command::Go) => {
                return Err(not_understood("ZcrxSink", other));
            }
        }
        self.held.notify();
        Ok(())
    }
}

impl Sink {
    fn run(&self, queue: InterfaceQueue, listener: Arc<TcpListener>) -> ZcrxSinkReport {
        let rx_buf_len = queue.rx_buf_len();
        let mut end_of_stream = false;
        let mut copied_bytes = 0;
        let result = tcp::accept(listener, &self.switch, self.id)
            .and_then(|stream| self.receive(queue, &stream, &mut end_of_stream, &mut copied_bytes));
        let counts = self.held.counts();
        let waiting = self
            .held
            .with_returner(|refill| refill.as_ref().map_or(0, Refill::waiting));
        ZcrxSinkReport {
            bytes: counts.bytes,
            copied_bytes,
            fragments: counts.fragments,
            fragments_held: counts.held + waiting as u64,
            rx_buf_len,
            mismatch: counts.mismatch,
            end_of_stream,
            error: self.switch.failure(result),
            elapsed_ns: counts.elapsed_ns,
        }
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
        end_of_stream: &mut bool,
        copied_bytes: &mut u64,
    ) -> Result<()> {
        let (mut receiver, refill) = queue.start()?;
        self.held.with_returner(|none| *none = Some(refill));
        *end_of_stream = receive::zcrx(&mut receiver, &[stream], Some(LOOK), |receiver, came| {
            while !came.is_empty() {
                let batch = came.drain(..came.len().min(BATCH)).collect();
                self.held.take_in(batch)?;
            }
            self.make_room(receiver)?;
            *copied_bytes = receiver.copied().unwrap_or_default().bytes;
            Ok(match self.over() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
        if *end_of_stream {
            // The ring must stay open until all fragments are returned.
            self.held.wait_for_release(|| self.over());
        }
        // The ring is open: what is held is still ours.
        self.held.check_rest()
    }

    /// Returns the buffers that the refill ring had no room for.
    fn make_room(&self, receiver: &mut Receiver) -> Result<()> {
        self.held.with_returner(|refill| {
            let Some(refill) = refill else { return Ok(()) };
            while refill.waiting() > 0 {
                receiver.flush()?;
                refill.recycle([])?;
            }
            Ok(())
        })
    }
}
