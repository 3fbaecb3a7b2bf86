// SPDX-License-Identifier: MIT OR Apache-2.0

//! Receives a TCP stream as fast as it can, and marks a window of it.

use std::{io::Read, net::TcpStream, sync::Arc, time::Instant};

use anyhow::{Context, Result};
use devmem::{
    memory::Memory,
    netdev::RxBinding,
    rx::{Capacity, Received, Receiver, Token},
    zcrx::{Completion, Config, InterfaceQueue},
};
use protocol::{
    JobId, MeasuredSink,
    measure::{MeasuredSinkReport, Path},
    request::Edge,
};

use super::{
    Ready, area, binding,
    measured::{Copies, ensure_room, packets, retransmits},
    memory,
    switch::Switch,
    tcp,
};
use crate::{failure, marker, netns, rtnetlink};

/// Pieces that one call can report: those of 1 MiB in packets of 1500 bytes, and some more.
const PIECES: usize = 1024;

pub(super) fn set_up(id: JobId, spec: MeasuredSink) -> Result<Ready> {
    let listener = Arc::new(netns::within(spec.ns, || tcp::listen(spec.listen, None))?);
    let target = Target::new(id, &spec)?;
    let switch = Switch::new("MeasuredSink");
    switch.watch(&listener);
    let control = Arc::clone(&switch);
    Ok(Ready::new::<MeasuredSink>(control, move || {
        let mut sink = Sink {
            window: Window::new(&spec),
            report: MeasuredSinkReport {
                bytes: 0,
                window_bytes: 0,
                window_packets: 0,
                window_reads: 0,
                window_fragments: 0,
                window_retransmits: 0,
                window_ns: 0,
                linear_bytes: 0,
                end_of_stream: false,
                error: None,
            },
        };
        let result = match tcp::accept(listener, &switch, id) {
            Ok(Some(stream)) => sink
                .receive(&stream, target, spec.read as usize)
                .map_err(|error| failure::from_error(&error)),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => sink.report.end_of_stream = !switch.stopped(),
            Err(error) => sink.report.error = Some(error).filter(|_| !switch.stopped()),
        }
        sink.report
    }))
}

/// Where the payload goes.
enum Target {
    Ordinary,
    Copied(Copies),
    Devmem {
        _memory: Memory,
        _bound: RxBinding,
    },
    Zcrx {
        queue: Box<InterfaceQueue>,
        _memory: area::Memory,
    },
}

impl Target {
    fn new(id: JobId, spec: &MeasuredSink) -> Result<Self> {
        match &spec.path {
            Path::Ordinary => Ok(Self::Ordinary),
            Path::Copied {
                memory,
                dmabuf_bytes,
            } => {
                let copies = Copies::new(*memory, *dmabuf_bytes, spec.read)?;
                memory::report_place(id, copies.memory())?;
                Ok(Self::Copied(copies))
            }
            Path::Devmem {
                memory,
                dmabuf_bytes,
                queues,
                rx_page_size,
            } => {
                ensure_room(*dmabuf_bytes, spec.read)?;
                let memory = memory::allocate(*memory, *dmabuf_bytes)?;
                let bound =
                    binding::bind(spec.ns, &spec.interface, queues, &memory, *rx_page_size)?;
                memory::report_place(id, &memory)?;
                Ok(Self::Devmem {
                    _memory: memory,
                    _bound: bound,
                })
            }
            Path::Zcrx {
                memory,
                area_bytes,
                queue,
                rx_buf_len,
            } => {
                // What is kept must leave buffers to receive into.
                ensure_room(*area_bytes / 2, spec.read)?;
                let memory = area::Memory::create(*memory, *area_bytes, rx_buf_len.is_some())?;
                let queue = netns::within(spec.ns, || {
                    let mut config = Config::new(rtnetlink::index_of(&spec.interface)?, *queue);
                    if let Some(bytes) = rx_buf_len {
                        config = config.rx_buf_len(*bytes);
                    }
                    Ok(InterfaceQueue::register(&config, memory.area())?)
                })?;
                memory::report_ranges(id, memory.physical_ranges())?;
                Ok(Self::Zcrx {
                    queue: Box::new(queue),
                    _memory: memory,
                })
            }
        }
    }
}

struct Sink<'a> {
    window: Window<'a>,
    report: MeasuredSinkReport,
}

impl Sink<'_> {
    fn receive(&mut self, stream: &TcpStream, target: Target, read: usize) -> Result<()> {
        match target {
            Target::Ordinary => self.read(stream, read, |_| Ok(())),
            Target::Copied(mut copies) => self.read(stream, read, |piece| copies.copy_in(piece)),
            // The dma-buf and its binding stay until the stream has ended.
            Target::Devmem { .. } => self.receive_devmem(stream, read),
            Target::Zcrx { queue, _memory } => self.receive_zcrx(stream, *queue, read),
        }
    }

    fn read(
        &mut self,
        mut stream: &TcpStream,
        read: usize,
        mut done: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; read];
        loop {
            self.window.look(&mut self.report)?;
            let length = stream.read(&mut buffer).context("receiving")?;
            if length == 0 {
                return Ok(());
            }
            done(&buffer[..length])?;
            self.report.bytes += length as u64;
            self.report.window_reads += 1;
        }
    }

    fn receive_devmem(&mut self, stream: &TcpStream, read: usize) -> Result<()> {
        let stream = stream.try_clone().context("duplicating the socket")?;
        let capacity = Capacity {
            bytes: read,
            pieces: PIECES,
        };
        let mut receiver = Receiver::with_capacity(stream, capacity);
        let mut received = Received::default();
        let mut tokens: Vec<Token> = Vec::with_capacity(PIECES);
        loop {
            self.window.look(&mut self.report)?;
            receiver.receive_into(&mut received)?;
            if received.end_of_stream {
                return Ok(());
            }
            tokens.clear();
            tokens.extend(received.tokens());
            receiver.return_tokens(&tokens)?;
            self.report.bytes += received.bytes();
            self.report.linear_bytes += received.linear.len() as u64;
            self.report.window_fragments += tokens.len() as u64;
            self.report.window_reads += 1;
        }
    }

    /// The kernel says when and how much: `batch` bytes are given back together.
    fn receive_zcrx(
        &mut self,
        stream: &TcpStream,
        queue: InterfaceQueue,
        batch: usize,
    ) -> Result<()> {
        let (mut receiver, mut refill) = queue.start()?;
        receiver.receive_from(stream)?;
        let mut completions = Vec::new();
        let mut kept = Vec::new();
        // Bytes received when something was given back last.
        let mut given_back = 0;
        loop {
            self.window.look(&mut self.report)?;
            receiver.wait(None, &mut completions)?;
            for completion in &completions {
                if let Completion::Fragment { fragment, .. } = completion {
                    self.report.bytes += u64::from(fragment.len);
                    self.report.window_fragments += 1;
                    kept.push(*fragment);
                }
            }
            self.report.window_reads += 1;
            // What ends the stream comes last.
            if let Some(Completion::Ended { error, .. }) = completions.pop() {
                self.report.linear_bytes = receiver.copied_bytes().unwrap_or_default();
                return error.map_or(Ok(()), |error| Err(error).context("receiving"));
            }
            if self.report.bytes - given_back >= batch as u64 {
                given_back = self.report.bytes;
                let taken = refill.give_back(&kept)?;
                kept.drain(..taken);
            }
        }
    }
}

/// Marks the window when its time has come.
struct Window<'a> {
    spec: &'a MeasuredSink,
    /// Bytes at which something is to be done next.
    next: u64,
    started: Option<Started>,
}

struct Started {
    bytes: u64,
    packets: u64,
    retransmits: u64,
    at: Instant,
}

impl<'a> Window<'a> {
    fn new(spec: &'a MeasuredSink) -> Self {
        Self {
            spec,
            next: spec.skip,
            started: None,
        }
    }

    /// To be called between two calls that receive.
    fn look(&mut self, report: &mut MeasuredSinkReport) -> Result<()> {
        if report.bytes < self.next {
            return Ok(());
        }
        match self.started.take() {
            None => self.start(report),
            Some(started) => self.end(&started, report),
        }
    }

    // What is asked of the interface lies outside the marks.
    fn start(&mut self, report: &mut MeasuredSinkReport) -> Result<()> {
        self.started = Some(Started {
            bytes: report.bytes,
            packets: packets(self.spec.ns, &self.spec.interface)?,
            retransmits: retransmits(self.spec.from)?,
            at: Instant::now(),
        });
        self.next = report.bytes + self.spec.window;
        report.window_reads = 0;
        report.window_fragments = 0;
        marker::mark(Edge::Start);
        Ok(())
    }

    fn end(&mut self, started: &Started, report: &mut MeasuredSinkReport) -> Result<()> {
        marker::mark(Edge::End);
        let elapsed = started.at.elapsed().as_nanos();
        let packets = packets(self.spec.ns, &self.spec.interface)?;
        let retransmits = retransmits(self.spec.from)?;
        self.next = u64::MAX;
        report.window_bytes = report.bytes - started.bytes;
        report.window_packets = packets - started.packets;
        report.window_retransmits = retransmits - started.retransmits;
        report.window_ns = elapsed.try_into().unwrap_or(u64::MAX);
        Ok(())
    }
}
